"""Browser and spaces that the tests here share, each started when a test first asks for it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.jupyter import PATIENCE_MS, chromium, new_page
from tests.embedding.environments import (
    DISTRIBUTION_4,
    ROOT,
    copy,
    environment,
    install,
    uv,
)
from tests.embedding.spaces import Space, give, space

NEW_FOLDER = Callable[[], Path]
# What `start-jupyter-server` removes before JupyterLab starts: of a private space, of a shared one.
FROM_SHARED = ("jupyter-server-documents",)
FROM_PRIVATE = (
    *FROM_SHARED, "jupyter-collaboration", "jupyter-collaboration-ui", "jupyter-docprovider",
    "jupyter-server-ydoc",
)  # fmt: skip


@pytest.fixture(scope="package")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as it stands, as a user gets it: with what Jupyter and IPython find by it."""
    folder = tmp_path_factory.mktemp("wheel")
    uv("build", "--wheel", "--out-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="package")
def new_folder() -> Iterator[NEW_FOLDER]:
    """Makes folders that the user of a space may enter and change, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="distrain-spaces-") as base:
        Path(base).chmod(0o755)

        def made() -> Path:
            folder = Path(tempfile.mkdtemp(dir=base))
            give(folder)
            return folder

        yield made


@pytest.fixture(scope="package")
def private_python(wheel: Path, new_folder: NEW_FOLDER) -> str:
    return started_as(new_folder(), wheel, *FROM_PRIVATE)


@pytest.fixture(scope="package")
def private(private_python: str, new_folder: NEW_FOLDER) -> Iterator[Space]:
    """A private space, which tests leave without runs that go on."""
    with space(new_folder(), private_python) as running:
        yield running


def started_as(folder: Path, wheel: Path | None, *removed: str) -> str:
    """The interpreter of distribution 4, with the project, without what its start removes."""
    python = copy(environment(DISTRIBUTION_4), folder / "conda")
    if wheel:
        install(python, DISTRIBUTION_4, wheel)
    if removed:
        uv("pip", "uninstall", "--python", python, *removed)
    give(folder, folders_only=True)  # its files are those of other environments too
    return python


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """While Playwright has its event loop in a process, kernels can't be asked from there."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright, chromium(playwright) as started:
        yield started


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with new_page(browser) as opened:
        yield opened
