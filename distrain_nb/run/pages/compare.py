"""Runs side by side: their settings, places and ends."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.text import texts
from distrain_nb.run.pages.code import code_of, differences, digest
from distrain_nb.run.pages.listing import Listing
from distrain_nb.run.pages.media import hyperparameters
from distrain_nb.run.pages.overlay import title
from distrain_nb.run.pages.run_list import RunList
from distrain_nb.run.pages.run_row import RunRow
from distrain_nb.run.streams import streams
from distrain_nb.run.summary import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd
    import plotly.graph_objects as go

    from distrain_nb.run.run import Run

CAUSE, CODE, DURATION, STATE = "cause", "code", "duration", "state"

MOST_COMPARED = 50


@dataclass(frozen=True)
class Comparison:
    """Several runs, and the facts in which they differ.

    Each fact is a mapping for each run. `settings` are the options of job and layout as texts,
    imported packages, a digest of the code, and hyperparameters (HParams) of event files. `outcome`
    is how each run ended. `metrics` has the newest value of each metric.
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
        """A unified diff of each run's code against that of the oldest; empty if nothing
        differs."""
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
    """Raise OptionError for fewer than two runs, or for more than a page can show."""
    if runs < 2:
        raise OptionError(f"compare needs two runs or more, not {runs}")
    if runs > MOST_COMPARED:
        raise OptionError(f"compare takes {MOST_COMPARED} runs at most, not {runs}")


def compare(runs: Iterable[Run], listing: Listing | None = None) -> Comparison:
    """Return a comparison of *runs*, in their order.

    A *listing* that the caller keeps reads only new data. Raises OptionError for too few or too
    many runs.
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
    """Return layout, options and packages as texts.

    Options NAME=VALUE have a text for each name.
    """
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
    """Return the hyperparameters of TensorBoard's HParams plugin, as texts by name."""
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
