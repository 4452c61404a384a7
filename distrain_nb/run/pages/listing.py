"""Runs at a glance: where each stands and its best metric, for tables and for pandas."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from distrain_nb.errors import RunUnreadable
from distrain_nb.run.charts.figures import figure_of
from distrain_nb.run.charts.lines import Metrics, OverlaidMetrics
from distrain_nb.run.metrics import finite
from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.run.pages.best_metric import BestMetric, final_metric_values, metric_values
from distrain_nb.run.run import Run
from distrain_nb.run.summary import RunSummary, summary_of, unreadable
from distrain_nb.worker.files.folder import ANNOTATION_FILE, EVENTS_FOLDER, STATUS_FILE

# The columns of a frame, as google-cloud-aiplatform's `get_experiment_df` calls them.
PREFIXES = PARAM, BEST, LAST = "param.", "metric.", "time_series_metric."

_Version = tuple[int, ...] | None

_SHOWN_ELSEWHERE = re.compile(r"--(?:on|ranks-per-replica) \S+ ?")

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    import plotly.graph_objects as go

    from distrain_nb.run.pages.best_metric import MetricValues
    from distrain_nb.types import Json


@dataclass(frozen=True)
class RunRow:
    """One run of a list: `last` has the newest value of each metric and `bests` the best, by tag;
    `params` are the values that it was given, by name, and hyperparameters that its program wrote
    for TensorBoard; `study` is the key of a trial's study;
    `alarm` is why it makes no progress."""

    summary: RunSummary
    layout: str
    experiment: str
    last: dict[str, float]
    best: BestMetric | None
    bests: Mapping[str, float] = field(default_factory=dict)
    params: Mapping[str, float | str] = field(default_factory=dict)
    study: str = ""
    alarm: str = ""

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
                "cause": run.cause,
                "alarm": self.alarm,
                "cost": run.cost,
                "cost_note": run.cost_note,
                "annotation": run.annotation.as_json(),
            }
        )

    @property
    def machines(self) -> str:
        """Its layout, less what place and size say."""
        return _SHOWN_ELSEWHERE.sub("", self.layout).strip()

    @property
    def final(self) -> bool:
        return self.summary.final


class HasFolder(Protocol):
    """What stands in a list and has a folder with its state: a run or a study."""

    @property
    def folder(self) -> Path: ...


class HasEnd(Protocol):
    """A row of a list, which stays what it is once it is final."""

    @property
    def final(self) -> bool: ...


Listed = TypeVar("Listed", bound=HasFolder)
Row = TypeVar("Row", bound=HasEnd)


class Rows(ABC, Generic[Listed, Row]):
    """Reads rows again and again, each time only what is new; those of what has ended once, until
    its state is written anew, as it is when a run is fetched again. Threads may share one.
    """

    def __init__(self) -> None:
        self._ended: dict[Path, tuple[_Version, Row]] = {}
        self._reading = Lock()

    def read(self, listed: Iterable[Listed]) -> tuple[Row, ...]:
        """Return the rows as they are now, in the order given."""
        with self._reading:
            return tuple(map(self._now, listed))

    def _now(self, listed: Listed) -> Row:
        try:
            version = _version(listed.folder)
            before, row = self._ended.get(listed.folder, (None, None))
            if row is None or before != version:
                row = self.row(listed)
            if row.final:
                self._ended[listed.folder] = version, row
            return row
        except Exception as error:  # one is no reason to show none
            return self.unreadable(listed, error)

    @abstractmethod
    def row(self, listed: Listed) -> Row:
        """Read the row."""

    @abstractmethod
    def unreadable(self, listed: Listed, error: Exception) -> Row:
        """Return the row of one that can't be read."""


class Listing(Rows[Run, RunRow]):
    """The rows of runs. One that can't be read says so in `summary.error`."""

    def __init__(self) -> None:
        super().__init__()
        self._events: dict[tuple[int, float], EventFolder] = {}

    def unreadable(self, listed: Run, error: Exception) -> RunRow:
        self._events.pop(_key(listed), None)
        why = str(error)
        if not isinstance(error, RunUnreadable):
            why = f"run {listed.id} ({listed.name}) can't be read: {type(error).__name__}: {error}"
        summary = unreadable(listed, why)
        return RunRow(summary, listed.line, listed.experiment, {}, None, study=listed.study)

    def row(self, listed: Run) -> RunRow:
        run, now = listed, summary_of(listed)
        if now.final:
            self._events.pop(_key(run), None)
            return _row_of(run, now, final_metric_values(run.folder))
        events = self._events.setdefault(_key(run), EventFolder(run.folder / EVENTS_FOLDER))
        events.read()
        return _row_of(run, now, metric_values(events))


def _row_of(run: Run, now: RunSummary, values: MetricValues) -> RunRow:
    params = {**_written(values), **dict(parameters(run.options))}
    bests = values.bests or {}
    return RunRow(
        now, run.line, run.experiment, values.last, values.best, bests, params, run.study,
        "" if now.final else now.hang,
    )  # fmt: skip


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


def _key(run: Run) -> tuple[int, float]:
    """Return what names a run: numbers begin anew where somebody removes all by hand."""
    return run.id, run.created


def _version(folder: Path) -> _Version:
    """Return a value that changes with the state there and with what people say of it, whose files
    are replaced at each change."""
    try:
        status = (folder / STATUS_FILE).stat()
    except OSError:  # whoever reads it says what is wrong
        return None
    version = status.st_ino, status.st_mtime_ns
    with suppress(OSError):
        annotation = (folder / ANNOTATION_FILE).stat()
        return *version, annotation.st_ino, annotation.st_mtime_ns
    return version


class RunList(list[Run]):
    """Runs; `frame` has them as a DataFrame."""

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each run, by its number; see `frame`."""
        return frame(Listing().read(self))

    def figure(self, *metrics: str) -> go.Figure:
        """Return the charts of these metrics, or of all, as a figure of plotly: a line for each
        run, as `%distrain compare` draws them.

        Raises OptionError for a metric that there isn't, DistrainError where plotly is missing.
        """
        return figure_of(overlaid(self), metrics, "runs(…)")


def title(run: Run) -> str:
    """Return the title of a run among others: its name and number."""
    return f"{run.name} #{run.id}"


def overlaid(runs: Iterable[Run]) -> OverlaidMetrics:
    """Return the metrics of several runs in one set of charts."""
    return OverlaidMetrics({title(run): Metrics(run.folder) for run in runs})


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
    columns += ["best_metric", "best_value", "tags", "note"]
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
        "tags": row.summary.annotation.tag_text,
        "note": row.summary.annotation.note,
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
    """Return where a column stands: parameters come after what any run has, then metrics."""
    return next((n for n, prefix in enumerate(PREFIXES, 1) if column.startswith(prefix)), 0)
