"""Reports of a trial's goals to the service that tunes its study, besides the charts.

Vertex AI reads a file: the last reports, a line of JSON each, with the names and the texts that the
package `cloudml-hypertune` gives them. SageMaker looks for them in the log: each is printed, in a
line of its own, with all its digits.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from pathlib import Path
from typing import Deque, Mapping

VARIABLE = "DISTRAIN_GOALS"  # the names of metrics that are goals, as a JSON list
# The hyperparameters of which a tuning job of SageMaker gives each trial values of its own,
# separated by commas; set in its trials alone.
TUNED_VARIABLE = "DISTRAIN_TUNED"
MOST_REPORTS = 100
TRIAL_VARIABLE, FILE_VARIABLE = "CLOUD_ML_TRIAL_ID", "CLOUD_ML_HP_METRIC_FILE"
DEFAULT_FILE = "/tmp/hypertune/output.metrics"
_goal_reports: Deque[str] = deque(maxlen=MOST_REPORTS)


def report(step: int, numbers: Mapping[str, float]) -> None:
    """Report those of the numbers that are goals, of that step. Raises OSError."""
    goals = json.loads(os.environ.get(VARIABLE) or "[]")
    values = {name: number for name, number in numbers.items() if name in goals}
    if TUNED_VARIABLE in os.environ:
        for name, number in values.items():
            print(f"step {step}  {name} {_written(number)}", flush=True)
    elif values and os.environ.get(TRIAL_VARIABLE):
        _append(step, values)


def _written(number: float) -> str:
    """Return the shortest text that is read back as the same number."""
    text = repr(float(number))
    return text[:-2] if text.endswith(".0") else text


def _append(step: int, values: Mapping[str, float]) -> None:
    """Append values to the one file of them all, which is written anew each time."""
    common = {
        "timestamp": time.time(),
        "trial": os.environ[TRIAL_VARIABLE],
        "global_step": str(step),
        "checkpoint_path": "",
    }
    for name, number in values.items():
        _goal_reports.append(json.dumps({**common, name: str(number)}, sort_keys=True))
    path = Path(os.environ.get(FILE_VARIABLE) or DEFAULT_FILE)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in _goal_reports), encoding="utf-8")
