"""The table of a comparison where a page can keep it current."""

from __future__ import annotations

from typing import TYPE_CHECKING

import traitlets

from distrain_nb.run import Store
from distrain_nb.server import table
from distrain_nb.ui.widgets import STATIC, LiveWidget, answers

if TYPE_CHECKING:
    from distrain_nb.run.pages.compare import Comparison


class ComparisonWidget(LiveWidget):
    """A table of the differences between the runs of these numbers, as in `3,5`. See
    `page/src/compare.js`."""

    _esm = STATIC / "compare.js"
    _css = STATIC / "runs.css"

    runs = traitlets.Unicode().tag(sync=True)


def live_table(compared: Comparison) -> ComparisonWidget:
    """Return a widget that answers the page for as long as the kernel lives."""
    store = Store(compared.runs[0].folder.parents[1])
    numbers = ",".join(str(run.id) for run in compared.runs)
    widget = ComparisonWidget(store.folder, runs=numbers)
    answers(widget, lambda *_: table.side_by_side(store, {"runs": numbers}))
    return widget
