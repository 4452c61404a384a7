"""A service that is a folder, and a run for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.backends.remote import carrier
from distrain_nb.backends.remote.carried import Pace

from .folder_service import PACE, FolderBackend, FolderService, new_run


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderService:
    monkeypatch.setattr(carrier, "find", lambda name: FolderBackend())
    monkeypatch.setattr(Pace, "of", lambda endpoints: PACE)
    folder = tmp_path / "service"
    (folder / "results").mkdir(parents=True)
    (folder / "results" / "index.json").write_text("{}")
    (folder / "reached").write_text("0")
    return FolderService(folder)


@pytest.fixture
def run(tmp_path: Path, service: FolderService) -> Path:
    return new_run(tmp_path / "run", service)
