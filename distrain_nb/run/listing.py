"""Runs at a glance: where each stands and its best metric, for tables and for pandas."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distrain_nb.run.events import EventFolder
from distrain_nb.run.facts import Facts, Watched, facts
from distrain_nb.run.run import Run
from distrain_nb.run.streams import METRICS_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd


LOW_IS_GOOD = ("loss", "error", "perplexity", "mse", "mae", "rmse")
HIGH_IS_GOOD = ("acc", "auc", "f1", "score", "precision", "recall", "reward", "bleu")
HELD_OUT = ("val", "test", "eval")


class Listed(Watched, Protocol):
    """What a list needs of a run."""

    @property
    def experiment(self) -> str: ...
    @property
    def line(self) -> str: ...


@dataclass(frozen=True)
class Best:
    """The metric that a run is judged by, and how far it got: `kind` is min, max or last."""

    tag: str
    kind: str
    value: float


@dataclass(frozen=True)
class Summary:
    """One run of a list. `last` has the newest value of each metric, by tag."""

    facts: Facts
    layout: str
    experiment: str
    last: dict[str, float]
    best: Best | None


class Listing:
    """Reads summaries again and again, each time only what is new; ended runs once."""

    def __init__(self) -> None:
        self._events: dict[int, EventFolder] = {}
        self._ended: dict[int, Summary] = {}

    def read(self, runs: Iterable[Listed]) -> tuple[Summary, ...]:
        """The runs as they are now, in the order given."""
        return tuple(self._ended.get(run.id) or self._summary(run) for run in runs)

    def _summary(self, run: Listed) -> Summary:
        events = self._events.pop(run.id, None) or EventFolder(run.folder / METRICS_FOLDER)
        told = facts(run)
        events.read()
        values = _values(events)
        last = {tag: float(points[-1]) for tag, points in values.items()}
        summary = Summary(told, run.line, run.experiment, last, best(values))
        if told.final:
            self._ended[run.id] = summary
        else:
            self._events[run.id] = events
        return summary


class RunList(list[Run]):
    """Runs; `frame` has them as a DataFrame."""

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each run, by its number; see `frame`."""
        return frame(Listing().read(self))


def best(values: dict[str, np.ndarray[Any, Any]]) -> Best | None:
    """The lowest of what should be low or the highest of what should be high, else the last value.

    A metric of held-out data comes before one of training data; NaN counts for nothing.
    """
    judged = [tag for tag in values if _kind(tag) != "last"] or list(values)
    for tag in sorted(judged, key=lambda tag: not _has(tag, HELD_OUT)):
        finite = values[tag][np.isfinite(values[tag])]
        if len(finite):
            kind = _kind(tag)
            chosen = {"min": finite.min(), "max": finite.max(), "last": finite[-1]}
            return Best(tag, kind, float(chosen[kind]))
    return None


def frame(summaries: Iterable[Summary]) -> pd.DataFrame:
    """A row for each run, by its number.

    `submitted` is in UTC, `duration` in seconds; each metric's newest value is a column of the
    metric's own name.
    """
    import pandas as pd

    now = time.time()
    columns = ["name", "experiment", "state", "where", "layout", "submitted", "duration"]
    columns += ["best_metric", "best_value"]
    rows = [{"run": each.facts.id, **_row(each, now)} for each in summaries]
    made: pd.DataFrame = pd.DataFrame(rows, columns=None if rows else ["run", *columns])
    by_number: pd.DataFrame = made.set_index("run")
    return by_number


def _row(each: Summary, now: float) -> dict[str, Any]:
    import pandas as pd

    return {
        "name": each.facts.name,
        "experiment": each.experiment,
        "state": each.facts.state,
        "where": each.facts.where,
        "layout": each.layout,
        "submitted": pd.Timestamp(each.facts.begin, unit="s", tz="UTC"),
        "duration": each.facts.elapsed(now),
        "best_metric": each.best.tag if each.best else "",
        "best_value": each.best.value if each.best else float("nan"),
        **each.last,
    }


def _values(events: EventFolder) -> dict[str, np.ndarray[Any, Any]]:
    """The values by tag; of several series the first counts, as it is rank 0's or the only one."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for key in events.keys:
        points = events.points(key)
        if len(points):
            found.setdefault(key.tag, points["value"])
    return found


def _kind(tag: str) -> str:
    if _has(tag, LOW_IS_GOOD):
        return "min"
    return "max" if _has(tag, HIGH_IS_GOOD) else "last"


def _has(tag: str, words: tuple[str, ...]) -> bool:
    return any(word in tag.lower() for word in words)
