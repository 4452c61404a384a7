"""The run in MLflow with which rank 0 goes on, if it can be reached from where the rank runs.

Whether it can is tried, by MLflow's own client with the variables that ranks have: a program that
calls MLflow ends where its tracker doesn't answer, and no run is to end for that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from distrain_nb.worker.files.folder import TRACKING_FILE
from distrain_nb.worker.files.tracked import TRACKED_VARIABLE, Tracked

_ASK = "import sys; from mlflow import MlflowClient; MlflowClient(sys.argv[1]).get_run(sys.argv[2])"
_ANSWER_WITHIN_S = 120
_ONCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}


def take(folder: Path, has_rank_0: bool) -> str:
    """Have in a run's folder what its ranks are to know of the tracker's run, if they were told of
    one. Gives what to say of a tracker that can't be reached; empty for others."""
    tracked = Tracked.told(os.environ.pop(TRACKED_VARIABLE, ""))
    if not tracked.run or find_spec("mlflow") is None:
        return ""
    (folder / TRACKING_FILE).touch()
    if not has_rank_0:
        return ""
    trouble = _trouble(tracked)
    if not trouble:
        tracked.write(folder)
        return ""
    return (
        f"MLflow at {tracked.uri} does not give rank 0 its run: {trouble}. What ranks tell MLflow "
        "is not kept; metrics and results still are"
    )


def _trouble(tracked: Tracked) -> str:
    """What keeps its run from being read here; empty if nothing does."""
    command = [sys.executable, "-c", _ASK, tracked.uri, tracked.run]
    environment = {**os.environ, **_ONCE, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        asked = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_ANSWER_WITHIN_S,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_ANSWER_WITHIN_S} s"
    except OSError as wrong:
        return str(wrong)
    if asked.returncode == 0:
        return ""
    said = asked.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[-1][:300].rstrip(".") if said else f"exit status {asked.returncode}"
