"""`%pip install` in a page that is open: its server and the page know nothing of us yet."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.embedding.cells import train
from tests.embedding.conftest import FROM_PRIVATE, NEW_FOLDER, started_as
from tests.embedding.spaces import SpaceNotebook, space


def test_the_next_cell_shows_its_run_and_one_after_a_reload_all_of_it(
    wheel: Path, page: Page, new_folder: NEW_FOLDER
) -> None:
    python = started_as(new_folder(), None, *FROM_PRIVATE)
    install = (f"%pip install --quiet {wheel}", "%load_ext distrain_nb")
    with space(new_folder(), python) as place:
        written = place.write("fresh", *install, train("fresh"), train("after", "--no-wait"))
        notebook = SpaceNotebook(page, place, written)
        notebook.run_cells(3)
        view = page.locator("section.distrain")
        expect(page.locator(".jp-Cell").nth(1)).to_contain_text("reload this page")
        expect(view).to_contain_text("running")
        expect(view).to_contain_text("step 5")
        (notebook.path.parent / "fresh").touch()
        expect(view).to_contain_text("succeeded")
        notebook.wait_for_cell(2, 120)
        notebook.save()
        notebook.reload()
        notebook.run_cell(3)
        live = page.locator(".jp-Cell").nth(3).locator("section.distrain")
        expect(live.locator(".dn-badge")).to_contain_text("running")
        expect(live.locator(".dn-stop")).to_be_visible()
        (notebook.path.parent / "after").touch()
        expect(live.locator(".dn-badge")).to_contain_text("succeeded")
