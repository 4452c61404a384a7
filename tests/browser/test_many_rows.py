"""Tables of hundreds of rows lay out a page of them, whatever they are sorted by."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, expect

from distrain_nb.run import Store
from distrain_nb.run.pages.curves import curves
from distrain_nb.run.pages.drawn_charts import charts
from distrain_nb.run.streams import streams
from distrain_nb.server.table import compared_runs
from distrain_nb.study.answers import answer
from distrain_nb.study.importances import Importances
from distrain_nb.worker.files.folder import OPTIONS_FILE
from distrain_nb.worker.files.status import State, Status
from tests.browser.test_accessibility import violations
from tests.browser.waits import TAKEN, becomes, holds
from tests.browser.widget_page import widget_page
from tests.study.stored import stored_study, stored_trial
from tests.ui.runs import RunFolder

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
RUNNING = {"state": "running", "final": False, "end": None}
SUMMARY = {
    "id": 1, "name": "many", "phase": "", "where": "", "size": "", "begin": 0.0, "steps": [],
    "labels": {}, "pools": {}, "progress": None, "note": "", "error": "", **RUNNING,
}  # fmt: skip
NO_LINES = {"lines": [], "bars": [], "first": 0, "rows": 0, "total": 0, "end": False}
# The names of plotly's lines, and how many of these stand back.
LINES = "() => [...new Set(plot._fullData.map((line) => line.name))]"
DIM = "() => document.querySelectorAll('.scatterlayer > .trace.dim').length"
STATES = ("succeeded", "failed", "cancelled")


# How many charts were drawn anew within one frame, each time.
CHARTS_A_FRAME = """() => {
    window.__drawn = [];
    new MutationObserver((records) => {
        const charts = new Set(records.map(({ target }) => target.closest(".dn-chart")));
        charts.delete(null);
        if (charts.size) window.__drawn.push(charts.size);
    }).observe(document.querySelector(".dn-sheet"), WHAT);
}"""
MARKS_A_FRAME = CHARTS_A_FRAME.replace("WHAT", "{ attributeFilter: ['class'], subtree: true }")
CHARTS_A_FRAME = CHARTS_A_FRAME.replace("WHAT", "{ childList: true, subtree: true }")
PALE = """() => [...document.querySelectorAll(".dn-chart")]
    .map((chart) => chart.querySelectorAll(".dn-out").length)
    .filter((count) => count > 0)"""

NOTE_MARKS = """() => {
    window.__drawn = [];
    window.__marks = [...document.querySelector(".dn-chart").querySelectorAll(".dn-dot")];
    return window.__marks.length;
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


def served(run: RunFolder) -> Callable[[str, dict[str, str]], object]:
    """What a server answers of one run that goes on, without a log."""

    def told(path: str, query: dict[str, str]) -> object:
        if path == "runs":
            return {"runs": [{**listed(run.id, time.time()), **RUNNING}]}
        if path.endswith("/charts"):
            return charts(run.folder, query, end=False)
        if path.endswith("/metrics"):
            return curves(streams(run.folder).metrics, query)
        return NO_LINES if path.endswith("/log") else {**SUMMARY, "now": time.time()}

    return told


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
            for cell in (name, page.locator("td.dn-best")):  # in two lines of a row, nothing is cut
                cut = cell.evaluate("(cell) => cell.scrollWidth - cell.clientWidth")
                assert cut <= 0 or width > 1000, width
        expect(state).to_contain_text("ValueError: shapes (2, 3) and (4, 5) differ (rank 1)")


def test_a_study_draws_one_chart_a_frame(browser: Browser, tmp_path: Path) -> None:
    study, importances = stored_study(tmp_path, 60, 100), Importances()
    state = {"study": 1, "run": 0, "state": {}, "waiting": False, "kernel": ""}

    def told(_: str, query: dict[str, str]) -> object:
        return answer(study, importances, query)

    with widget_page(browser, "study", {"home": "", **state}, told) as page:
        rows = page.locator("tr[data-state]")
        expect(rows).to_have_count(50)
        importances.of(study.spec, study.all_trials(), wait=True)
        expect(page.locator(".dn-chart[data-tag='importance'] .dn-shares tr").first).to_be_visible()
        page.evaluate(CHARTS_A_FRAME)
        stored_trial(61, study.file.created).write(study.folder)
        expect(page.locator(".dn-sheet [data-trial='61']")).not_to_have_count(0)
        becomes(page, "() => window.__drawn.length >= 8", True)
        assert set(page.evaluate("() => window.__drawn")) == {1}
        marks = page.evaluate(NOTE_MARKS)
        stored_trial(62, study.file.created).write(study.folder)
        becomes(page, "() => window.__drawn.length >= 5", True)
        kept = page.evaluate("() => window.__marks.filter((mark) => mark.isConnected).length")
        assert kept > marks / 2  # those whose place and colour are the same as before


def test_a_brush_marks_one_chart_a_frame(browser: Browser, tmp_path: Path) -> None:
    study, importances = stored_study(tmp_path, 100, 100, State.SUCCEEDED), Importances()
    state = {"study": 1, "run": 0, "state": {}, "waiting": False, "kernel": ""}

    def told(_: str, query: dict[str, str]) -> object:
        return answer(study, importances, query)

    with widget_page(browser, "study", {"home": "", **state}, told) as page:
        rows = page.locator("tr[data-state]")
        expect(rows).to_have_count(50)
        page.evaluate(MARKS_A_FRAME)
        page.get_by_role("slider", name="width from", exact=True).focus()
        page.keyboard.press("PageUp")
        page.keyboard.press("PageUp")
        note = page.locator(".dn-chart-note", has_text="of 100 trials")
        passing = int(note.inner_text().partition(" ")[0])
        assert 0 < passing < 100
        expect(rows).to_have_count(min(50, passing))
        becomes(page, f"() => ({PALE})().length >= 6", True)
        assert set(page.evaluate("() => window.__drawn")) == {1}
        page.get_by_role("button", name="Clear brushes").click()
        becomes(page, PALE, [])


def test_many_ranks_are_a_band_until_all_are_wanted(
    browser: Browser, tmp_path: Path, axe: str
) -> None:
    run = RunFolder(tmp_path / "runs" / "1", 1)
    for rank in range(64):
        run.report(50, series=f"rank-{rank}", loss=rank / 1000 + 5 * (rank == 17))
    with widget_page(browser, "runs", {"home": ""}, served(run)) as page:
        page.get_by_role("button", name="Open").click()
        figure, kept = page.locator(".dn-figure"), page.locator(".dn-kept")
        expect(figure).to_have_attribute("data-drawn", "")
        plot = next(frame for frame in page.frames if frame != page.main_frame)
        expect(kept.locator(".dn-series")).to_have_text(
            ["mean", "min to max of 64", "rank-0", "rank-17"]
        )
        assert plot.evaluate(LINES) == ["min", "max", "mean", "rank-0", "rank-17"]
        for width in (1280, 800, 420):
            page.set_viewport_size({"width": width, "height": 900})
            becomes(figure, "(it) => it.scrollWidth - it.clientWidth", 0)
            assert violations(page, axe, ".distrain-charts") == []
        page.get_by_text("All 64 lines").click()
        names = page.locator(".dn-many").get_by_role("button")
        expect(names).to_have_text([f"rank-{rank}" for rank in range(64)])
        expect(kept).to_be_hidden()
        holds(plot, f"({LINES})().length === 64")
        names.nth(17).hover()
        holds(plot, f"({DIM})() === 63")
        page.mouse.move(0, 0)
        holds(plot, f"({DIM})() === 0")
        assert violations(page, axe, ".distrain-charts") == []


def test_pinned_metrics_and_axes_are_kept_from_run_to_run(
    browser: Browser, tmp_path: Path, axe: str
) -> None:
    run = RunFolder(tmp_path / "runs" / "1", 1)
    run.report(3, **{f"metric{number:02}": float(number) for number in range(62)})
    with widget_page(browser, "runs", {"home": ""}, served(run)) as page:
        page.get_by_role("button", name="Open").click()
        figure, pinned = page.locator(".dn-figure"), page.locator(".dn-pinned .dn-chart")
        expect(figure).to_have_attribute("data-drawn", "")
        expect(pinned).to_have_count(0)
        page.get_by_role("button", name="pin metric07", exact=True).click()
        expect(page.get_by_role("button", name="pin metric07", exact=True)).to_be_focused()
        expect(pinned).to_have_count(1)
        page.get_by_label("Filter metrics").fill("metric61")  # the page holds the first sixty
        page.get_by_role("button", name="pin metric61", exact=True).click()
        page.get_by_label("X axis").select_option("relative")

        page.reload()
        page.get_by_role("button", name="Open").click()
        expect(figure).to_have_attribute("data-drawn", "")
        expect(pinned).to_have_count(2)
        tags = pinned.evaluate_all("(charts) => charts.map((chart) => chart.dataset.tag)")
        assert tags == ["metric07", "metric61"]
        plot = next(frame for frame in page.frames if frame != page.main_frame)
        plot.wait_for_function("() => plot.data?.filter((line) => line.x.length).length === 61")
        expect(page.get_by_label("X axis")).to_have_value("relative")
        for width in (1280, 420):
            page.set_viewport_size({"width": width, "height": 900})
            becomes(figure, "(it) => it.scrollWidth - it.clientWidth", 0)
        assert violations(page, axe, ".distrain-charts") == []
        page.get_by_role("button", name="pin metric61", exact=True).click()
        expect(pinned).to_have_count(1)


NARROW = """() => {
    const heads = [...document.querySelectorAll(".dn-compared tbody th")];
    return Math.min(...heads.map((head) => head.clientWidth));
}"""
HIGHEST = """() => {
    const rows = [...document.querySelectorAll(".dn-compared tr")];
    return Math.max(...rows.map((row) => row.clientHeight));
}"""


def test_many_runs_side_by_side_can_be_read_at_any_width(browser: Browser, home: Path) -> None:
    """The column of names keeps its words whole, and numbers have no more digits than they need."""
    store = Store(home)
    rates = [0.1 / 3**place for place in range(7)]
    runs = [store.add(f"night-shift-{place}", "local", "", "") for place in range(7)]
    for record, rate in zip(runs, rates, strict=True):
        Status(State.RUNNING).enter(State.SUCCEEDED, "succeeded").write(record.folder)
        options = {"param": [f"lr={rate!r}", f"optimizer.weight_decay={rate**2!r}"]}
        (record.folder / OPTIONS_FILE).write_text(json.dumps(options))
    numbers = ",".join(str(record.id) for record in runs)
    answer = json.loads(json.dumps(compared_runs(store, {"runs": numbers})))
    lr = next(row for row in answer["rows"] if row["name"] == "--param lr")
    assert lr["texts"][:2] == ["0.1", "0.0333333"]
    state = {"home": "", "runs": numbers}
    with widget_page(browser, "compare", state, lambda *_: answer, styles="runs") as page:
        expect(page.get_by_role("table", name="runs compared")).to_be_visible()
        assert page.evaluate(TAKEN) == []
        for width in (1280, 720, 420):
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=f"/tmp/w/c.tmp/compare-{width}.png")
            assert page.evaluate(NARROW) > 90
            assert page.evaluate(HIGHEST) < 90
