"""One process carries a run, also where the run's file system has no locks."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from distrain_nb.backends.remote import carrier
from distrain_nb.worker.files.status import State, Status
from tests.conftest import eventually

from .folder_service import LINES, FolderService, carry_in_a_process, texts

HERE = {"service": "here"}


def without_locks(patch: pytest.MonkeyPatch, *folders: Path) -> None:
    """As on a network file system whose server keeps none."""
    flock = fcntl.flock

    def lacking(descriptor: int, operation: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if any(folder in path.parents for folder in folders):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        flock(descriptor, operation)

    patch.setattr(fcntl, "flock", lacking)


def test_where_the_folder_has_no_locks_the_machine_has(
    run: Path, service: FolderService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = tmp_path / "tmp"
    local.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(local))
    without_locks(monkeypatch, run)
    (service.folder / "held").touch()
    first = carry_in_a_process(run)
    assert eventually(lambda: Status.read(run).state is State.RUNNING)
    second = carry_in_a_process(run)
    second.join()
    assert first.is_alive()
    (service.folder / "held").unlink()
    first.join()
    assert Status.read(run).state is State.SUCCEEDED
    assert texts(run, 0) == [f"line {n}" for n in range(0, LINES, 2)]
    (own,) = local.iterdir()
    assert own.stat().st_mode & 0o777 == 0o700


def test_a_run_says_that_there_are_no_locks(
    run: Path, service: FolderService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    without_locks(monkeypatch, tmp_path)
    carrier.carry(run, HERE)
    status = Status.read(run)
    assert status.state is State.FAILED
    assert "has locks: set DISTRAIN_HOME or TMPDIR to a folder on a local disk" in status.error
    assert not (service.folder / "requests").exists()


def test_a_folder_for_locks_that_is_a_link_is_refused(
    run: Path, service: FolderService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = tmp_path / "tmp"
    local.mkdir()
    (local / f"distrain-locks-{os.getuid()}").symlink_to(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(local))
    without_locks(monkeypatch, run)
    carrier.carry(run, HERE)
    assert "is somebody else's" in Status.read(run).error
