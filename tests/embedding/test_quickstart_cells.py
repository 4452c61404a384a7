"""The quickstart's cells, and the other notebooks, in distribution 2.14.10.

Its Python is 3.11, as that of the tests. torch is the tests' own; see `environments.py`.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from playwright.sync_api import Page, expect

from tests.embedding.cells import open_all
from tests.embedding.conftest import NEW_FOLDER
from tests.embedding.environments import DISTRIBUTION_2, ROOT, copy, environment, install
from tests.embedding.spaces import SpaceNotebook, space


def test_they_train_and_show_it(wheel: Path, page: Page, new_folder: NEW_FOLDER) -> None:
    python = copy(environment(DISTRIBUTION_2, torch=True), new_folder() / "conda")
    install(python, DISTRIBUTION_2, wheel)
    quickstart = nbformat.read(ROOT / "notebooks" / "quickstart.ipynb", as_version=4)
    cells = [each.source for each in quickstart.cells if each.cell_type == "code"]
    with space(new_folder(), python) as place:
        notebook = SpaceNotebook(page, place, place.write("quickstart", *cells[:4]))
        notebook.run_cells(4)
        view = notebook.page.locator("section.distrain").first
        expect(view.locator(".dn-badge")).to_contain_text("running")
        notebook.wait_for_cell(2, 300)
        expect(view.locator(".dn-badge")).to_contain_text("succeeded")
        expect(view).to_contain_text("epoch 12")
        expect(notebook.page.locator(".dn-table tr", has_text="digits")).to_contain_text(
            "succeeded"
        )
        open_all(page, place)
