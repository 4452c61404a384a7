"""Pictures of one cell of a notebook: in both themes, wide and narrow. And what axe finds there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playwright.sync_api import TimeoutError as NotYet

from tests.browser.jupyter import NOTEBOOK
from tests.browser.test_accessibility import OURS, violations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import FloatRect, Locator, Page

    from tests.browser.jupyter import OpenNotebook

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
WIDTHS = (1280, 420)
SHORTEST, TALLEST = 500, 2600  # pixels
BELOW = 60
SETTLES_MS = 700
DRAWN_WITHIN_MS = 15_000
MOST_TRIES = 5
TO_CELL = """async (number) => {
    const { content } = {NOTEBOOK};
    content.activeCellIndex = number;
    await content.scrollToItem(number, "start");
}""".replace("{NOTEBOOK}", NOTEBOOK)
# Charts have come, those in sight by plotly.
IS_DRAWN = """(cell) => ![...cell.querySelectorAll(".distrain-charts")].some((charts) => {
    const figure = charts.querySelector(":scope > .dn-figure");
    const isPlotly = figure?.querySelector("iframe");
    return "coming" in charts.dataset || (isPlotly && !("drawn" in figure.dataset));
})"""
# What floats above the notebook belongs to the picture.
BOX = """(cell) => {
    const floats = document.querySelectorAll(":popover-open, .jp-Completer:not(.lm-mod-hidden)");
    const parts = cell.querySelectorAll(".jp-InputArea, .jp-OutputArea-child");
    const boxes = [cell, ...parts, ...floats].map((it) => it.getBoundingClientRect());
    const [left, top] = [Math.min(...boxes.map((box) => box.left)), boxes[0].top];
    return {
        x: left, y: Math.max(0, top), width: Math.max(...boxes.map((box) => box.right)) - left,
        height: Math.max(...boxes.map((box) => box.bottom)) - Math.max(0, top),
    };
}"""


@dataclass(frozen=True)
class Stage:
    """A cell in an open notebook."""

    opened: OpenNotebook
    number: int

    @property
    def page(self) -> Page:
        return self.opened.page

    @property
    def place(self) -> str:
        return f".jp-Cell[data-windowed-list-index='{self.number}']"

    @property
    def cell(self) -> Locator:
        return self.page.locator(self.place)

    def show(self) -> None:
        """Scroll to it."""
        self.page.evaluate(TO_CELL, self.number)


def photograph(
    stage: Stage, folder: Path, name: str, again: Callable[[Stage], None] | None = None
) -> Iterator[Path]:
    """Take its pictures as it stands now, `NAME-WIDTH-THEME.png`, and yield each at once.

    `again` brings back what doesn't outlast a change of the window.
    """
    for theme, called in THEMES.items():
        stage.opened.theme(called)
        for width in WIDTHS:
            _fit(stage, width)
            if again:
                again(stage)
            file = folder / f"{name}-{width}-{theme}.png"
            stage.page.screenshot(path=file, clip=_box(stage))
            yield file
    stage.opened.theme(THEMES["light"])


def complaints(stage: Stage, axe: str) -> list[str]:
    """Return what axe finds in our output as it stands now."""
    place = f"{stage.place} {OURS}"
    return violations(stage.page, axe, place) if stage.page.locator(place).count() else []


def _fit(stage: Stage, width: int) -> None:
    """Make the window so wide, and so high that it has the cell whole."""
    page = stage.page
    side = "collapseLeft" if width < WIDTHS[0] else "expandLeft"
    page.evaluate(f"() => window.jupyterapp.shell.{side}()")
    page.set_viewport_size({"width": width, "height": SHORTEST})
    for _ in range(MOST_TRIES):  # what comes into sight may grow
        stage.show()
        page.wait_for_timeout(SETTLES_MS)
        box = _box(stage)
        height = int(min(max(box["y"] + box["height"] + BELOW, SHORTEST), TALLEST))
        size = page.viewport_size
        if size and size["height"] == height:
            break
        page.set_viewport_size({"width": width, "height": height})
    try:
        page.wait_for_function(
            IS_DRAWN, arg=stage.cell.element_handle(), timeout=DRAWN_WITHIN_MS, polling=200
        )
    except NotYet:
        print("  (charts are not drawn)")
    page.wait_for_timeout(SETTLES_MS)


def _box(stage: Stage) -> FloatRect:
    found: FloatRect = stage.cell.evaluate(BOX)
    return found
