"""axe-core finds nothing in what we put into a page, in both themes, also within charts' frames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Frame, Page, expect

from distrain_nb.run import Store
from distrain_nb.worker.files.status import State
from tests.browser.conftest import leave
from tests.browser.jupyter import Lab, OpenNotebook
from tests.browser.test_chart_looks import report
from tests.browser.waits import TAKEN, draw
from tests.browser.widget_page import darken, serving, widget_page
from tests.server.stored import stored_run

FAILING = '%%distrain -n 2\nraise ValueError("odd")'
REFUSED = "%%distrain --nonsense 3\nprint(1)"
VIOLATIONS = """async (place) => {
    const rules = Object.fromEntries(%s.map((id) => [id, { enabled: false }]));
    rules["label-content-name-mismatch"] = { enabled: true };  // axe calls it experimental
    const { violations, incomplete } = await axe.run(place, { iframes: false, rules });
    // What axe can't see of colours, as below a gradient, looks' own tests measure; frames are
    // tested one by one.
    const unclear = incomplete.filter(({ id }) => !["color-contrast", "frame-tested"].includes(id));
    return [...violations, ...unclear].flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 300)} ${failureSummary}`));
}"""
OURS = ".jp-OutputArea-output :is(.distrain, .distrain-charts, .dn-advice, .dn-help)"
OF_WHOLE_PAGES = ["region", "landmark-one-main", "page-has-heading-one"]


@pytest.fixture(scope="module")
def opened(lab: Lab, shared_page: Page) -> Iterator[OpenNotebook]:
    """A notebook that shows a bit of everything."""
    store = Store(lab.home)
    one, other = stored_run(store, "a line\n"), stored_run(store, "a line\n", State.FAILED)
    report(one, 30, "loss", "rate", series="rank-0")
    report(one, 30, "loss", series="rank-1")
    report(other, 30, "loss", "rate")
    cells = (
        "%load_ext distrain_nb",
        f"%distrain attach {one.id}",
        f"%distrain compare {one.id} {other.id}",
        "%distrain",
        "%distrain form",
        FAILING,
        REFUSED,
        "%distrain advise --model-size 1GB",
        "%distrain --help",
        "%distrain doctor",
    )
    notebook = OpenNotebook(shared_page, lab, lab.write("accessible", *cells))
    for number in range(len(cells)):
        notebook.run_cell(number)
        notebook.wait_for_cell(number, 120)
    yield notebook
    leave(shared_page)


def violations(frame: Page | Frame, axe: str, place: str) -> list[str]:
    frame.evaluate(axe)
    found: list[str] = frame.evaluate(VIOLATIONS % OF_WHOLE_PAGES, place)
    return found


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_axe_finds_nothing(opened: OpenNotebook, axe: str, theme: str) -> None:
    page = opened.page
    opened.theme(theme)
    charts = page.locator(".distrain-charts:not([data-coming]) > .dn-figure")
    for figure in charts.all():
        draw(figure)
    assert page.locator(OURS).count() >= 7
    assert violations(page, axe, OURS) == []
    frames = [frame for frame in page.frames if frame.locator("#plot").count()]
    assert len(frames) >= 2
    for frame in frames:
        assert violations(frame, axe, "html") == []


def test_axe_finds_nothing_in_a_run_of_a_plain_page(browser: Browser, home: Path, axe: str) -> None:
    """Nothing is out of sight there, where axe compares no names with what is seen."""
    store = Store(home)
    state = {"summary": {}, "batch": {}, "waiting": False, "kernel": "", "home": ""}
    run = stored_run(store, "a line\n").id
    with widget_page(browser, "run", {**state, "run": run}, serving(store)) as page:
        expect(page.get_by_role("button", name="Wrap")).to_be_visible()
        assert page.evaluate(TAKEN) == []
        assert violations(page, axe, "main") == []
        darken(page)
        assert violations(page, axe, "main") == []


def test_what_a_table_says_stands_left(opened: OpenNotebook) -> None:
    """JupyterLab puts it right in tables of outputs."""
    found = opened.page.evaluate(
        """() => [...document.querySelectorAll(".dn-help :is(td, th), td[style], th[style]")]
            .map((cell) => getComputedStyle(cell).textAlign)"""
    )
    assert len(found) > 40
    assert set(found) == {"left"}
