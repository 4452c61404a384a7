"""Pages whose Content-Security-Policy forbids inline scripts, scripts made in the page and frames.

Unified Studio sets one for its JupyterLab. No widget of anywidget can load its code there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.jupyter import Lab
from tests.embedding.cells import train
from tests.embedding.conftest import NEW_FOLDER
from tests.embedding.spaces import UNSERVED, SpaceNotebook, space

# What JupyterLab itself needs is left: it checks settings by code that it makes, and styles inline.
STRICT = "script-src 'self' 'unsafe-eval'; frame-src 'self'; object-src 'none'"
# As many a place has it: code from the page's own blobs, as anywidget loads it.
WITH_BLOBS = "script-src 'self' 'unsafe-eval' blob:; frame-src 'self'; object-src 'none'"


@pytest.fixture(scope="module")
def strict(private_python: str, new_folder: NEW_FOLDER) -> Iterator[Lab]:
    with space(new_folder(), private_python, *UNSERVED, policy=STRICT) as running:
        yield running


@pytest.fixture(scope="module")
def with_blobs(private_python: str, new_folder: NEW_FOLDER) -> Iterator[Lab]:
    with space(new_folder(), private_python, *UNSERVED, policy=WITH_BLOBS) as running:
        yield running


def test_a_run_is_shown_where_no_widget_can_be(strict: Lab, page: Page) -> None:
    notebook = SpaceNotebook(page, strict, strict.write("strict", train("strict")))
    notebook.run_cell(0)
    view = notebook.page.locator("section.distrain")
    expect(view).to_contain_text("running")
    expect(view).to_contain_text("step 5")
    expect(notebook.page.locator(".distrain-charts svg").first).to_be_visible()
    (notebook.path.parent / "strict").touch()
    expect(view).to_contain_text("succeeded")
    expect(view).to_contain_text("seen")
    notebook.wait_for_cell(0, 120)


def test_charts_are_drawings_where_no_frame_can_be(with_blobs: Lab, page: Page) -> None:
    notebook = SpaceNotebook(page, with_blobs, with_blobs.write("blobs", train("blobs")))
    notebook.run_cell(0)
    view = notebook.page.locator("section.distrain")
    expect(view.locator(".dn-badge")).to_contain_text("running")
    line = notebook.page.locator(".distrain-charts svg .dn-line").first
    expect(line).to_be_visible()
    # Until then a page may only be slow, and gets drawings anyway.
    expect(view).to_contain_text(re.compile(r"step (1[5-9]|[2-9]\d)\d"))
    before = line.get_attribute("d")
    expect(line).not_to_have_attribute("d", before or "")
    (notebook.path.parent / "blobs").touch()
    expect(view.locator(".dn-badge")).to_contain_text("succeeded")
    notebook.wait_for_cell(0, 120)


def test_the_server_shows_it_live_where_no_widget_can_be(
    private_python: str, page: Page, new_folder: NEW_FOLDER
) -> None:
    with space(new_folder(), private_python, policy=STRICT) as served:
        notebook = SpaceNotebook(page, served, served.write("served", train("served")))
        notebook.run_cell(0)
        view = notebook.page.locator("section.distrain")
        expect(view.locator(".dn-badge")).to_contain_text("running")
        expect(view.locator(".dn-stop")).to_be_visible()
        expect(view.locator(".dn-line").nth(5)).to_be_visible()
        (notebook.path.parent / "served").touch()
        expect(view.locator(".dn-badge")).to_contain_text("succeeded")
        notebook.wait_for_cell(0, 120)
