"""Files that are replaced are on disk before anybody relies on them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from distrain_nb.worker.files.disk import DeletableFolder, replace_file
from distrain_nb.worker.rank import values


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced and put in place, in order."""
    made: list[str] = []
    fsync, put = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        made.append(f"sync {name.partition('.')[0]}")
        fsync(descriptor)

    def noted_replace(source: str, target: str) -> None:
        made.append(f"replace {Path(target).name}")
        put(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    return made


def test_a_file_is_synced_before_it_is_put_in_place_and_its_folder_after(
    tmp_path: Path, calls: list[str]
) -> None:
    replace_file(tmp_path / "status.json", b"{}")
    assert calls == ["sync status", "replace status.json", f"sync {tmp_path.name}"]


def test_so_are_the_values_of_a_folder(tmp_path: Path, calls: list[str]) -> None:
    values.dump({"a": 1}, tmp_path / "results")
    assert sorted(calls[:3]) == ["sync arrays", "sync index", "sync objects"]
    assert calls[3:] == ["sync results", "replace results", f"sync {tmp_path.name}"]


def test_a_folder_that_was_deleted_is_not_there_though_another_is(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "inner").mkdir(parents=True)
    place = DeletableFolder(folder)
    assert place.is_there
    (folder / "inner").rmdir()
    assert place.is_there
    shutil.rmtree(folder)
    assert not place.is_there
    folder.mkdir()
    assert not place.is_there


def test_a_folder_that_cannot_be_looked_at_is_taken_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = DeletableFolder(tmp_path)

    def fails(path: str) -> os.stat_result:
        raise OSError(5, "Input/output error", path)

    monkeypatch.setattr(os, "stat", fails)
    there = place.is_there
    monkeypatch.undo()
    assert there
