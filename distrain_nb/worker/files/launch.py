"""The launch file: all that a supervisor needs to start a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Optional, Sequence, Tuple

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import (
    LAUNCH_FILE,
)
from distrain_nb.worker.files.status import Owner

RUN = "${RUN}"
# The variables with `timeout` and `signal_before` for a replica, in seconds.
TIMEOUT_VARIABLE, SIGNAL_VARIABLE = "DISTRAIN_TIMEOUT", "DISTRAIN_SIGNAL_BEFORE"
# Modules that a fork server may import before it forks: frameworks whose import starts no thread,
# as a test checks. Ranks import all other modules themselves.
FORK_SAFE = ("numpy", "scipy", "pandas", "sklearn", "torch", "tensorflow")
# What libraries import of these, for seconds. They themselves read the rank, or settings that a
# program may make, when they are imported.
IMPORTED_BY = {
    "lightgbm": ("pandas", "sklearn"),
    "lightning": ("scipy.stats", "scipy.signal"),
    "pytorch_lightning": ("scipy.stats", "scipy.signal"),
    "torchmetrics": ("scipy.stats", "scipy.signal"),
    "transformers": ("scipy.optimize",),
    "xgboost": ("pandas", "sklearn"),
}
# What the first optimizer of PyTorch imports, or a model of transformers, in a second; it starts no
# thread either.
OPTIMIZER = "torch._dynamo"


@dataclass(frozen=True)
class ProcessSpec:
    """One process: `environment` has only what is added to the supervisor's own.

    In a value, `${RUN}` stands for the run's folder and `${PORT_0}`, `${PORT_1}`… for ports that
    the supervisor finds free. One that `serves` is a TensorFlow parameter server, which runs
    nothing of the program.
    """

    label: str
    role: str
    replica: int
    rank: Optional[int]
    environment: Dict[str, str]
    serves: bool = False


@dataclass(frozen=True)
class Launch:
    """A run to start on this machine.

    `kernel` is the process that waits for the run and that it must not outlive; `preload` names
    modules that are imported before the ranks are forked; `mpirun` is the command that starts the
    ranks instead of a fork; `awaits` is this host's address, `host:port`, where another host's
    `mpirun` has them started; `holds` is an address that is open for as long as this run lasts,
    and `follows` that of the primary, with which this one ends, or the folders of the replicas that
    this one serves, one a line; with `distributes` the ranks are to form one world; `signal_before`
    is how long ahead of its time limit a program is asked to save, and how long it may then take;
    times are in seconds. The run is started again up to `retries` times after ends of the causes in
    `retried` (`supervisor/retries.py`). It has cost what `--max-cost` allows after `cost_limit`
    seconds, as `cost_words` say then. Ranks `in_turn` run alone, one after another
    (`rank/dry_rank.py`).
    """

    processes: Tuple[ProcessSpec, ...]
    working_folder: str
    ports: int = 0
    preload: Tuple[str, ...] = ()
    results: Tuple[str, ...] = ()
    mpirun: Tuple[str, ...] = ()
    awaits: str = ""
    holds: str = ""
    follows: str = ""
    kernel: Optional[Owner] = None
    grace: float = 1.5
    timeout: Optional[float] = None
    signal_before: Optional[float] = None
    distributes: bool = True
    retries: int = 0
    retried: Tuple[str, ...] = ()
    cost_limit: Optional[float] = None
    cost_words: str = ""
    in_turn: bool = False

    def write(self, folder: Path) -> None:
        replace_file(folder / LAUNCH_FILE, fields.encode(self))

    @classmethod
    def read(cls, folder: Path) -> Launch:
        """Raise FileNotFoundError; `fields.Damaged`."""
        return fields.read(cls, folder / LAUNCH_FILE)


def fill(environment: Dict[str, str], folder: Path, ports: Sequence[int]) -> Dict[str, str]:
    """Return the environment with what was not known when it was planned."""
    texts = {f"${{PORT_{number}}}": str(port) for number, port in enumerate(ports)}
    texts[RUN] = str(folder)
    filled = dict(environment)
    for name, value in environment.items():
        for placeholder, text in texts.items():
            value = value.replace(placeholder, text)
        filled[name] = value
    return filled
