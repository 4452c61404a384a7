"""The panel below a cell that shows what keeps it from running, with its repairs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from distrain_nb.findings import Severity
from distrain_nb.ui import outputs
from distrain_nb.ui.frontend import frontend
from distrain_nb.ui.problem import Cells, Point, points_of, repaired
from distrain_nb.ui.problem_view import as_html, as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distrain_nb.errors import DistrainError
    from distrain_nb.findings import Finding

SHOWN = "Nothing was started; the problems are listed above."  # of a cell or a line


def show_problem(error: DistrainError, cells: Cells) -> None:
    """Display it below the running cell, and leave to IPython what the display doesn't have."""
    points = points_of(error.findings, cells)
    if not frontend().has_widgets:
        error.rendered = as_text(points, colours=True)
        return
    _display(points, Severity.ERROR)
    error.rendered = SHOWN


def show_warnings(findings: Sequence[Finding], cells: Cells) -> None:
    """Display what does not keep a cell from running: in lines where it has no repair."""
    if any(finding.fixes for finding in findings) and frontend().has_widgets:
        _display(points_of(findings, cells), Severity.WARNING)
        return
    for finding in findings:
        outputs.say(cells.located(str(finding)))


def _display(points: tuple[Point, ...], severity: Severity) -> None:
    key = f"problem-{uuid4().hex}"
    page = style() + as_html(points, key, severity)
    outputs.show({"text/html": page, "text/plain": as_text(points)})
    if any(point.repairs for point in points):
        _offer_repairs(points, key)


def _offer_repairs(points: tuple[Point, ...], key: str) -> None:
    """Let the page make buttons of the repairs: this process says what they make of a cell."""
    import traitlets

    from distrain_nb.ui.widgets import STATIC, Widget

    class Repairs(Widget):
        _esm = STATIC / "problem.js"

        key = traitlets.Unicode().tag(sync=True)

    def on_message(widget: Any, message: dict[str, Any], _: Any) -> None:
        point, number = points[int(message["point"])], int(message["repair"])
        text = repaired(point, number, str(message["source"]))
        widget.send({"kind": "repaired", "id": message["id"], "source": text})

    Repairs(key=key).on_msg(on_message)


@lru_cache(maxsize=1)
def style() -> str:
    from distrain_nb.ui.widgets import STATIC

    css = (STATIC / "problem.css").read_text(encoding="utf-8")
    return f"<style>{' '.join(css.split())}</style>"
