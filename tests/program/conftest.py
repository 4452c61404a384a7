from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from distrain_nb.worker.rank.process_state import TABLE, read, write
from tests.program.notebooks import Kernel, Place, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def process_state() -> Iterator[None]:
    """Undo what a notebook of a test has set in this process."""
    before = dict(read())
    yield
    for name, value in read():
        if value != before.get(name, value) and TABLE[name].write:
            module = sys.modules[name.partition(":")[0]]
            if name == "pandas:options":
                for key in value:
                    module.reset_option(key)
                continue
            usual = dict.fromkeys(value, (0, True, False)) if "logging" in name else {}
            usual = module.rcParamsDefault if name.endswith("rcParams") else usual
            back = {k: before[name].get(k, usual[k]) for k in value} if usual else before[name]
            write(name, module, back)


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
