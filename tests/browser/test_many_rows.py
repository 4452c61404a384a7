"""Tables of hundreds of rows lay out a page of them, whatever they are sorted by."""

from __future__ import annotations

import time
from pathlib import Path

from playwright.sync_api import Browser, expect

from distrain_nb.study.answers import answer
from distrain_nb.study.importances import Importances
from tests.browser.waits import becomes
from tests.browser.widget_page import widget_page
from tests.study.stored import stored_study, stored_trial

RUNS = 500
CAUSE = "rank 1 failed first: ValueError: shapes (2, 3) and (4, 5) differ"
SIDEWAYS = """() => {
    const frame = document.querySelector(".dn-runs");
    return frame.scrollWidth - frame.clientWidth;
}"""
# Cells that another one of the row lies on.
COVERED = """() => {
    const boxes = [...document.querySelectorAll("tr[data-state] td")]
        .map((cell) => [cell.className, cell.getBoundingClientRect()])
        .filter(([, box]) => box.width && box.height);
    return boxes.flatMap(([one, a], place) => boxes.slice(place + 1)
        .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
        .map(([other]) => `${one} and ${other}`));
}"""
STATES = ("succeeded", "failed", "cancelled")


# How many charts were drawn anew within one frame, each time.
CHARTS_A_FRAME = """() => {
    window.__drawn = [];
    new MutationObserver((records) => {
        const charts = new Set(records.map(({ target }) => target.closest(".dn-chart")));
        charts.delete(null);
        if (charts.size) window.__drawn.push(charts.size);
    }).observe(document.querySelector(".dn-sheet"), { childList: true, subtree: true });
}"""


def listed(number: int, now: float) -> dict[str, object]:
    """A run as the server lists it; the later, the worse its loss."""
    return {
        "id": number,
        "name": f"run-{number % 7}",
        "state": STATES[number % 3],
        "final": True,
        "place": "this machine",
        "size": "2 ranks",
        "machines": "",
        "experiment": "",
        "study": "",
        "cause": "",
        "begin": now - 60 * (RUNS - number),
        "end": now,
        "best": {"tag": "loss", "value": number / RUNS},
        "progress": None,
    }


def test_of_hundreds_of_runs_a_page_has_rows_and_all_are_sorted(browser: Browser) -> None:
    now = time.time()
    runs = {"runs": [listed(number, now) for number in range(RUNS, 0, -1)]}
    with widget_page(browser, "runs", {"home": ""}, lambda *_: runs) as page:
        rows = page.locator("tr[data-state]")
        expect(rows).to_have_count(50)
        expect(rows.first).to_have_attribute("aria-label", "run 500, run-3, cancelled")
        rows.first.get_by_role("checkbox").check()
        page.get_by_title("Sort by best metric").click()
        expect(rows.first).to_have_attribute("aria-label", "run 1, run-1, failed")
        expect(rows).to_have_count(50)
        rows.first.get_by_role("checkbox").check()
        expect(page.get_by_role("button", name="Compare 2")).to_be_enabled()
        page.get_by_role("button", name="Show 50 more of 450").click()
        expect(rows).to_have_count(100)
        expect(rows.nth(50)).to_be_focused()
        page.get_by_role("searchbox").fill("#499")
        expect(rows).to_have_count(1)
        expect(page.get_by_role("button", name="Show")).to_have_count(0)


def test_state_and_name_are_in_sight_at_any_width(browser: Browser) -> None:
    now = time.time()
    run = {**listed(7, now), "state": "failed", "experiment": "nights of long names"}
    runs = {"runs": [{**run, "name": "a-run-with-quite-a-name", "cause": CAUSE}]}
    with widget_page(browser, "runs", {"home": ""}, lambda *_: runs) as page:
        expect(page.locator("tr[data-state]")).to_have_count(1)
        for width in (1280, 960, 880, 640, 420):
            page.set_viewport_size({"width": width, "height": 900})
            becomes(page, SIDEWAYS, 0)
            state, name = page.locator("td.dn-state"), page.locator("td.dn-name")
            for cell, least in ((state, 90), (name, 100)):
                box = cell.bounding_box()
                assert box and box["width"] >= least and box["x"] + box["width"] <= width, width
            becomes(page, COVERED, [])
        expect(state).to_contain_text("ValueError: shapes (2, 3) and (4, 5) differ (rank 1)")


def test_a_study_draws_one_chart_a_frame(browser: Browser, tmp_path: Path) -> None:
    study, importances = stored_study(tmp_path, 60, 100), Importances()
    state = {"study": 1, "run": 0, "state": {}, "waiting": False, "kernel": ""}

    def told(_: str, query: dict[str, str]) -> object:
        return answer(study, importances, query)

    with widget_page(browser, "study", {"home": "", **state}, told) as page:
        rows = page.locator("tr[data-state]")
        expect(rows).to_have_count(50)
        importances.of(study.spec, study.each(), wait=True)
        expect(page.locator(".dn-chart[data-tag='importance'] .dn-shares tr").first).to_be_visible()
        page.evaluate(CHARTS_A_FRAME)
        stored_trial(61, study.file.created).write(study.folder)
        expect(page.locator(".dn-sheet [data-trial='61']")).not_to_have_count(0)
        becomes(page, "() => window.__drawn.length >= 7", True)
        assert set(page.evaluate("() => window.__drawn")) == {1}
