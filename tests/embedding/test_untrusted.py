"""A notebook that isn't trusted, where jupyter-server-documents runs the cells.

No widget of anyone is shown there: the run is, without styles and scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.jupyter import Lab
from tests.embedding.cells import train
from tests.embedding.conftest import NEW_FOLDER, started_as
from tests.embedding.spaces import UNSERVED, SpaceNotebook, space


class Served(SpaceNotebook):
    """Of its kernels the page knows no more than that they are there, for a while."""

    IDLE = SpaceNotebook.CONNECTED


@pytest.fixture(scope="module")
def documents(wheel: Path, new_folder: NEW_FOLDER) -> Iterator[Lab]:
    python = started_as(new_folder(), wheel)
    with space(new_folder(), python, *UNSERVED) as running:
        yield running


def test_the_whole_run_is_shown_and_how_to_trust_the_notebook(documents: Lab, page: Page) -> None:
    notebook = Served(page, documents, documents.write("untrusted", train("untrusted")))
    notebook.run_cell(0)
    shown = notebook.page.locator(".dn-unstyled")
    expect(shown.first).to_contain_text("Trust Notebook")
    expect(shown.first).to_contain_text("running")
    expect(shown.first).to_contain_text("[rank 1] step 5")
    chart = notebook.page.locator("img[alt^='loss by step']")
    expect(chart).to_be_visible()
    assert chart.evaluate("(image) => image.complete && image.naturalWidth > 0")
    (notebook.path.parent / "untrusted").touch()
    expect(shown.first).to_contain_text("succeeded")
    expect(shown.first).to_contain_text("[rank 1] seen")
    expect(notebook.page.locator("section.distrain")).to_be_hidden()
    expect(notebook.page.locator("iframe")).to_have_count(0)
    notebook.wait_for_cell(0, 120)


def test_a_trusted_one_shows_the_same_document_styled(documents: Lab, page: Page) -> None:
    notebook = Served(page, documents, "untrusted.ipynb")
    notebook.command("notebook:trust")
    accept = notebook.page.locator(".jp-Dialog .jp-mod-accept")
    accept.click()
    expect(notebook.page.locator("section.distrain")).to_be_visible()
    expect(notebook.page.locator(".dn-unstyled").first).to_be_hidden()
