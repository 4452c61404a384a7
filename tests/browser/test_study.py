"""The view of a study in JupyterLab: trials that arrive, brushes, what can be asked of it, and
what a saved notebook keeps of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Locator, Page, expect

from distrain_nb.run import Store
from distrain_nb.study.files import STUDIES_FOLDER, TrialState, read_trials
from distrain_nb.study.study import Study
from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.status import State, Status
from tests.browser.jupyter import NOTEBOOK, Lab, OpenNotebook
from tests.browser.test_accessibility import violations
from tests.browser.test_chart_looks import report
from tests.browser.waits import becomes
from tests.server.stored import stored_run
from tests.study.stored import report_curve, stored_curves, stored_study, stored_trial

TRIALS, AT_ONCE = 200, 5
LOAD = "%load_ext distrain_nb"
VIEW = ".jp-OutputArea-output section.distrain-study"
DOTS = """() => document.querySelectorAll(
    "section.distrain-study [data-tag='lr'] .dn-dot:not(.dn-out)").length"""
PARTS = (".dn-head", ".dn-progress", ".dn-study-sheet", ".dn-chart", ".dn-bar")
SIZES = f"""() => {list(PARTS)}.map((it) => {{
    const found = document.querySelector("section.distrain-study " + it);
    return Math.round(found.getBoundingClientRect().height);
}})"""
# The document under the live view has come to what is drawn at last.
IS_LEFT = f"""() => JSON.stringify({NOTEBOOK}.content.model.toJSON())
    .includes("importance for val/loss")"""
ARE_APART = """() => {
    const names = [...document.querySelectorAll("section.distrain-study .dn-axis")];
    const boxes = names.map((it) => it.getBoundingClientRect());
    const apart = (a, b) => a === b || a.right <= b.left || b.right <= a.left
        || a.bottom <= b.top || b.bottom <= a.top;
    return boxes.length > 1 && boxes.every((a) => boxes.every((b) => apart(a, b)));
}"""
INKS = """() => ["stopped", "running", "succeeded", "failed"].map((state) => {
    const row = document.querySelector(`section.distrain-study tr[data-state=${state}]`);
    return getComputedStyle(row.querySelector(".dn-state")).color;
})"""
CURVES = "[data-tag='learning curves of val/loss']"
MIDDLE = """(line) => {
    const { x, y } = line.getPointAtLength(line.getTotalLength() * 0.7);
    const { left, top, width, height } = line.ownerSVGElement.getBoundingClientRect();
    return [left + (width * x) / 1000, top + (height * y) / 1000];
}"""
NARROW_PX = 460  # of a page
WORKED = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
# What costs the page's thread something, too, on this machine and beside whatever else it does.
PLAIN_TABLES = """(count) => { for (let drawn = 0; drawn < count; drawn++) {
    const table = document.createElement("table");
    for (let row = 0; row < 200; row++)
        for (let cell = 0; cell < 10; cell++)
            (cell ? table.rows[row] : table.insertRow()).insertCell().textContent = row * cell;
    document.body.append(table);
    table.getBoundingClientRect();
    table.remove();
} }"""
MOST_TABLES = 3  # of as many rows as there are trials: what an update may cost


def new_study(lab: Lab, trials: int, wanted: int, state: State = State.RUNNING) -> Study:
    """A study with a number of its own among those of the server."""
    others = len(list((lab.home / STUDIES_FOLDER).glob("*")))
    return stored_study(lab.home, trials, wanted, state, others + 1)


def opened_study(opened: OpenNotebook) -> Locator:
    opened.run_cells(2)
    view = opened.page.locator(VIEW)
    expect(view.get_by_role("button", name="More trials")).to_be_visible()
    return view


def in_notebook(lab: Lab, page: Page, study: Study) -> OpenNotebook:
    show = f"%distrain tune {study.id}"
    return OpenNotebook(page, lab, lab.write(f"study-{study.id}", LOAD, show))


class Work:
    """CPU time of the page's thread on scripts, styles and layout, from now on."""

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._before = self._seconds()

    def end_ms(self) -> float:
        return 1000 * (self._seconds() - self._before)

    def _seconds(self) -> float:
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return float(sum(each["value"] for each in metrics if each["name"] in WORKED))


def test_trials_arrive_while_the_page_stays_quick(lab: Lab, page: Page) -> None:
    """What an update costs the page's thread is its own time: other work beside doesn't count, but
    may slow it, as it slows the drawing of plain tables."""
    study = new_study(lab, 1, TRIALS)
    view = opened_study(in_notebook(lab, page, study))
    expect(view.locator(".dn-bar").first).to_contain_text("1 trial")
    page.evaluate(
        """() => {
            const seen = window.__drawn = { updates: 0 };
            const figure = document.querySelector("section.distrain-study .dn-figure");
            const count = new MutationObserver(() => { seen.updates += 1; });
            count.observe(figure, { childList: true, subtree: true });
        }"""
    )
    work, began = Work(page), time.monotonic()
    for number in range(2, TRIALS + 1):
        stored_trial(number, study.file.created).write(study.folder)
        if number % AT_ONCE == 0:
            page.wait_for_timeout(100)
    Status.read(study.folder).enter(State.SUCCEEDED, "succeeded").write(study.folder)
    expect(view.locator(".dn-badge")).to_contain_text("succeeded")
    expect(view.locator(".dn-bar").first).to_contain_text(f"{TRIALS} trials")
    spent, seconds = work.end_ms(), time.monotonic() - began
    updates = page.evaluate("() => window.__drawn.updates")
    valued = sum(bool(trial.goals) for trial in read_trials(study.folder))
    becomes(page, DOTS, valued)
    assert updates >= 3
    table = Work(page)
    page.evaluate(PLAIN_TABLES, 20)
    table_ms = table.end_ms() / 20
    print(f"{updates} updates, {spent / updates:.0f} ms of CPU each")
    print(f"a plain table takes {table_ms:.1f} ms; {spent=} {seconds=}")
    most = MOST_TABLES * table_ms
    assert 0 < spent < most * (updates + seconds)  # its clocks go on, however slow all else is


@pytest.fixture
def sweep(lab: Lab) -> Iterator[Study]:
    """A study that goes on: the first trial's run has a log and charts, the last two still run."""
    run = stored_run(Store(lab.home), "first line\n")
    report(run, 30, "loss")
    study = new_study(lab, 60, 80)
    trials = read_trials(study.folder)
    replace(trials[0], run=run.id).write(study.folder)
    for trial in trials[-2:]:
        replace(trial, state=TrialState.RUNNING, end=0.0).write(study.folder)
    yield study
    Status.read(study.folder).enter(State.CANCELLED, "cancelled").write(study.folder)


def grip(view: Locator, name: str) -> Locator:
    return view.get_by_role("slider", name=name, exact=True)


def passing(view: Locator) -> int:
    """How many trials the brushes let pass, of 60."""
    note = view.locator(".dn-chart-tools .dn-chart-note")
    expect(note).to_contain_text(" of 60 trials")
    found = re.match(r"\d+", note.inner_text())
    assert found
    return int(found[0])


def brushed(view: Locator, page: Page) -> None:
    """By keys and by the mouse; charts and table show the same trials."""
    lower = grip(view, "lr from")
    lower.focus()
    for _ in range(5):
        page.keyboard.press("PageUp")
    expect(lower).to_have_attribute("aria-valuenow", "50")
    expect(lower).to_have_attribute("aria-valuetext", "0.001")
    some = passing(view)
    assert 0 < some < 60
    expect(view.locator(".dn-bar").first).to_contain_text(f"{some} of 60 trials")
    expect(view.locator("tbody tr[data-state]")).to_have_count(some)
    page.keyboard.press("Escape")
    expect(view.locator("tbody tr[data-state]")).to_have_count(
        50
    )  # of 60, until they are asked for
    box = view.locator(".dn-brush").first.bounding_box()
    assert box
    x, top, height = box["x"] + box["width"] / 2, box["y"], box["height"]
    page.mouse.move(x, top + 0.3 * height)
    page.mouse.down()
    page.mouse.move(x, top + 0.7 * height, steps=4)
    page.mouse.up()
    assert 0 < passing(view) < 60
    view.get_by_role("button", name="Clear brushes").click()
    expect(view.locator("tbody tr[data-state]")).to_have_count(50)


def pointed_at(view: Locator, page: Page, trial: int) -> None:
    """A dot tells of its trial, and a click finds its row."""
    box = view.locator(f"[data-tag='val/loss'] [data-trial='{trial}']").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(view.locator(".dn-trial-hint")).to_contain_text(f"trial {trial}, succeeded")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(view.get_by_role("row", name=f"trial {trial}, succeeded", exact=True)).to_be_focused()


def test_a_study_is_looked_at_and_looked_after(
    lab: Lab, page: Page, sweep: Study, axe: str
) -> None:
    run = read_trials(sweep.folder)[0].run
    view = opened_study(in_notebook(lab, page, sweep))
    expect(view.locator(".dn-head")).to_contain_text("58 of 80 trials · 2 running")
    expect(view.locator(".dn-progress").first).to_contain_text(
        re.compile(r"about \d.*best val/loss 0\.2")
    )
    expect(view.locator(".dn-shares")).to_contain_text("lr")
    brushed(view, page)
    pointed_at(view, page, 1)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
            theme,
        )
        page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")
        assert violations(page, axe, VIEW) == []

    for kind in ("PNG", "CSV"):
        with page.expect_download() as saved:
            view.get_by_role("button", name=kind).first.click()
        assert saved.value.suggested_filename == f"study-{sweep.id}.{kind.lower()}"
        assert saved.value.path().stat().st_size > 2_000

    heading = view.get_by_role("columnheader", name="val/loss")
    heading.get_by_role("button").click()
    expect(view.locator("tbody tr[data-state]").first).to_have_class(re.compile("dn-top"))
    row = view.get_by_role("row", name="trial 1, succeeded", exact=True)
    row.focus()
    page.keyboard.press("Enter")
    panel = view.get_by_role("region", name=f"trial 1, run {run}: log and charts")
    expect(panel).to_contain_text("first line")
    expect(panel.locator(".dn-chart")).to_have_count(1)
    panel.get_by_role("button", name="Close").click()

    going = view.get_by_role("row", name="trial 60, running", exact=True)
    going.get_by_role("button", name="Stop").click()
    expect(view.locator(".dn-bar [role='status']").first).to_contain_text(
        "trial 60 is being stopped"
    )
    assert (sweep.folder / "stop-60").exists()
    field = view.get_by_role("spinbutton", name="number of trials to add")
    field.fill("7")
    field.press("Enter")
    expect(view.locator(".dn-head")).to_contain_text("58 of 87 trials")
    view.get_by_role("button", name="Stop", exact=True).first.click()
    becomes_stopped(sweep)


@pytest.fixture
def learning(lab: Lab) -> Iterator[Study]:
    """A study whose trials have curves: the last one still runs."""
    store, study = Store(lab.home), new_study(lab, 12, 20)
    runs = [stored_run(store) for _ in range(12)]
    trials = read_trials(study.folder)
    for trial, run in zip(trials, runs, strict=True):
        replace(trial, run=run.id).write(study.folder)
    stored_curves(study, 400)
    last = replace(trials[-1], run=runs[-1].id, state=TrialState.RUNNING, end=0.0)
    last.write(study.folder)
    Status(State.RUNNING).write(runs[-1].folder)
    yield study
    Status.read(study.folder).enter(State.CANCELLED, "cancelled").write(study.folder)
    for run in runs:
        store.delete(run.record)


def middle_of(view: Locator, trial: int) -> tuple[float, float]:
    """A place on a trial's curve, on the page."""
    line = view.locator(f"{CURVES} svg:not(.dn-above) [data-trial='{trial}']")
    x, y = line.evaluate(MIDDLE)
    return float(x), float(y)


def test_learning_curves_answer_to_the_mouse(
    lab: Lab, page: Page, learning: Study, axe: str
) -> None:
    view = opened_study(in_notebook(lab, page, learning))
    chart = view.locator(CURVES)
    expect(chart.locator(".dn-trial")).to_have_count(12)
    expect(chart.locator(".dn-trial").last).to_have_class("dn-trial dn-best")
    expect(chart.locator(".dn-trial.dn-is-stopped")).to_have_count(1)
    chart.scroll_into_view_if_needed()
    best = learning.best.number
    page.mouse.move(*middle_of(view, best))
    expect(view.locator(".dn-trial-hint")).to_contain_text(f"trial {best}, succeeded")
    lit = view.locator(f".dn-above [data-trial='{best}']")
    expect(lit).to_have_count(view.locator(f"svg:not(.dn-above) > [data-trial='{best}']").count())
    page.mouse.click(*middle_of(view, best))
    row = view.get_by_role("row", name=f"trial {best}, succeeded", exact=True)
    expect(row).to_be_focused()
    assert violations(page, axe, VIEW) == []

    running = chart.locator(".dn-trial.dn-is-running")
    before = running.get_attribute("d")
    trial = read_trials(learning.folder)[-1]
    report_curve(Store(lab.home).get(str(trial.run)).folder, [0.01] * 400, first=160)
    replace(trial, steps=560).write(learning.folder)
    expect(running).not_to_have_attribute("d", before or "")

    for _ in range(5):
        grip(view, "lr from").press("PageUp")
    expect(chart.locator(".dn-trial:not(.dn-out)")).not_to_have_count(12)
    expect(chart.locator(".dn-out").first).to_have_css("stroke-opacity", "0")


def test_names_of_axes_and_colours_of_states_can_be_told_apart(
    lab: Lab, page: Page, sweep: Study
) -> None:
    view = opened_study(in_notebook(lab, page, sweep))
    expect(view.locator(".dn-axis")).to_have_count(6)
    assert len(set(page.evaluate(INKS))) == 4
    becomes(page, ARE_APART, True)
    page.set_viewport_size({"width": NARROW_PX, "height": 1000})
    becomes(page, ARE_APART, True)


def becomes_stopped(study: Study) -> None:
    end = time.monotonic() + 60
    while not (study.folder / CANCEL_FILE).exists():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_saved_notebook_keeps_charts_and_table_where_they_were(lab: Lab, page: Page) -> None:
    study = new_study(lab, 40, 40, State.SUCCEEDED)
    opened = in_notebook(lab, page, study)
    opened.run_cells(2)
    view = page.locator(VIEW)
    expect(view.locator("tbody tr[data-state]")).to_have_count(40)
    expect(view.locator(".dn-shares")).to_contain_text("lr")
    becomes(page, IS_LEFT, True)
    live = page.evaluate(SIZES)
    best = study.best.number
    saved = json.dumps(opened.save()["cells"][1], ensure_ascii=False)
    assert "widget-view" not in saved and len(saved) < 300_000
    lab.trust(opened.path.name)
    opened.shut_down_kernel()
    opened.reload()
    still = page.locator(f"{VIEW}.dn-styled")
    expect(still).to_contain_text(f"in trial {best}")
    expect(still.locator("tbody tr[data-state]")).to_have_count(40)
    assert page.evaluate(SIZES) == live
