from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.program.notebooks import Kernel, Place

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    folder = tmp_path / "notebook"
    folder.mkdir()
    return Kernel(folder)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
