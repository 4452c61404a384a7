"""Runs at a glance: where each stands and its best metric, for tables and for pandas."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from distrain_nb.errors import RunUnreadable
from distrain_nb.run.metrics import finite
from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.run.pages.best_metric import BestMetric, final_metric_values, metric_values
from distrain_nb.run.run import Run
from distrain_nb.run.summary import UNREADABLE, MonitoredRun, RunSummary, summary_of, unreadable
from distrain_nb.worker.files.folder import EVENTS_FOLDER, STATUS_FILE
from distrain_nb.worker.files.status import State

# The columns of a frame, as google-cloud-aiplatform's `get_experiment_df` calls them.
PREFIXES = PARAM, BEST, LAST = "param.", "metric.", "time_series_metric."

_Version = tuple[int, int] | None

_SAID = re.compile(r"--(?:on|ranks-per-replica) \S+ ?")

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from distrain_nb.run.pages.best_metric import MetricValues
    from distrain_nb.types import Json


class ListedRun(MonitoredRun, Protocol):
    """The part of a run that a list needs."""

    @property
    def experiment(self) -> str: ...
    @property
    def study(self) -> str: ...
    @property
    def line(self) -> str: ...
    @property
    def options(self) -> dict[str, list[str]]: ...


@dataclass(frozen=True)
class RunRow:
    """One run of a list: `last` has the newest value of each metric and `bests` the best, by tag;
    `params` are the values that it was given, by name, and hyperparameters that its program wrote
    for TensorBoard; `study` is the key of a trial's study."""

    summary: RunSummary
    layout: str
    experiment: str
    last: dict[str, float]
    best: BestMetric | None
    bests: Mapping[str, float] = field(default_factory=dict)
    params: Mapping[str, float | str] = field(default_factory=dict)
    study: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the row of a page's table, as JSON values; times in seconds since the epoch."""
        run = self.summary
        return finite.without_nan(
            {
                "id": run.id,
                "name": run.name,
                "state": run.state,
                "final": run.final,
                "place": run.where,
                "size": run.size,
                "machines": self.machines,
                "experiment": self.experiment,
                "study": self.study,
                "best": asdict(self.best) if self.best else None,
                "begin": run.begin,
                "end": run.end,
                "progress": asdict(run.progress) if run.progress else None,
                "cause": self.cause,
            }
        )

    @property
    def machines(self) -> str:
        """Its layout, less what place and size say."""
        return _SAID.sub("", self.layout).strip()

    @property
    def cause(self) -> str:
        """Why it failed, or can't be read, in a line; empty for others."""
        run = self.summary
        has_cause = run.state in (State.FAILED.value, UNREADABLE)
        return run.error.strip().partition("\n")[0] if has_cause else ""


class Listing:
    """Reads summaries again and again, each time only what is new; those of runs that have ended
    once, until their state is written anew, as it is when they are fetched again.

    A run that can't be read is one that says so, in `summary.error`. Threads may share one.
    """

    def __init__(self) -> None:
        self._events: dict[tuple[int, float], EventFolder] = {}
        self._ended: dict[tuple[int, float], tuple[_Version, RunRow]] = {}
        self._reading = Lock()

    def read(self, runs: Iterable[ListedRun]) -> tuple[RunRow, ...]:
        """Return the runs as they are now, in the order given."""
        with self._reading:
            return tuple(map(self._now, runs))

    def _now(self, run: ListedRun) -> RunRow:
        try:
            version, row = self._ended.get(_key(run), (None, None))
            return row if row and version == _version(run) else self._summary(run)
        except RunUnreadable as error:
            why = str(error)
        except Exception as error:  # one run is no reason to show none
            why = f"run {run.id} ({run.name}) can't be read: {type(error).__name__}: {error}"
        self._events.pop(_key(run), None)
        return RunRow(unreadable(run, why), run.line, run.experiment, {}, None, study=run.study)

    def _summary(self, run: ListedRun) -> RunRow:
        version = _version(run)
        now = summary_of(run)
        if now.final:
            self._events.pop(_key(run), None)
            summary = _row_of(run, now, final_metric_values(run.folder))
            self._ended[_key(run)] = version, summary
            return summary
        events = self._events.setdefault(_key(run), EventFolder(run.folder / EVENTS_FOLDER))
        events.read()
        return _row_of(run, now, metric_values(events))


def _row_of(run: ListedRun, now: RunSummary, values: MetricValues) -> RunRow:
    params = {**_written(values), **dict(parameters(run.options))}
    bests = values.bests or {}
    return RunRow(now, run.line, run.experiment, values.last, values.best, bests, params, run.study)


def parameters(options: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, float | str]]:
    """Yield the names and values that a run's `--param` gave it; what reads as a number is one."""
    for text in options.get("param", ()):
        name, _, value = text.partition("=")
        yield name, number(value)


def _written(metrics: MetricValues) -> dict[str, float | str]:
    """Return the hyperparameters that the program itself wrote for TensorBoard."""
    items = (metrics.hyperparameters or {}).items()
    return {name: value for name, value in items if isinstance(value, int | float | str)}


def number(text: str) -> float | str:
    """Return the number that a text is, else the text."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _key(run: ListedRun) -> tuple[int, float]:
    """Return numbers begin anew where somebody removes all runs by hand."""
    return run.id, run.created


def _version(run: ListedRun) -> _Version:
    """Return a value that changes with the run's state, whose file is replaced at each change."""
    try:
        status = (run.folder / STATUS_FILE).stat()
    except OSError:  # whoever reads it says what is wrong
        return None
    return status.st_ino, status.st_mtime_ns


class RunList(list[Run]):
    """Runs; `frame` has them as a DataFrame."""

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each run, by its number; see `frame`."""
        return frame(Listing().read(self))


def frame(summaries: Iterable[RunRow]) -> pd.DataFrame:
    """Return a row for each run, by its number.

    `submitted` is in UTC, `duration` in seconds. Columns are called as `get_experiment_df` of
    google-cloud-aiplatform calls them: `param.lr` for each parameter, given by `--param` or else
    written as a hyperparameter for TensorBoard, `metric.loss` for the best value of each metric,
    and `time_series_metric.loss` for its newest.
    """
    import pandas as pd

    now = time.time()
    columns = ["name", "experiment", "state", "where", "layout", "submitted", "duration"]
    columns += ["best_metric", "best_value"]
    rows = [{"run": summary.summary.id, **_row(summary, now)} for summary in summaries]
    table: pd.DataFrame = pd.DataFrame(rows, columns=None if rows else ["run", *columns])
    by_number: pd.DataFrame = table.set_index("run")
    placed: pd.DataFrame = by_number.reindex(columns=sorted(by_number.columns.map(str), key=_place))
    return placed


def _row(row: RunRow, now: float) -> dict[str, object]:
    import pandas as pd

    return {
        "name": row.summary.name,
        "experiment": row.experiment,
        "state": row.summary.state,
        "where": row.summary.where,
        "layout": row.layout,
        "submitted": pd.Timestamp(row.summary.begin, unit="s", tz="UTC"),
        "duration": row.summary.elapsed(now),
        "best_metric": row.best.tag if row.best else "",
        "best_value": row.best.value if row.best else float("nan"),
        **values_of(row),
    }


def values_of(row: RunRow) -> dict[str, float | str]:
    """Return a run's parameters and metrics, by the names of their columns."""
    return {
        **{f"{PARAM}{name}": value for name, value in row.params.items()},
        **{f"{BEST}{tag}": value for tag, value in row.bests.items()},
        **{f"{LAST}{tag}": value for tag, value in row.last.items()},
    }


def columns_of(rows: Iterable[RunRow]) -> list[str]:
    """Return the columns of all their parameters and metrics, parameters first."""
    return sorted(dict.fromkeys(name for row in rows for name in values_of(row)), key=_place)


def _place(column: str) -> int:
    """Return parameters come after what any run has, then metrics."""
    return next((n for n, prefix in enumerate(PREFIXES, 1) if column.startswith(prefix)), 0)
