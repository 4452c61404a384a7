"""A shared space of Studio: two people in one notebook, which the server keeps in step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.jupyter import Lab, new_page
from tests.embedding.cells import end, see_running, train
from tests.embedding.conftest import FROM_SHARED, NEW_FOLDER, started_as
from tests.embedding.spaces import SHARED, SpaceNotebook, space


@pytest.fixture(scope="module")
def shared(wheel: Path, new_folder: NEW_FOLDER) -> Iterator[Lab]:
    python = started_as(new_folder(), wheel, *FROM_SHARED)
    with space(new_folder(), python, *SHARED) as running:
        yield running


def test_both_see_the_run_live_and_its_end(shared: Lab, page: Page, browser: Browser) -> None:
    file = shared.write("both", train("both"))
    mine = SpaceNotebook(page, shared, file)
    with new_page(browser) as other:
        theirs = SpaceNotebook(other, shared, file)
        mine.run_cell(0)
        views = [(each, see_running(each)) for each in (mine, theirs)]
        for each, view in views:
            end(each, "both", view)
    mine.wait_for_cell(0, 120)
