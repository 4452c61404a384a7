"""Runs side by side: what they were given, where they ran and how they ended.

Runs side by side as rows of a table: state and cause, then by what they differ.
"""

from __future__ import annotations

import math
import os.path
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.text import texts
from distrain_nb.run.metrics import finite
from distrain_nb.run.pages.best_metric import kind_of
from distrain_nb.run.pages.code import code_of, differences, digest
from distrain_nb.run.pages.listing import Listing
from distrain_nb.run.pages.media import hyperparameters
from distrain_nb.run.pages.overlay import title
from distrain_nb.run.pages.run_list import RunList
from distrain_nb.run.pages.run_row import RunRow
from distrain_nb.run.streams import streams
from distrain_nb.run.summary import duration, short_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd
    import plotly.graph_objects as go

    from distrain_nb.run.run import Run
    from distrain_nb.types import Json

CAUSE, CODE, DURATION, STATE = "cause", "code", "duration", "state"
DATA = "--data "
DIGITS = 6
LONG = 20  # characters that are left out where all paths begin with them


@dataclass(frozen=True)
class ComparedRow:
    """One thing that runs have: a text for each run, and `numbers` where texts stand for some.

    `best` are the places of the best values, where one can say which are good.
    """

    name: str
    texts: tuple[str, ...]
    numbers: tuple[float | None, ...] = ()
    best: tuple[int, ...] = ()

    @property
    def differs(self) -> bool:
        return len(set(self.texts)) > 1  # "" is as good as nothing

    def as_json(self) -> dict[str, Json]:
        """Return JSON values; a number that is not finite is None."""
        return finite.without_nan({**asdict(self), "differs": self.differs})


def rows(compared: Comparison) -> list[ComparedRow]:
    """Return the rows: state, cause, then what differs, then what doesn't."""
    names = _names(compared.outcome)
    outcome = {name: _of_outcome(compared, name) for name in names}
    first = [outcome.pop(STATE)]
    if any((cause := outcome.pop(CAUSE)).texts):
        first.append(cause)
    settings = [
        ComparedRow(name, _shortened(name, tuple(row.get(name, "") for row in compared.settings)))
        for name in _names(compared.settings)
    ]
    metrics = [_of_metric(compared, tag) for tag in _names(compared.metrics)]
    return first + sorted([*settings, *outcome.values(), *metrics], key=lambda row: not row.differs)


def _shortened(name: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return numbers of many digits in so few that they still differ, and paths of data without the
    folders that all of them are below."""
    if any(len(text) > DIGITS and _is_fraction(text) for text in texts):
        for digits in (DIGITS, 9, 12, 15):
            short = tuple(f"{float(t):.{digits}g}" if _is_fraction(t) else t for t in texts)
            if len(set(short)) == len(set(texts)):
                return short
    distinct = set(filter(None, texts))
    shared = os.path.commonprefix(list(distinct)).rpartition("/")[0]  # noqa: RUF071 - cut at slashes
    if not name.startswith(DATA) or len(distinct) < 2 or len(shared) < LONG:
        return texts
    return tuple(f"…{text[len(shared) :]}" if text else "" for text in texts)


def _is_fraction(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and not text.lstrip("+-").isdigit()
    except ValueError:
        return False


def differing(rows: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the names whose values are not the same in all, in order of first appearance."""
    return tuple(name for name in _names(rows) if len({row.get(name) for row in rows}) > 1)


def _names(rows: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows for name in row))


def _of_outcome(compared: Comparison, name: str) -> ComparedRow:
    texts = tuple(row.get(name, "") for row in compared.outcome)
    if name == DURATION:
        now = time.time()
        return ComparedRow(name, texts, tuple(r.summary.elapsed(now) for r in compared.summaries))
    bests = [row.best for row in compared.summaries]
    if not any(best and best.name == name for best in bests):
        return ComparedRow(name, texts)
    numbers = [best.value if best and best.name == name else None for best in bests]
    kind = next(best.kind for best in bests if best and best.name == name)
    return ComparedRow(name, texts, tuple(numbers), _best(numbers, kind))


def _of_metric(compared: Comparison, tag: str) -> ComparedRow:
    numbers = [row.get(tag) for row in compared.metrics]
    texts = tuple("" if number is None else short_number(number) for number in numbers)
    return ComparedRow(tag, texts, tuple(numbers), _best(numbers, kind_of(tag)))


def _best(numbers: Sequence[float | None], kind: str) -> tuple[int, ...]:
    """Return the places of the lowest or highest; none where all are the same, or there is but
    one."""
    finite = [number for number in numbers if number is not None and number == number]
    if kind == "last" or len(set(finite)) < 2:
        return ()
    best = min(finite) if kind == "min" else max(finite)
    return tuple(index for index, number in enumerate(numbers) if number == best)


MOST_COMPARED = 50


@dataclass(frozen=True)
class Comparison:
    """Runs, and everything by which they can be told apart, a mapping for each run.

    `settings` are the options of the job and of the layout as they are written, the packages that
    it imports, a digest of its code, and hyperparameters (HParams) of its event files; `outcome` is
    how it ended, `metrics` has the newest value of each metric.
    """

    runs: tuple[Run, ...]
    summaries: tuple[RunRow, ...]
    settings: tuple[Mapping[str, str], ...]
    outcome: tuple[Mapping[str, str], ...]

    @property
    def metrics(self) -> tuple[Mapping[str, float], ...]:
        return tuple(summary.last for summary in self.summaries)

    @property
    def diff(self) -> str:
        """How the code of each run differs from that of the oldest: a unified diff, empty where
        nothing does."""
        runs = sorted(self.runs, key=lambda run: run.id)
        return differences([title(run) for run in runs], [code_of(run) for run in runs])

    @property
    def titles(self) -> tuple[str, ...]:
        """`night #3` for each run."""
        return tuple(map(title, self.runs))

    def figure(self, *metrics: str) -> go.Figure:
        """Return the charts of these metrics as `RunList.figure` does."""
        return RunList(self.runs).figure(*metrics)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each run, by its number; a column for each setting, outcome and metric."""
        import pandas as pd

        parts = zip(self.runs, self.settings, self.outcome, self.metrics, strict=True)
        rows: list[dict[str, object]] = [
            {"run": run.id, "name": run.name, **settings, **outcome, **metrics}
            for run, settings, outcome, metrics in parts
        ]
        table: pd.DataFrame = pd.DataFrame(rows).set_index("run")
        return table


def check_count(runs: int) -> None:
    """Raise OptionError where so many are no comparison, or one that no page could show."""
    if runs < 2:
        raise OptionError(f"compare needs two runs or more, not {runs}")
    if runs > MOST_COMPARED:
        raise OptionError(f"compare takes {MOST_COMPARED} runs at most, not {runs}")


def compare(runs: Iterable[Run], listing: Listing | None = None) -> Comparison:
    """Return the runs side by side, in the order given; a `listing` that is kept reads only what is
    new.

    Raises OptionError for too few or too many.
    """
    chosen = tuple({run.id: run for run in runs}.values())
    check_count(len(chosen))
    rows = (listing or Listing()).read(chosen)
    return Comparison(
        chosen,
        rows,
        tuple(
            {**settings_of(run), **_hyperparameters(run), CODE: digest(code_of(run))}
            for run in chosen
        ),
        tuple(_outcome(run, row) for run, row in zip(chosen, rows, strict=True)),
    )


def settings_of(run: Run) -> dict[str, str]:
    """Return layout, options and packages as texts, those that take NAME=VALUE by their names."""
    layout = texts(Layout.from_line(run.line))
    settings = {f"--{field.replace('_', '-')}": text for field, text in layout.items()}
    for option, values in run.options.items():
        equals = {"param": "=", "data": "=", "package": "=="}.get(option)
        for value in values if option != "tag" else ():
            name, _, text = value.partition(equals) if equals else ("", "", value)
            label = f"{'' if option == 'package' else '--'}{option} {name}".strip()
            settings[label] = f"{settings[label]}, {text}" if label in settings else text
    return settings


def _hyperparameters(run: Run) -> dict[str, str]:
    """Return what the program gave TensorBoard's HParams plugin, as texts by name."""
    with streams(run.folder).metrics.read() as events:
        by_series = hyperparameters(events.non_scalars)
    return {
        " ".join(filter(None, ("hparam", series, name))): str(value)
        for series, values in by_series.items()
        for name, value in values.items()
    }


def _outcome(run: Run, row: RunRow) -> dict[str, str]:
    best = {row.best.name: f"{row.best.value:.6g}"} if row.best else {}
    results = {"results": ", ".join(run.results)} if row.summary.final else {}
    return {
        STATE: row.summary.state,
        DURATION: duration(row.summary.elapsed(time.time())),
        CAUSE: row.summary.cause,
        "tags": row.summary.annotation.tag_text,
        "note": row.summary.annotation.note,
        **results,
        **best,
    }
