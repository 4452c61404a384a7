"""Runs side by side: a table of what differs, and one set of charts for all."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from distrain_nb.run.pages.compare import differences
from distrain_nb.ui import document
from distrain_nb.ui.frontend import frontend
from distrain_nb.ui.overlay import OverlaidMetrics

if TYPE_CHECKING:
    import pandas as pd

    from distrain_nb.run.pages.compare import Comparison


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


def _row_html(row: tuple[str, ...]) -> str:
    cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
    return f'<tr><th scope="row">{html.escape(row[0])}</th>{cells}</tr>'
