"""A service that is a folder, and a run for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.backends.remote import carrier
from distrain_nb.backends.remote.service import Pace

from .folder_service import FolderBackend, FolderService, new_run


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderService:
    monkeypatch.setattr(carrier, "find", lambda name: FolderBackend())
    monkeypatch.setattr(Pace, "of", lambda own, endpoints: own)
    folder = tmp_path / "service"
    (folder / "results").mkdir(parents=True)
    (folder / "results" / "index.json").write_text("{}")
    (folder / "reached").write_text("0")
    return FolderService(folder)


@pytest.fixture
def run(tmp_path: Path, service: FolderService) -> Path:
    return new_run(tmp_path / "run", service)
