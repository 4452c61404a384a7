"""The list of runs where the disk, another process or another file stands in its way."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.config import Config
from distrain_nb.errors import OptionError, RunCancelled, RunNotFound, StoreError
from distrain_nb.places.local.backend import LocalBackend
from distrain_nb.run import Run, Store
from distrain_nb.run.numbered_folders import MADE_WITHIN_S
from distrain_nb.worker.files.status import State
from tests.server.stored import stored_run

pytestmark = [pytest.mark.slow, pytest.mark.brief]

SLEEP = "import time; print('here', flush=True); time.sleep(600)"


@pytest.fixture
def store(home: Path) -> Store:
    return Store(home)


@pytest.fixture
def small_disk(home: Path) -> Iterator[Path]:
    """DISTRAIN_HOME on a file system of 4 MiB. Needs root."""
    home.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", home], check=True)
    yield home
    subprocess.run(["umount", "--lazy", home], check=True)


def filled(folder: Path) -> None:
    """Not a byte is left."""
    with (folder / "filler").open("wb", buffering=0) as filler:
        for size in (4096, 1):
            try:
                while True:
                    filler.write(bytes(size))
            except OSError:
                continue


def folders(home: Path) -> list[str]:
    return [path.name for path in (home / "runs").iterdir() if path.is_dir()]


# -- what was submitted can be found --------------------------------------------------------------


def test_an_interrupted_submission_stays_on_the_list(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = LocalBackend.submit

    def submit(self: LocalBackend, *given: object) -> None:
        send(self, *given)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalBackend, "submit", submit)
    with pytest.raises(KeyboardInterrupt):
        api.submit(SLEEP)
    with pytest.raises(RunCancelled):
        api.attach("last").wait(60)


def test_a_process_that_dies_while_it_submits_leaves_a_failed_run(store: Store) -> None:
    code = "from distrain_nb.run import Store; Store().add('lost', 'local', '', '')"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert api.attach("lost").state is State.FAILED


def test_a_run_whose_maker_was_killed_can_be_deleted(store: Store) -> None:
    """Its record is written last; until then it is just being made."""
    whole, lost = store.add("whole", "local", "", ""), store.add("lost", "local", "", "")
    (lost.folder / "record.json").unlink()
    assert [record.name for record in store.all()] == ["whole"]
    with pytest.raises(RunNotFound, match=r"no run '2'. There are 1 \(whole\)"):
        store.get("2")
    old = time.time() - 2 * MADE_WITHIN_S
    os.utime(lost.folder, (old, old))
    assert [record.name for record in store.all()] == ["run-2", "whole"]
    api.delete(api.attach(2))
    assert api.attach("last").id == whole.id


def test_a_number_is_given_once(store: Store) -> None:
    """Whatever has become of the last run: a saved notebook knows a run by its number."""
    store.delete(store.add("", "local", "", ""))
    assert store.add("", "local", "", "").id == 2
    shutil.rmtree(store.folder / "runs" / "2")
    assert store.add("", "local", "", "").id == 3
    for text in ("", "x"):
        (store.folder / "runs" / "newest").write_text(text)
        newest = store.add("", "local", "", "")
    assert newest.id == 5


def test_numbers_begin_anew_where_all_was_removed_by_hand(store: Store) -> None:
    for name in ("before", "also"):
        store.add(name, "local", "", "")
    assert len(store.all()) == 2
    shutil.rmtree(store.folder)
    store.add("after", "local", "", "")
    assert [(record.id, record.name) for record in store.all()] == [(1, "after")]


def test_many_processes_add_at_once(store: Store) -> None:
    threads = [threading.Thread(target=store.add, args=("", "local", "", "")) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [record.id for record in store.all()] == list(range(16, 0, -1))


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["12", "٣", "last", "a\nb", " a"])
def test_a_name_is_no_number(home: Path, name: str) -> None:
    with pytest.raises(OptionError, match="invalid --name"):
        api.submit("1", name=name)
    assert not home.exists()


# -- a disk that is full or read-only -------------------------------------------------------------


def test_deleting_works_on_a_full_disk(small_disk: Path) -> None:
    store = Store(small_disk)
    runs = [stored_run(store), stored_run(store)]
    filled(small_disk)
    assert [run.id for run in api.runs()] == [2, 1]
    api.delete(runs[0])
    filled(small_disk)
    api.delete(runs[1])
    assert api.runs() == []
    assert folders(small_disk) == []


def test_what_a_full_disk_refuses_is_said(small_disk: Path) -> None:
    stored_run(Store(small_disk))
    filled(small_disk)
    with pytest.raises(StoreError, match="No space left"):
        api.submit("1")
    with pytest.raises(StoreError, match="No space left"):
        Config.load().save()
    assert [run.id for run in api.runs()] == [1]
    assert len(folders(small_disk)) == 1


@pytest.mark.parametrize("inodes", range(7, 14))
def test_a_run_without_inodes_for_its_files_is_not_started(inodes: int, small_disk: Path) -> None:
    """From `program/main.json` to `launch.json` and `status.json`: one file each."""
    assert api.runs() == []
    options = f"remount,nr_inodes={inodes + used_inodes(small_disk)}"
    subprocess.run(["mount", "-o", options, small_disk], check=True)
    with pytest.raises(StoreError, match=r"runs/1/.*: No space left .* DISTRAIN_HOME"):
        api.submit("1")
    assert folders(small_disk) == []


def used_inodes(disk: Path) -> int:
    room = os.statvfs(disk)
    return room.f_files - room.f_ffree


def test_a_list_on_a_read_only_disk_can_be_read(small_disk: Path) -> None:
    run = stored_run(Store(small_disk), "one\n")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert [each.state for each in api.runs()] == [State.SUCCEEDED]
    assert api.attach().logs() == "[rank 0] one"
    with pytest.raises(StoreError, match="Read-only file system"):
        api.delete(run)
    with pytest.raises(StoreError, match="Read-only file system"):
        api.submit("1")


def test_to_look_makes_nothing(home: Path) -> None:
    assert api.runs() == []
    with pytest.raises(RunNotFound, match="none yet"):
        api.attach()
    assert not home.exists()


# -- odd places -----------------------------------------------------------------------------------


def test_a_long_home_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("/tmp/" + "x" * 300, "/tmp/" + "x/" * 3000):
        monkeypatch.setenv("DISTRAIN_HOME", place)
        with pytest.raises(StoreError, match="DISTRAIN_HOME") as refused:
            api.submit("1")
        assert len(str(refused.value)) < 500


@pytest.mark.parametrize("place", ["~nobody-of-that-name/x", "/dev/null", "/dev/null/x"])
def test_a_home_that_can_t_be_is_refused(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("DISTRAIN_HOME", place)
    with pytest.raises(StoreError, match="set the variable DISTRAIN_HOME"):
        api.submit("1")


def test_runs_that_are_no_folder_are_said(home: Path) -> None:
    home.mkdir()
    (home / "runs").write_text("")
    for use in (api.runs, lambda: Store().add("", "local", "", "")):
        with pytest.raises(StoreError, match=r"runs .*[Nn]ot a .*set the variable DISTRAIN_HOME"):
            use()


def test_names_of_folders_need_not_be_utf_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.fsdecode(bytes(tmp_path) + b"/\xff\xfe"))
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DISTRAIN_HOME", str(folder / "home"))
    run = api.submit("import os; print(os.fsencode(os.getcwd())[-2:])", wait=True)
    assert run.logs() == r"[rank 0] b'\xff\xfe'"
    assert [each.id for each in api.runs()] == [run.id]


def test_a_working_folder_that_is_gone_is_said(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(OptionError, match=r"working folder has been removed: .*%cd"):
        api.submit("1")


# -- modes ----------------------------------------------------------------------------------------


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_store_is_closed_from_its_first_moment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    mkdir = Path.mkdir

    def noted(self: Path, *given: object, **more: object) -> None:
        mkdir(self, *given, **more)  # type: ignore[arg-type]
        if self == home:
            made.append(mode(self))

    monkeypatch.setattr(Path, "mkdir", noted)
    before = os.umask(0o002)
    try:
        stored_run(Store(home))
    finally:
        os.umask(before)
    assert made == [0o700]
    assert mode(home) == mode(home / "runs") == 0o700


@pytest.mark.parametrize("use", [api.runs, lambda: Store().add("", "local", "", "")])
def test_an_open_store_is_closed(home: Path, use: Callable[[], object]) -> None:
    run = stored_run(Store(home))
    home.chmod(0o775)
    use()
    assert mode(home) == 0o700
    assert isinstance(run, Run)


def test_a_folder_that_somebody_writes_into_is_removed(store: Store) -> None:
    for _ in range(20):
        folder = stored_run(store, "ended").folder
        for number in range(100):  # so that removing it takes a while
            (folder / str(number)).touch()
        writer = threading.Thread(target=_write_into, args=(folder,))
        writer.start()
        store.delete(store.all()[0])
        writer.join()
        assert not folder.exists()


def _write_into(folder: Path) -> None:
    with suppress(FileNotFoundError):
        for number in range(200):
            (folder / f"late {number}").touch()
            time.sleep(0.0001)
