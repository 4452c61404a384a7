"""Every point of a run's metrics, here and on its tracker."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.worker.files.folder import EVENTS_FOLDER

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as TheirRun


def points_here(folder: Path) -> Counter[tuple[str, int, int, str]]:
    """Every point of a run's event files, by the name that MLflow has for its metric."""
    events = EventFolder(folder / EVENTS_FOLDER)
    found: Counter[tuple[str, int, int, str]] = Counter()
    for (series, tag), points in events.read().items():
        name = "/".join(filter(None, (series, tag.replace("!", "_"))))
        for step, time, value in points.tolist():
            finite = 1.7976931348623157e308 if math.isinf(value) else value
            found[name, step, round(time * 1000), repr(finite)] += 1
    return found


def points_there(client: MlflowClient, run: TheirRun) -> Counter[tuple[str, int, int, str]]:
    return Counter(
        (name, each.step, each.timestamp, repr(each.value))
        for name in run.data.metrics
        for each in client.get_metric_history(run.info.run_id, name)
    )
