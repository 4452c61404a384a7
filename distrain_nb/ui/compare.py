"""Runs side by side: a table of what differs, and one set of charts for all."""

from __future__ import annotations

import html
import time
from typing import TYPE_CHECKING, Any

from distrain_nb.escapes import plain
from distrain_nb.run.pages.compare import CAUSE, STATE
from distrain_nb.run.pages.compared_rows import rows
from distrain_nb.run.pages.overlay import overlaid
from distrain_nb.run.summary import clock
from distrain_nb.saved import document
from distrain_nb.saved.markup import LITERAL, OWN_KEYS
from distrain_nb.saved.tables import as_text
from distrain_nb.ui.frontend import frontend

if TYPE_CHECKING:
    import pandas as pd

    from distrain_nb.run.pages.compare import Comparison
    from distrain_nb.run.pages.compared_rows import ComparedRow


class ComparisonView:
    """Displays a comparison wherever it is; `frame` is the whole of it as a DataFrame.

    Where the page has widgets the table is live; what is saved is how it was at first.
    """

    def __init__(self, compared: Comparison) -> None:
        self.compared = compared
        self._rows = [row for row in rows(compared) if row.differs or row.name in (STATE, CAUSE)]

    @property
    def frame(self) -> pd.DataFrame:
        return self.compared.frame

    @property
    def diff(self) -> str:
        """How the code of each run differs from that of the oldest, as a unified diff."""
        return self.compared.diff

    def __repr__(self) -> str:
        rows = ((row.name, *row.texts) for row in self._rows)
        return as_text(("", *self.compared.titles), rows, plain_lines(self.compared.diff))

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": f"{self._live_mark()}{self.still()}", "text/plain": repr(self)}

    def still(self) -> str:
        """Return the table in HTML that needs neither kernel nor scripts."""
        heads = "".join(f'<th scope="col">{html.escape(t)}</th>' for t in self.compared.titles)
        body = "".join(map(_row_html, self._rows))
        goes_on = any(not summary.summary.final for summary in self.compared.summaries)
        when = f'<p class="dn-soft">as of {clock(time.time())}</p>' if goes_on else ""
        return (
            f'{document.style()}<div class="distrain {LITERAL}" {OWN_KEYS} style="overflow-x:auto">'
            f'<table class="dn-table"><thead><tr><th scope="col">what differs</th>{heads}</tr>'
            f"</thead><tbody>{body}</tbody></table>{_diff_html(self.compared.diff)}{when}</div>"
        )

    def _live_mark(self) -> str:
        if not frontend().has_widgets:
            return ""
        from distrain_nb.ui.live_comparison import live_table
        from distrain_nb.ui.widgets import mark

        return mark(live_table(self.compared))

    def charts(self) -> dict[str, Any]:
        """Return all metrics with a line for each run, by MIME type; live charts where a page can
        be."""
        if frontend().has_widgets:
            from distrain_nb.ui.live_comparison import live_charts

            return live_charts(self.compared)
        metrics = overlaid(self.compared.runs)
        metrics.read()
        return document.chart_bundle(metrics)


def plain_lines(text: str) -> str:
    """Return text for a terminal, line by line."""
    return "\n".join(map(plain, text.splitlines()))


def _diff_html(diff: str) -> str:
    """Return a unified diff, folded; its classes are those of `page/src/runs/comparison.js`."""
    if not diff:
        return ""
    kinds = {"+": "dn-added", "-": "dn-removed", "@": "dn-soft"}
    lines = "\n".join(
        f'<span class="{kinds.get(line[:1], "")}">{html.escape(line)}</span>'
        for line in diff.splitlines()
    )
    return (
        '<details class="dn-folded"><summary>How the code differs</summary>'
        f'<pre class="dn-diff" role="group" tabindex="0" aria-label="diff">{lines}</pre></details>'
    )


def _row_html(row: ComparedRow) -> str:
    cells = "".join(_cell_html(text, index in row.best) for index, text in enumerate(row.texts))
    return f'<tr><th scope="row">{html.escape(row.name)}</th>{cells}</tr>'


def _cell_html(text: str, is_best: bool) -> str:
    star = ' <span role="img" aria-label="best">★</span>' if is_best else ""
    kind = ' class="dn-top"' if is_best else ""
    return f"<td{kind}>{html.escape(text)}{star}</td>"
