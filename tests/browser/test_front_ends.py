"""Quickstart, table and form, in Firefox and in an older JupyterLab with an older kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import nbformat
import pytest
from playwright.sync_api import Browser, Page, Playwright, expect

from distrain_nb.run import Store
from distrain_nb.worker.files.status import State
from tests.browser.environments import JUPYTERLAB_4_2
from tests.browser.jupyter import ROOT, Lab, OpenNotebook, firefox, new_page, serve
from tests.browser.test_chart_looks import assert_readable, figure_of
from tests.browser.test_form import build_by_keyboard, form, new_cell
from tests.browser.test_monitor import badge, view_of
from tests.browser.test_runs import row
from tests.server.stored import stored_run

OPEN = Callable[..., OpenNotebook]
FRONT_ENDS = ("firefox", "jupyterlab-4.2")
EPOCHS = 3


@pytest.fixture(scope="module", params=FRONT_ENDS)
def front_end(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Lab, Page]]:
    """A server, and a page of a browser."""
    if request.param == "firefox":
        lab: Lab = request.getfixturevalue("lab")
        playwright: Playwright = request.getfixturevalue("playwright")
        with firefox(playwright) as browser, new_page(browser) as page:
            yield lab, page
        return
    chromium: Browser = request.getfixturevalue("browser")
    python = JUPYTERLAB_4_2.python(with_frameworks=True)
    with serve(tmp_path_factory.mktemp("older"), python=python) as lab, new_page(chromium) as page:
        yield lab, page


@pytest.fixture
def notebook(front_end: tuple[Lab, Page]) -> OPEN:
    lab, page = front_end
    return lambda name, *cells: OpenNotebook(page, lab, lab.write(name, *cells))


def quickstart() -> list[str]:
    """The notebook's cells up to its run, which is shorter here."""
    found = nbformat.read(ROOT / "notebooks" / "quickstart.ipynb", as_version=4)
    data, model, train = [cell.source for cell in found.cells if cell.cell_type == "code"][:3]
    shorter = train.replace("range(12)", f"range({EPOCHS})")
    assert shorter != train
    return [data, model, shorter]


def test_the_quickstart(notebook: OPEN) -> None:
    opened = notebook("quickstart", "%load_ext distrain_nb", *quickstart())
    page = opened.page
    opened.run_cells(4)
    opened.wait_for_cell(3, 300)
    expect(badge(page)).to_contain_text("succeeded")
    expect(view_of(page).locator(".dn-log")).to_contain_text(f"epoch {EPOCHS:2}")
    figure = figure_of(page)
    figure.scroll_into_view_if_needed()
    frame = figure.frame_locator("iframe")
    expect(frame.locator(".scatterlayer .trace")).to_have_count(2)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        opened.theme(theme)
        assert_readable(figure)
        expect(frame.locator(".modebar-btn")).to_have_count(0)

    opened.save()
    opened.shut_down_kernel()
    opened.reload()
    expect(badge(page)).to_contain_text("succeeded")
    expect(page.locator(".dn-figure path.dn-line").first).to_be_visible()


def test_the_table(notebook: OPEN, front_end: tuple[Lab, Page]) -> None:
    store = Store(front_end[0].home)
    failed, run = stored_run(store, state=State.FAILED), stored_run(store, "a line\n" * 30)
    opened = notebook("table", "%load_ext distrain_nb", "%distrain")
    page = opened.page
    opened.run_cells(2)
    expect(row(page, failed.id)).to_contain_text("✕ failed")
    row(page, failed.id).focus()
    page.keyboard.press("ArrowUp")
    expect(row(page, run.id)).to_be_focused()
    row(page, run.id).get_by_role("button", name="Open").click()
    log = page.locator(".dn-panel", has_text=f"run {run.id}: log and charts")
    expect(log.locator(".dn-line").nth(5)).to_contain_text("a line")
    row(page, run.id).focus()
    page.keyboard.press("Delete")
    page.get_by_role("button", name=f"Yes, delete run {run.id}").click()
    expect(row(page, run.id)).to_have_count(0)
    expect(row(page, failed.id)).to_be_visible()


def test_the_form(notebook: OPEN) -> None:
    opened = notebook("form", "%load_ext distrain_nb", "%distrain form")
    opened.run_cells(2)
    form(opened.page).wait_for()
    build_by_keyboard(opened.page)
    written = new_cell(opened, "Put in a new cell")
    assert written.startswith("%%distrain --on vertex")
    assert "    --reducers 16*n1-highcpu-16\nimport torch" in written
