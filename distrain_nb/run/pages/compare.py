"""Runs side by side: what they were given, where they ran and how they ended."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.options import texts
from distrain_nb.run.pages.differences import CAUSE, DURATION, STATE
from distrain_nb.run.pages.listing import Listing, RunRow
from distrain_nb.run.pages.media import hyperparameters
from distrain_nb.run.streams import streams
from distrain_nb.run.summary import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from distrain_nb.run.run import Run

MOST_COMPARED = 50


@dataclass(frozen=True)
class Comparison:
    """Runs, and everything by which they can be told apart, a mapping for each run.

    `settings` are the options of the job and of the layout as they are written, and hyperparameters
    (HParams) of its event files; `outcome` is how it ended, `metrics` has the newest value of each
    metric.
    """

    runs: tuple[Run, ...]
    summaries: tuple[RunRow, ...]
    settings: tuple[Mapping[str, str], ...]
    outcome: tuple[Mapping[str, str], ...]

    @property
    def metrics(self) -> tuple[Mapping[str, float], ...]:
        return tuple(summary.last for summary in self.summaries)

    @property
    def titles(self) -> tuple[str, ...]:
        """`night #3` for each run."""
        return tuple(map(title, self.runs))

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


def title(run: Run) -> str:
    """Return the title of a run among others: its name and number."""
    return f"{run.name} #{run.id}"


def line_name(title: str, series: str) -> str:
    """Return the name of a series of one of several runs: `night #3/rank-0`."""
    return "/".join(filter(None, (title, series)))


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
        tuple({**_settings(run), **_hyperparameters(run)} for run in chosen),
        tuple(_outcome(run, row) for run, row in zip(chosen, rows, strict=True)),
    )


def _settings(run: Run) -> dict[str, str]:
    """Return layout and options as texts, those that take NAME=VALUE by their names."""
    layout = texts(Layout.from_line(run.line))
    settings = {f"--{field.replace('_', '-')}": text for field, text in layout.items()}
    for option, values in run.options.items():
        pairs = option in ("param", "data")
        for value in values:
            name, _, text = value.partition("=") if pairs else ("", "", value)
            label = f"--{option} {name}".strip()
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
        **results,
        **best,
    }
