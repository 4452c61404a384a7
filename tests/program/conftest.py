from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.program.notebooks import Kernel, Place, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    folder = tmp_path / "notebook"
    folder.mkdir()
    return Kernel(folder)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    served = Server(Place(tmp_path_factory.mktemp("server")).folder / "path")
    yield served
    served.close()
