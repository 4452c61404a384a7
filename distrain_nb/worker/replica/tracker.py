"""The run in MLflow with which rank 0 goes on, if it can be reached from where the rank runs.

Whether it can is tried, by MLflow's own client with the variables that ranks have: a program that
calls MLflow ends where its tracker doesn't answer, and no run is to end for that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from distrain_nb.worker.files.folder import TRACKING_FILE
from distrain_nb.worker.files.tracked import PARENT_TAG, TRACKED_VARIABLE, TRIAL_TAG, Tracked
from distrain_nb.worker.machine.environment import variables
from distrain_nb.worker.metrics.goals import TRIAL_VARIABLE

# These print the run's identifier.
_ASK = """\
import sys
from mlflow import MlflowClient
print(MlflowClient(sys.argv[1]).get_run(sys.argv[2]).info.run_id)
"""
_FIND = """\
import sys, time
from mlflow import MlflowClient
client, end, found = MlflowClient(sys.argv[1]), time.monotonic() + float(sys.argv[4]), []
while not found and time.monotonic() < end:
    found = client.search_runs([sys.argv[2]], sys.argv[3]) or time.sleep(1)
print(found[0].info.run_id if found else "")
"""
_ANSWER_WITHIN_S = 120
_MADE_WITHIN_S = 45  # whoever follows the study makes the run of a trial that has begun
_ONCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}


def take(folder: Path, has_rank_0: bool) -> str:
    """Have in a run's folder what its ranks are to know of the tracker's run, if they were told of
    one. Gives what to say of a tracker that can't be reached; empty for others."""
    tracked = Tracked.from_text(os.environ.pop(TRACKED_VARIABLE, ""))
    if not (tracked.run or tracked.parent) or find_spec("mlflow") is None:
        return ""
    (folder / TRACKING_FILE).touch()
    if not has_rank_0:
        return ""
    try:
        replace(tracked, run=_run(tracked)).write(folder)
    except _NotThere as trouble:
        return (
            f"MLflow at {tracked.uri} does not give rank 0 its run: {trouble}. What ranks tell "
            "MLflow is not kept; metrics and results still are"
        )
    return ""


class _NotThere(Exception):
    """The run can't be read here, for this reason."""


def _run(tracked: Tracked) -> str:
    """Return the identifier of the run, a trial's by its study and number. Raises _NotThere."""
    if tracked.run:
        return _answer(_ASK, tracked.uri, tracked.run)
    number = os.environ.get(TRIAL_VARIABLE, "")
    where = f"tags.`{PARENT_TAG}` = '{tracked.parent}' and tags.`{TRIAL_TAG}` = '{number}'"
    run = _answer(_FIND, tracked.uri, tracked.experiment, where, str(_MADE_WITHIN_S))
    if not run:
        raise _NotThere(f"none was made for trial {number} within {_MADE_WITHIN_S} s")
    return run


def _answer(program: str, *arguments: str) -> str:
    """Run a Python program and return what it prints. Raises _NotThere if it fails."""
    command = [sys.executable, "-c", program, *arguments]
    environment = {**variables(), **_ONCE, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        process = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_WITHIN_S,
        )
    except subprocess.TimeoutExpired:
        raise _NotThere(f"no answer within {_ANSWER_WITHIN_S} s") from None
    except OSError as error:
        raise _NotThere(str(error)) from None
    if process.returncode == 0:
        return process.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2]
    lines = process.stderr.decode("utf-8", "replace").strip().splitlines()
    raise _NotThere(lines[-1][:300].rstrip(".") if lines else f"exit status {process.returncode}")
