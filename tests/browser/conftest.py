"""The JupyterLab and the browser that all tests here share.

`lab` is the server, `page` a fresh page of the browser, `notebook` opens a notebook in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.jupyter import Lab, OpenNotebook, chromium, new_page, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with serve(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with new_page(browser) as fresh:
        yield fresh


@pytest.fixture
def notebook(lab: Lab, page: Page) -> Callable[..., OpenNotebook]:
    """Open a new notebook with the given cells: `notebook("name", "first cell", …)`."""
    return lambda name, *cells: OpenNotebook(page, lab, lab.write(name, *cells))
