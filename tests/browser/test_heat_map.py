"""The heat map of slow ranks in a page: what it says to mouse and keys, and what stays of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from distrain_nb.run.pages.curves import curves
from distrain_nb.run.pages.drawn_charts import charts
from distrain_nb.run.streams import streams
from distrain_nb.worker.files.folder import EVENTS_FOLDER, STEP_TIMES_FOLDER
from distrain_nb.worker.metrics import event_format, writer
from tests.browser.test_accessibility import violations
from tests.browser.test_many_rows import NO_LINES, RUNNING, SUMMARY, listed
from tests.browser.waits import becomes
from tests.browser.widget_page import DARK, widget_page
from tests.ui.runs import RunFolder

pytestmark = pytest.mark.slow

RANKS, SLOW, STEPS = 256, 194, 100
COLUMNS = "() => JSON.parse(document.querySelector('.dn-heat').dataset.heat).ended.length"


class Ranks:
    """Their step times, as their processes write them: one of them computes longer."""

    def __init__(self, folder: Path) -> None:
        below = folder / EVENTS_FOLDER / STEP_TIMES_FOLDER
        self._events = [writer._EventFile(below / f"rank-{rank}") for rank in range(RANKS)]
        self._windows = 0

    def go_on(self, windows: int) -> None:
        for _ in range(windows):
            self._windows += 1
            at = 1e9 + 5 * self._windows
            for rank, events in enumerate(self._events):
                more = 0.03 * (rank == SLOW)
                kinds = {"compute": 0.03 + more, "exchange": 0.04 - more, "steps": STEPS}
                events.write(event_format.event(at, self._windows * STEPS, kinds))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "runs" / "1", 1)


@pytest.fixture
def ranks(run: RunFolder) -> Ranks:
    written = Ranks(run.folder)
    written.go_on(21)
    return written


@pytest.fixture
def page(browser: Browser, run: RunFolder, ranks: Ranks) -> Iterator[Page]:
    """The step times of the run, unfolded."""

    def told(path: str, query: dict[str, str]) -> object:
        if path == "runs":
            return {"runs": [{**listed(run.id, time.time()), **RUNNING}]}
        if path.endswith("/charts"):
            return charts(run.folder, query, end=False)
        if path.endswith("/times"):
            return curves(streams(run.folder).times, query)
        return NO_LINES if path.endswith("/log") else {**SUMMARY, "now": time.time()}

    with widget_page(browser, "runs", {"home": ""}, told) as opened:
        opened.get_by_role("button", name="Open").click()
        opened.get_by_text("Where the time goes").click()
        expect(opened.locator(".dn-figure")).to_have_attribute("data-drawn", "")
        yield opened


def test_mouse_and_keys_tell_of_a_cell_and_lead_to_its_rank(page: Page, ranks: Ranks) -> None:
    heat, said = page.locator(".dn-map"), page.locator(".dn-told")
    shown = page.locator(".dn-chart:visible")
    slowest = f"Slowest: rank {SLOW}, by 30 ms a step (computing)."
    expect(said).to_have_text(slowest)
    expect(shown).to_have_count(12)
    first_row, row = 20, 4
    heat.hover(position={"x": 5, "y": first_row + row * (SLOW // 4) + 1})
    expect(said).to_contain_text(f"rank {SLOW} (slowest of 192 to 195), steps 101 to 200, ")
    expect(said).to_contain_text(": 30 ms a step longer than the others, computing")
    heat.hover(position={"x": 5, "y": 2})
    expect(said).to_contain_text("all ranks, steps 101 to 200, ")
    page.mouse.move(0, 0)
    expect(said).to_have_text(slowest)

    heat.focus()
    heat.press("End")
    expect(said).to_contain_text("all ranks, steps 2,001 to 2,100, ")
    heat.press("ArrowDown")
    expect(said).to_contain_text("ranks 0 to 3, steps 2,001 to 2,100, ")
    expect(said).to_contain_text(": no longer than the others (70 ms a step)")
    for _ in range(6):
        heat.press("PageDown")
    expect(said).to_contain_text(f"rank {SLOW} (slowest of 192 to 195), steps 2,001 to 2,100, ")
    ranks.go_on(1)
    becomes(
        page, "() => JSON.parse(document.querySelector('.dn-heat').dataset.heat).ended.length", 21
    )
    expect(heat).to_be_focused()  # though it was drawn anew
    heat.press("ArrowRight")
    expect(said).to_contain_text(f"rank {SLOW} (slowest of 192 to 195), steps 2,101 to 2,200, ")
    heat.press("Enter")
    expect(shown).to_have_count(1)
    expect(shown.locator("b")).to_have_text(f"ms a step, rank {SLOW}")
    heat.press("Enter")
    expect(shown).to_have_count(12)
    for _ in range(8):
        heat.press("PageDown")
    heat.press("Enter")  # a rank whose chart the page didn't have
    expect(shown.locator("b")).to_have_text("ms a step, rank 252")


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_readable_and_no_wider_than_the_page(page: Page, axe: str, dark: bool) -> None:
    if dark:
        page.add_style_tag(content=DARK)
    for width in (1280, 800, 420):
        page.set_viewport_size({"width": width, "height": 900})
        becomes(page.locator(".dn-figure"), "(it) => it.scrollWidth - it.clientWidth", 0)
        assert violations(page, axe, ".dn-figure") == []
