"""The JupyterLab and the browsers that all tests here share.

`lab` is the server, `page` a page of Chromium, `notebook` opens a notebook in it, `shown` one for
tests that need no kernel of their own. JupyterLab is loaded into the page once: tests close what
others have opened. Other servers have pages of their own. All end with the last test here:
while Playwright has its event loop in a process, nothing else there can have one, nor a second
Playwright.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.jupyter import PATIENCE_MS, ROOT, Lab, OpenNotebook, chromium, new_page, serve

AXE = ROOT / "page" / "node_modules" / "axe-core" / "axe.min.js"
AS_AT_FIRST = """async () => {
    if (!window.jupyterapp) return;
    for (const path of ["metrics", "resources"]) localStorage.removeItem(`distrain-charts-${path}`);
    const { shell, commands } = window.jupyterapp;
    shell.expandLeft?.();
    await commands.execute("apputils:change-theme", { theme: "JupyterLab Light" });
}"""

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page, Playwright


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with serve(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture(scope="package")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A server whose pages have our extension."""
    with serve(tmp_path_factory.mktemp("extended"), extension=True) as running:
        yield running


@pytest.fixture(scope="package")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A server that knows nothing of runs."""
    with serve(tmp_path_factory.mktemp("bare"), bare=True) as running:
        yield running


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with chromium(playwright) as started:
        yield started


@pytest.fixture(scope="package")
def shared_page(browser: Browser) -> Iterator[Page]:
    with new_page(browser) as opened:
        yield opened


@pytest.fixture
def page(shared_page: Page) -> Iterator[Page]:
    yield shared_page
    leave(shared_page)


@pytest.fixture(scope="package")
def shared_extended_page(browser: Browser) -> Iterator[Page]:
    with new_page(browser) as opened:
        yield opened


@pytest.fixture
def extended_page(shared_extended_page: Page) -> Iterator[Page]:
    """A page for `extended`."""
    yield shared_extended_page
    leave(shared_extended_page)


@pytest.fixture(scope="package")
def shared_bare_page(browser: Browser) -> Iterator[Page]:
    with new_page(browser) as opened:
        yield opened


@pytest.fixture
def bare_page(shared_bare_page: Page) -> Iterator[Page]:
    """A page for `bare`."""
    yield shared_bare_page
    leave(shared_bare_page)


def leave(page: Page) -> None:
    """Let the next test have it as it was at first."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate(AS_AT_FIRST)


@pytest.fixture
def notebook(lab: Lab, page: Page) -> Callable[..., OpenNotebook]:
    """Open a new notebook with the given cells: `notebook("name", "first cell", …)`."""
    return lambda name, *cells: OpenNotebook(page, lab, lab.write(name, *cells))


@pytest.fixture
def shown(lab: Lab, page: Page) -> Callable[..., OpenNotebook]:
    """Open a new notebook as `notebook` does; its kernel may have run cells of other tests."""
    return lambda name, *cells: OpenNotebook(page, lab, lab.write(name, *cells), same_kernel=True)


def axe_core() -> str:
    """Return its source, which is installed with what the page's code is checked with."""
    if not AXE.exists():
        script = ROOT / "scripts" / "page.py"
        with tempfile.TemporaryDirectory() as into:
            subprocess.run([sys.executable, script, "build", into], check=True, timeout=250)
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="package")
def axe() -> str:
    return axe_core()
