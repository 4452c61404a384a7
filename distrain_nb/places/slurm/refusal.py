"""What Slurm says of a job that it refuses, with the option that is to blame."""

from __future__ import annotations

import re
from collections.abc import Mapping

from distrain_nb.places.slurm.options import option_behind

# What sbatch complains of, and the option that it calls so.
_BLAMED = (
    (r"partition", "partition"),
    (r"\(gres\)|--gres|\bgres\b|TRES", "gres"),
    (r"--time|time limit", "time"),
    (r"feature", "constraint"),
    (r"memory|--mem\b", "mem"),
    (r"account", "account"),
    (r"qos", "qos"),
    (r"reservation", "reservation"),
    (r"--cpus-per-task|cpu count", "cpus-per-task"),
    (r"node count|--nodes", "nodes"),
)


def refusal(words: str, script: Mapping[str, str], who: str = "sbatch") -> str:
    """Return what `who` said of a job with the option that is to blame, where its words tell;
    `script` are the options of the job's script."""
    for pattern, name in _BLAMED:
        if re.search(pattern, words, re.IGNORECASE) and name in script:
            value = f"--{name}={script[name]}" if name in ("nodes", "gres") else script[name]
            return f"{option_behind(name)} ({value}): {who} refuses the job: {words}"
    return f"{who} refuses the job: {words}"
