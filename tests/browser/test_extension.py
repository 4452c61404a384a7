"""JupyterLab's extension: runs and studies that are live without a kernel, in outputs, panel and
status bar."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from distrain_nb.run import Store
from distrain_nb.saved.document import RUN_TYPE, STUDY_TYPE
from distrain_nb.study.files import TrialState, read_trials
from distrain_nb.study.study import Study
from distrain_nb.worker.files.folder import CANCEL_FILE, REPORTED_FILE
from distrain_nb.worker.files.status import Progress, State, Status
from distrain_nb.worker.metrics import progress
from tests.browser.jupyter import NOTEBOOK, Lab, OpenNotebook, serve
from tests.browser.measures import kernel_process
from tests.browser.test_cost import COST, LEFT_OUT
from tests.browser.test_monitor import BUSY, LOAD, badge, count_of, go_to_line, view_of
from tests.browser.test_runs import with_runs
from tests.server.stored import stored_run
from tests.study.stored import stored_study, stored_trial

# It goes on until the file is there.
TRAIN = """%%distrain -n 2 --no-wait --name {name}
import time
from pathlib import Path
from distrain_nb import log_metrics
step = 0
while not Path("{name}").exists():
    step += 1
    log_metrics(loss=1 / step, step=step)
    print("line", step)
    time.sleep(0.05)
"""
HAS_END = f"""() => JSON.stringify(
    {NOTEBOOK}.content.model.cells.get(1).toJSON().outputs).includes("succeeded after")"""
CLOSE = "() => { for (const it of [...jupyterapp.shell.widgets('main')]) it.dispose(); }"
OPEN = Callable[..., OpenNotebook]


@pytest.fixture
def opened(extended: Lab, extended_page: Page) -> OPEN:
    return lambda name, *cells: OpenNotebook(extended_page, extended, extended.write(name, *cells))


def expect_live(view: Locator) -> None:
    """One view, with a log that grows."""
    expect(view).to_have_count(1)
    expect(view.locator(".dn-badge")).to_contain_text("running")
    expect(view.locator(".dn-line").nth(5)).to_be_visible()
    before = count_of(view).inner_text()
    expect(count_of(view)).not_to_have_text(before)


def running(page: Page) -> Locator:
    return page.locator(".dn-running")


def test_a_run_is_live_whatever_becomes_of_its_kernel(opened: OPEN) -> None:
    notebook = opened("alive", LOAD, TRAIN.format(name="alive"), BUSY["sleep"])
    page, view = notebook.page, view_of(notebook.page)
    notebook.run_cells(2)
    expect_live(view)
    charts = page.frame_locator("iframe.dn-plot").first
    expect(charts.locator(".scatterlayer .trace")).to_have_count(1)
    notebook.save()

    notebook.run_cell(2)
    notebook.reload(busy=True)
    expect_live(view)
    os.kill(kernel_process(notebook), signal.SIGKILL)
    page.wait_for_selector(".jp-Dialog, .jp-Notebook")
    expect_live(view)

    notebook.reload()
    expect_live(view)
    expect(charts.locator(".scatterlayer .trace")).to_have_count(1)
    go_to_line(view, 1)
    expect(view.locator("[data-row='0']")).to_contain_text("line 1")
    expect(running(page)).to_have_text("● 1 run running")
    view.get_by_role("button", name="Stop").click()
    expect(badge(page)).to_contain_text("cancelled")
    expect(running(page)).to_be_hidden()


def test_a_run_is_live_once_a_server_answers_that_did_not_at_first(opened: OPEN) -> None:
    notebook = opened("late", LOAD, TRAIN.format(name="late"))
    page, view = notebook.page, view_of(notebook.page)
    notebook.run_cells(2)
    expect_live(view)
    notebook.save()
    notebook.shut_down_kernel()
    page.route("**/distrain/**", lambda route: route.abort())
    notebook.reload()
    expect(page.locator(".jp-OutputArea-child").first).to_be_attached()
    page.wait_for_timeout(1000)
    page.unroute("**/distrain/**")
    page.route("**/distrain/**", lambda route: route.fulfill(status=503))
    page.wait_for_timeout(6000)
    expect(running(page)).to_be_hidden()
    page.unroute("**/distrain/**")
    expect_live(view)
    expect(running(page)).to_have_text("● 1 run running")
    (notebook.path.parent / "late").touch()
    expect(badge(page)).to_contain_text("succeeded")


def test_a_run_that_was_saved_before_its_end_gets_it(opened: OPEN) -> None:
    notebook = opened("ending", LOAD, TRAIN.format(name="ending"))
    page = notebook.page
    notebook.run_cells(2)
    expect_live(view_of(page))
    notebook.shut_down_kernel()
    (saved, *_) = notebook.save()["cells"][1]["outputs"]
    assert ", as of 20" in "".join(saved["data"]["text/plain"])
    assert saved["data"][RUN_TYPE]["final"] is False

    (notebook.path.parent / "ending").touch()
    expect(badge(page)).to_contain_text("succeeded")
    notebook.reload()
    expect(badge(page)).to_contain_text("succeeded")
    page.wait_for_function(HAS_END)
    (ended, *_) = notebook.save()["cells"][1]["outputs"]
    text = "".join(ended["data"]["text/plain"])
    assert "succeeded after" in text
    assert "[rank 0] line" in text
    assert "as of" not in text
    assert set(ended["data"]) == {RUN_TYPE, "text/html", "text/plain"}
    html = "".join(ended["data"]["text/html"])
    assert 'class="dn-log' in html and 'class="dn-figure"' in html  # also for readers elsewhere
    expect(view_of(page)).to_have_count(1)


def test_runs_in_the_side_panel_and_a_word_when_one_ends(
    opened: OPEN, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = opened("panel", LOAD, TRAIN.format(name="ends"), TRAIN.format(name="stops"))
    page = notebook.page
    notebook.run_cells(3)
    expect(running(page)).to_have_text("● 2 runs running")
    running(page).click()
    panel = page.locator(".dn-side")
    expect(panel.locator("strong")).to_contain_text("2 running")
    first = panel.locator("li", has_text="ends #")
    expect(first).to_contain_text("running")
    store = Store(notebook.path.parents[1] / "home")
    folder = next(record.folder for record in store.all() if record.name == "ends")
    monkeypatch.setenv(progress.VARIABLE, str(folder / REPORTED_FILE))
    progress.report("log_metrics", 3, 10)
    expect(first).to_contain_text("3 of 10 steps")
    expect(first.get_by_role("progressbar")).to_have_attribute("value", "3")
    stopped = panel.locator("li", has_text="stops #")
    stopped.get_by_role("button", name="Stop run").click()
    expect(stopped).to_contain_text("cancelled")

    older = [stored_run(store, f"{number}\n").id for number in range(105)]
    # All of them, or the last ones would be said together with the run that ends below.
    expect(panel.get_by_role("button", name=f"#{older[-1]} ", exact=False)).to_be_visible()
    expect(panel.locator("ul[aria-label='runs'] li")).to_have_count(100)
    together = page.locator(".Toastify__toast", has_text="runs have ended")
    expect(together.first).to_contain_text("succeeded")  # not one for each
    panel.get_by_role("button", name="Show older").click()
    expect(panel.get_by_role("button", name=f"#{older[0]}", exact=False).first).to_be_visible()
    panel.get_by_role("searchbox").fill("stops cancelled")
    expect(panel.locator("ul[aria-label='runs'] li")).to_have_count(1)
    panel.get_by_role("searchbox").fill("")
    ask = panel.get_by_role("button", name="Notify me")
    page.evaluate("() => { Notification.requestPermission = async () => 'denied'; }")
    ask.click()
    expect(panel.get_by_role("status")).to_contain_text("browser refuses notifications")

    page.evaluate(CLOSE)  # a run before the reader's eyes needs no word
    expect(view_of(page)).to_have_count(0)
    (notebook.path.parent / "ends").touch()
    toast = page.locator(".Toastify__toast", has_text="ends #")
    expect(toast).to_contain_text("succeeded after")
    expect(first).to_contain_text("succeeded")
    toast.get_by_role("button", name="Open").click()
    view = page.locator(".dn-tab section.distrain")
    expect(view.locator(".dn-badge")).to_contain_text("succeeded")
    go_to_line(view, 1)
    expect(view.locator("[data-row='0']")).to_contain_text("line 1")
    expect(page.locator(".dn-tab iframe.dn-plot")).to_have_count(1)


def test_sessions_in_the_side_panel(opened: OPEN) -> None:
    """Stop there ends ranks that stay; that of a run beside them stops the run."""
    start = "%distrain session start -n 2 --name lab"
    notebook = opened("sessions", LOAD, start, TRAIN.format(name="beside"))
    page = notebook.page
    notebook.run_cells(3)
    expect(running(page)).to_contain_text("1 run running")
    running(page).click()
    panel = page.locator(".dn-side")
    lab = panel.locator("ul[aria-label='sessions'] li")
    expect(lab).to_contain_text("session lab")
    expect(lab).to_contain_text("2 ranks · local · ready")
    beside = panel.locator("li", has_text="beside #")
    beside.get_by_role("button", name="Stop run").click()
    expect(beside).to_contain_text("cancelled")
    lab.get_by_role("button", name="Stop session lab").click()
    expect(lab).to_have_count(0)


@pytest.fixture
def sweep(extended: Lab) -> Study:
    """A study of which the last trial goes on; the run of the first has a log."""
    store, study = Store(extended.home), stored_study(extended.home, 12, 20)
    trials = read_trials(study.folder)
    run = stored_run(store, "first line\n")
    replace(trials[0], run=run.id).write(study.folder)
    replace(trials[-1], state=TrialState.RUNNING, end=0.0).write(study.folder)
    store.add("sweep-12", "local", "", "", {}, {"study": study.file.key, "trial": 12})
    return study


def test_a_study_is_live_and_stopped_whatever_becomes_of_its_kernel(
    opened: OPEN, sweep: Study
) -> None:
    notebook = opened("study", LOAD, f"%distrain tune {sweep.id}")
    page, view = notebook.page, notebook.page.locator(".jp-Notebook section.distrain-study")
    notebook.run_cells(2)
    expect(view.locator("tbody tr[data-state]")).to_have_count(12)
    notebook.save()
    notebook.shut_down_kernel()
    notebook.reload()
    expect(view).to_have_count(1)
    COST.write(sweep.folder)
    stored_trial(13, sweep.file.created).write(sweep.folder)
    expect(view.locator(".dn-head")).to_contain_text("12 of 20 trials · 1 running")
    expect(view.locator("tbody tr[data-state]")).to_have_count(13)
    going = view.get_by_role("row", name="trial 12, running", exact=True)
    going.get_by_role("button", name="Stop").click()
    expect(view.locator(".dn-bar [role='status']").first).to_contain_text("12 is being stopped")
    assert (sweep.folder / "stop-12").exists()

    expect(running(page)).to_contain_text("1 study")
    running(page).click()
    panel = page.locator(".dn-side")
    item = panel.locator("ul[aria-label='studies'] li", has_text="sweep #")
    expect(item).to_contain_text("running · 12 of 20 trials")
    expect(item).to_contain_text("best val/loss 0.")
    cost = re.compile(rf" · .*\d EUR.* \({LEFT_OUT}\)$")
    expect(item.locator(".dn-detail")).to_have_text(cost)
    expect(panel).not_to_contain_text("sweep-12")
    item.get_by_role("button", name=f"sweep #{sweep.id}").click()
    tab = page.locator(".dn-tab section.distrain-study")
    expect(tab.locator(".dn-chart[data-tag='val/loss']")).to_be_visible()
    first = tab.get_by_role("row", name="trial 1, succeeded", exact=True)
    first.get_by_role("button", name="Open").click()
    expect(tab.locator(".dn-panel")).to_contain_text("first line")
    item.get_by_role("button", name="Stop study").click()
    expect(item.get_by_role("button", name="Stop study")).to_be_enabled()
    assert (sweep.folder / CANCEL_FILE).exists()
    Status.read(sweep.folder).enter(State.CANCELLED, "cancelled").write(sweep.folder)
    expect(item).to_contain_text("cancelled · 12 of 20 trials")
    expect(tab.locator(".dn-badge").first).to_contain_text("cancelled")
    shows_only_what_its_service_takes(notebook, sweep.folder.parents[1])


def shows_only_what_its_service_takes(notebook: OpenNotebook, home: Path) -> None:
    """A study that is being sent has one bar, its phase's, until there are trials."""
    study = stored_study(home, 0, 9, State.STARTING, 2)
    replace(study.file, name="afar", backend="vertex").write(study.folder)
    sending = Progress("sending the image", 10 << 20, 40 << 20, time.time())
    replace(Status.read(study.folder), progress=sending).write(study.folder)
    item = notebook.page.locator("ul[aria-label='studies'] li", has_text="afar #2")
    item.get_by_role("button", name="afar #2").click()
    tab = notebook.page.locator(".dn-tab section[aria-label='study 2']")
    expect(tab).to_contain_text("sending the image: 10 MiB of 40 MiB")
    expect(tab.locator("progress:visible")).to_have_count(1)
    expect(tab).to_contain_text("0 of 9 trials")
    expect(tab.get_by_role("button", name="More trials")).to_have_count(0)
    stored_trial(1, study.file.created).write(study.folder)
    going = stored_trial(2, study.file.created)
    replace(going, state=TrialState.RUNNING, end=0.0).write(study.folder)
    expect(tab.locator("progress:visible")).to_have_count(2)
    row = tab.get_by_role("row", name="trial 2, running", exact=True)
    expect(row.get_by_role("button", name="Open")).to_be_visible()
    expect(row.get_by_role("button", name="Stop")).to_have_count(0)


def output(**data: Any) -> nbformat.NotebookNode:
    return nbformat.v4.new_output("display_data", data=data)


def test_a_run_of_another_place_stays_a_document(extended: Lab, extended_page: Page) -> None:
    """Its number is that of another run here."""
    page = extended_page
    with_runs(extended)
    run = Store(extended.home).get("last")
    own = {"run": run.id, "home": "", "created": run.created, "part": "run"}
    bundles = [
        {RUN_TYPE: {**own, "created": run.created - 1}, "text/html": "<b>theirs</b>"},
        {RUN_TYPE: own, "text/html": "<b>ours</b>"},
        {RUN_TYPE: {**own, "part": "charts"}, "text/html": "<b>charts</b>"},
    ]
    file = extended.write("colleague", "1")
    written = nbformat.read(extended.folder / file, as_version=4)
    written.cells[0].outputs = [output(**bundle) for bundle in bundles]
    nbformat.write(written, extended.folder / file)
    OpenNotebook(page, extended, file)  # which nobody has said to trust
    area = page.locator(".jp-OutputArea")
    expect(area.locator("section.distrain .dn-badge")).to_contain_text("succeeded")
    expect(area.locator("b", has_text="theirs")).to_be_visible()
    expect(area).not_to_contain_text("ours")
    expect(area).not_to_contain_text("charts")


def test_a_study_that_was_saved_before_its_end_gets_it(extended: Lab, extended_page: Page) -> None:
    study = stored_study(extended.home, 3, 9, number=77)
    own = {"study": 77, "home": "", "created": study.file.created, "final": False}
    saved = output(**{STUDY_TYPE: own, "text/html": "<b>as of 20:01</b>"})
    file = extended.write("study-ends", "0", "1")
    written = nbformat.read(extended.folder / file, as_version=4)
    written.cells[1].outputs = [saved]
    nbformat.write(written, extended.folder / file)
    notebook = OpenNotebook(extended_page, extended, file)
    expect(badge(extended_page)).to_contain_text("running")
    Status.read(study.folder).enter(State.SUCCEEDED, "succeeded").write(study.folder)
    extended_page.wait_for_function(HAS_END.replace("succeeded after", ": succeeded"))
    (ended,) = notebook.save()["cells"][1]["outputs"]
    assert set(ended["data"]) == {STUDY_TYPE, "text/html", "text/plain"}
    assert "dn-trials" in "".join(ended["data"]["text/html"])
    assert ended["data"][STUDY_TYPE]["final"]
    assert "".join(ended["data"]["text/plain"]).startswith("study 77 (sweep): succeeded, 3 of 9")


def test_without_a_server_that_knows_runs_all_is_unchanged(page: Page, tmp_path: Path) -> None:
    with serve(tmp_path, bare=True, extension=True) as bare:
        cells = (LOAD, TRAIN.format(name="bare").replace(" --no-wait", ""))
        notebook = OpenNotebook(page, bare, bare.write("bare", *cells))
        notebook.run_cells(2)
        view = view_of(page)
        expect_live(view)
        (notebook.path.parent / "bare").touch()
        expect(view.locator(".dn-badge")).to_contain_text("succeeded")
        notebook.wait_for_cell(1, 60)
        expect(view).to_have_count(1)
        notebook.save()
        notebook.shut_down_kernel()
        notebook.reload()
        expect(view.locator(".dn-badge")).to_contain_text("succeeded")
        expect(page.locator(".dn-figure svg").first).to_be_visible()
        expect(running(page)).to_be_hidden()
