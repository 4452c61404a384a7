"""The newest value of each metric of a run, and the best value of the metric that counts.

The folder of an ended run keeps them, so that a list of hundreds of runs is read at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.metrics.events import EventFolder, event_files, file_size
from distrain_nb.run.pages.media import agreed_hyperparameters
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import EVENTS_FOLDER, METRICS_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

LOW_IS_GOOD = ("loss", "error", "perplexity", "mse", "mae", "rmse")
HIGH_IS_GOOD = ("acc", "auc", "f1", "score", "precision", "recall", "reward", "bleu")
HELD_OUT = ("val", "test", "eval")
_RATE = re.compile(r"per_(s|sec|seconds?)$")
_DURATION = re.compile(r"(^|[^a-z0-9])(ms|s|secs?|seconds?|runtime|duration|time)$")
_POINT_IN_TIME = re.compile(r"^time$|(start|end|wall)_?time$")


@dataclass(frozen=True)
class BestMetric:
    """The metric that tells how good a run is, with its best value. `kind` is min, max or last."""

    tag: str
    kind: str
    value: float

    @property
    def name(self) -> str:
        """Its name beside metrics: `best loss (min)`."""
        return f"best {self.tag} ({self.kind})"


@dataclass(frozen=True)
class MetricValues:
    """The newest and best values of all metrics, by tag, and the best metric.

    `bests` lacks metrics without a finite value. `hyperparameters` are numbers, strings and
    booleans that the program wrote for TensorBoard. Both are None in a file of an earlier version.
    """

    last: dict[str, float]
    best: BestMetric | None
    bests: dict[str, float] | None = None
    hyperparameters: dict[str, object] | None = None


@dataclass(frozen=True)
class _StoredValues:
    """The values of event files that had so many bytes when they were read."""

    size: int
    values: MetricValues


def metric_values(events: EventFolder) -> MetricValues:
    """Return the values of the events that were read so far."""
    values = _values(events)
    last = {tag: float(points[-1]) for tag, points in values.items()}
    best = {tag: _best(tag, points) for tag, points in values.items()}
    finite = {tag: metric.value for tag, metric in best.items() if metric is not None}
    hyperparameters: Mapping[str, object] = agreed_hyperparameters(events.non_scalars)
    return MetricValues(last, best_metric(values), finite, dict(hyperparameters))


def final_metric_values(folder: Path) -> MetricValues:
    """Return the values of an ended run. Its event files are read again only if they change."""
    size = sum(file_size(path) for path in event_files(folder / EVENTS_FOLDER))
    metrics = _stored(folder, size)
    if metrics is None:
        events = EventFolder(folder / EVENTS_FOLDER)
        events.read()
        metrics = metric_values(events)
        _keep(folder, size, metrics)
    return metrics


def best_metric(values: dict[str, NDArray[np.float64]]) -> BestMetric | None:
    """Return the best metric with its lowest, highest or last value.

    A metric of held-out data comes before one of training data. A metric of speed comes after both.
    NaN is ignored.
    """
    candidates = [tag for tag in values if kind_of(tag) != "last"] or list(values)
    by_worth = sorted(candidates, key=lambda tag: (not _is_good(tag), not _has(tag, HELD_OUT)))
    return next(filter(None, (_best(tag, values[tag]) for tag in by_worth)), None)


def _best(tag: str, values: NDArray[np.float64]) -> BestMetric | None:
    """Return the best value; None where no value is a finite number."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    kind = kind_of(tag)
    chosen = {"min": finite.min(), "max": finite.max(), "last": finite[-1]}
    return BestMetric(tag, kind, float(chosen[kind]))


def _stored(folder: Path, size: int) -> MetricValues | None:
    try:
        stored = fields.read(_StoredValues, folder / METRICS_FILE)
    except (OSError, fields.Damaged):  # none yet, or of another version
        return None
    current = stored.size == size and stored.values.hyperparameters is not None
    return stored.values if current else None


def _keep(folder: Path, size: int, values: MetricValues) -> None:
    try:
        replace_file(folder / METRICS_FILE, fields.encode(_StoredValues(size, values)))
    except OSError:  # a full disk: it is read anew the next time
        return


def _values(events: EventFolder) -> dict[str, NDArray[np.float64]]:
    """Return the values by tag.

    Of several series the first counts: it is rank 0's, or the only one.
    """
    values_of: dict[str, NDArray[np.float64]] = {}
    for key in events.keys:
        points = events.points(key)
        if len(points):
            values_of.setdefault(key.tag, points["value"])
    return values_of


def kind_of(tag: str) -> str:
    """Return which value of a metric is its best: min, max or last.

    A tag with seconds, or with `ms` or `time` at its end, has its best at the minimum. A tag with
    `per_second` has it at the maximum.
    """
    if _has(tag, LOW_IS_GOOD):
        return "min"
    if _has(tag, HIGH_IS_GOOD) or _RATE.search(tag.lower()):
        return "max"
    name = tag.lower()
    return "min" if _DURATION.search(name) and not _POINT_IN_TIME.search(name) else "last"


def _is_good(tag: str) -> bool:
    """Return whether a metric tells how good a run is, and not how fast."""
    return _has(tag, (*LOW_IS_GOOD, *HIGH_IS_GOOD))


def _has(tag: str, words: tuple[str, ...]) -> bool:
    return any(word in tag.lower() for word in words)
