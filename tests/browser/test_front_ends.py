"""Run, table and form, in Firefox and in an older JupyterLab with an older kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect

from distrain_nb.run import Store
from distrain_nb.worker.files.status import State
from tests.browser.environments import JUPYTERLAB_4_2
from tests.browser.jupyter import Lab, OpenNotebook, firefox, new_page, serve
from tests.browser.test_chart_looks import assert_readable, figure_of
from tests.browser.test_form import build_by_keyboard, form, new_cell
from tests.browser.test_monitor import badge, view_of
from tests.browser.test_runs import row
from tests.server.stored import stored_run

OPEN = Callable[..., OpenNotebook]
FRONT_ENDS = ("firefox", "jupyterlab-4.2")
EPOCHS = 3
# As the quickstart's, without its framework.
CELLS = (
    "%load_ext distrain_nb",
    "data = [1 / (step + 1) for step in range(60)]",
    "def accuracy(loss):\n    return 1 - loss / 2",
    f"""%%distrain -n 2 --name shown
from distrain_nb import log_metrics
for step, loss in enumerate(data):
    log_metrics(step=step, loss=loss)
for epoch in range({EPOCHS}):
    log_metrics(step=step, accuracy=accuracy(data[step // (epoch + 1)]))
    print(f"epoch {{epoch + 1:2}}")
""",
)


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
    python = JUPYTERLAB_4_2.python()
    with serve(tmp_path_factory.mktemp("older"), python=python) as lab, new_page(chromium) as page:
        yield lab, page


@pytest.fixture
def notebook(front_end: tuple[Lab, Page]) -> OPEN:
    lab, page = front_end
    return lambda name, *cells: OpenNotebook(page, lab, lab.write(name, *cells))


def test_a_run(notebook: OPEN) -> None:
    opened = notebook("shown", *CELLS)
    page = opened.page
    opened.run_cells(len(CELLS))
    opened.wait_for_cell(len(CELLS) - 1, 120)
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
