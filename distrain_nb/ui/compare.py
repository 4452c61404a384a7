"""Runs side by side: one set of charts for all, and a table of what differs."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from distrain_nb.run.metrics.events import Key
from distrain_nb.run.metrics.non_scalars import NonScalars
from distrain_nb.run.pages.compare import Comparison, differences, line_name, title
from distrain_nb.ui import document
from distrain_nb.ui.frontend import frontend
from distrain_nb.ui.lines import ChartLine, Metrics

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


class ComparisonView:
    """Displays a comparison wherever it is; `frame` is the whole of it as a DataFrame."""

    def __init__(self, compared: Comparison) -> None:
        self.compared = compared

    @property
    def frame(self) -> pd.DataFrame:
        return self.compared.frame

    def __repr__(self) -> str:
        rows = [("", *self.compared.titles), *differences(self.compared)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col">{html.escape(t)}</th>' for t in self.compared.titles)
        body = "".join(map(_row_html, differences(self.compared)))
        return (
            f'{document.style()}<div class="distrain" style="overflow-x:auto">'
            f'<table class="dn-table"><thead><tr><th scope="col">what differs</th>{heads}</tr>'
            f"</thead><tbody>{body}</tbody></table></div>"
        )

    def charts(self) -> dict[str, Any]:
        """All metrics with a line for each run, by MIME type; live charts where a page can be."""
        if frontend().has_widgets:
            from distrain_nb.ui.compare_charts import live_charts

            return live_charts(self.compared)
        metrics = OverlaidMetrics.of(self.compared)
        metrics.read()
        return document.chart_bundle(metrics)


class OverlaidMetrics(Metrics):
    """The metrics of several runs as those of one, with the run as the series."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._runs = {title: Metrics(folder) for title, folder in folders.items()}
        self._places: dict[Key, tuple[Metrics, Key]] = {}

    @classmethod
    def of(cls, compared: Comparison) -> OverlaidMetrics:
        return cls({title(run): run.folder for run in compared.runs})

    def read(self) -> tuple[Key, ...]:
        stale = tuple(
            Key(line_name(name, key.series), key.tag)
            for name, metrics in self._runs.items()
            for key in metrics.read()
        )
        self._places = {
            Key(line_name(name, key.series), key.tag): (metrics, key)
            for name, metrics in self._runs.items()
            for key in metrics.keys
        }
        return stale

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key.tag for key in self._places))

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self._places)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for metrics in self._runs.values() for note in metrics.notes)

    @property
    def non_scalars(self) -> NonScalars:
        """Nothing: only scalars are laid over each other."""
        return NonScalars()

    def line(self, key: Key, points: int = 1_000) -> ChartLine:
        metrics, own = self._places[key]
        return metrics.line(own, points)

    def last(self) -> dict[str, float]:
        """Nothing: what is newest in one run is not what is newest in all."""
        return {}


def _row_html(row: tuple[str, ...]) -> str:
    cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
    return f'<tr><th scope="row">{html.escape(row[0])}</th>{cells}</tr>'
