"""The monitor in Notebook 7, with a real run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.jupyter import NOTEBOOK_7, Lab, OpenNotebook, serve

TRAIN = """%%distrain -n 2 --name endless
import time
from distrain_nb import log_metrics
for step in range(100_000):
    log_metrics(loss=1 / (step + 1), step=step)
    print("step", step)
    time.sleep(0.05)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Lab]:
    with serve(tmp_path, NOTEBOOK_7) as running:
        yield running


@pytest.mark.stands_for("Notebook 7")
def test_a_run_is_shown_and_stopped(server: Lab, page: Page) -> None:
    opened = OpenNotebook(page, server, server.write("seven", "%load_ext distrain_nb", TRAIN))
    opened.run_cells(2)
    view = page.locator(".jp-OutputArea-output section.distrain")
    expect(view.locator(".dn-badge")).to_contain_text("running", timeout=30_000)
    expect(view.locator(".dn-line").nth(5)).to_be_visible(timeout=30_000)
    expect(view.locator(".dn-head")).to_contain_text("this machine · 2 ranks")
    view.get_by_role("button", name="Stop").click()
    expect(view.locator(".dn-badge")).to_contain_text("cancelled", timeout=30_000)
    opened.wait_for_cell(1, 30)
