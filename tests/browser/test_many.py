"""A page full of monitors."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.jupyter import OpenNotebook
from tests.browser.test_monitor import LOAD

OPEN = Callable[..., OpenNotebook]
MONITORS = 20
SHORT = """%%distrain -n 2 --name short
from distrain_nb import log_metrics
for step in range(300):
    log_metrics({"loss": 1 / (step + 1), "accuracy": step / 300}, step=step, every_rank=True)
    print("step", step)
"""
SCROLL = """(n) => [...window.jupyterapp.shell.widgets("main")].find((w) => w.content?.widgets)
    .content.scrollToItem(n)"""


def test_a_page_with_twenty_finished_monitors(shown: OPEN) -> None:
    cells = [LOAD, SHORT, *["%distrain attach"] * (MONITORS - 1)]
    opened = shown("twenty", *cells)
    page = opened.page
    opened.run_cells(MONITORS + 1)
    opened.wait_for_cell(MONITORS, 240)
    for number in range(1, MONITORS + 1):
        page.evaluate(SCROLL, number)
        view = page.locator(".jp-Cell").nth(number).locator("section.distrain")
        expect(view.locator(".dn-badge")).to_contain_text("succeeded")
    expect(view.locator(".dn-log")).to_contain_text("step 299")
    assert page.locator("section.distrain *").count() < MONITORS * 500
