"""The list of runs where the disk, another process or another file stands in its way."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.config import Config
from distrain_nb.errors import OptionError, RunCancelled, RunNotFound, StoreError
from distrain_nb.places.local.backend import LocalBackend
from distrain_nb.run import Run, Store, database
from distrain_nb.worker.files.status import State
from tests.conftest import eventually
from tests.server.stored import stored_run

pytestmark = pytest.mark.slow

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


def locked(store: Store) -> sqlite3.Connection:
    held = sqlite3.connect(store.folder / "runs.db", isolation_level=None, check_same_thread=False)
    held.execute("BEGIN EXCLUSIVE")
    return held


# -- what was submitted can be found --------------------------------------------------------------


def test_a_list_that_is_locked_while_a_run_is_sent_hides_no_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock comes after the run was added and outlasts every wait."""
    monkeypatch.setattr(database, "LOCKED_AT_MOST_S", 0.1)
    send, held = LocalBackend.submit, list[sqlite3.Connection]()

    def submit(self: LocalBackend, *given: object) -> None:
        held.append(locked(store))
        send(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalBackend, "submit", submit)
    run = api.submit(SLEEP)
    held[0].close()
    found = api.attach("last")
    assert found.id == run.id
    assert eventually(lambda: found.logs())
    found.cancel()
    with pytest.raises(RunCancelled):
        found.wait(60)


def test_a_list_that_another_process_is_making_is_empty_until_then(store: Store) -> None:
    store.folder.mkdir(mode=0o700)
    with database.writing(store.folder):
        assert store.all() == []
        with pytest.raises(RunNotFound):
            store.get("last")
    assert stored_run(store).id == 1


def test_a_list_whose_maker_was_killed_in_its_first_write_is_made_anew(
    home: Path, tmp_path: Path
) -> None:
    made = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    made.execute("PRAGMA cache_size = 1")
    made.execute("BEGIN IMMEDIATE")
    made.execute("CREATE TABLE runs (id)")
    made.executemany("INSERT INTO runs VALUES (?)", [("x" * 3000,)] * 50)
    home.mkdir(mode=0o700)
    for file in tmp_path.glob("runs.db*"):  # as they stand without the commit
        (home / file.name).write_bytes(file.read_bytes())
    assert (home / "runs.db").stat().st_size > 0 and (home / "runs.db-journal").exists()
    assert Store(home).all() == []


def test_a_list_whose_making_was_cut_off_is_made_of_the_folders(store: Store) -> None:
    stored_run(store)
    (store.folder / "runs.db").write_bytes(b"")
    assert [record.id for record in store.all()] == [1]


def test_a_list_that_is_locked_starts_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_run(store)
    monkeypatch.setattr(database, "LOCKED_AT_MOST_S", 0.1)
    with closing(locked(store)), pytest.raises(StoreError, match=r"runs\.db: another process"):
        api.submit(SLEEP)
    assert [path.name for path in (store.folder / "runs").iterdir()] == ["1"]
    assert [record.id for record in store.all()] == [1]


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


def test_a_claimed_run_has_its_number_alone_and_is_listed_once_it_is_entered(store: Store) -> None:
    claimed, other = (store.claim("", "local", "", "-n 2") for _ in range(2))
    assert other.id == claimed.id + 1
    assert not store.all()
    store.enter(claimed)
    assert store.get(str(claimed.id)) == claimed


def test_a_run_whose_process_was_killed_after_the_claim_is_listed_with_the_next(
    store: Store,
) -> None:
    lost = store.claim("lost", "local", "", "")
    following = store.add("", "local", "", "")
    assert [record.id for record in store.all()] == [following.id, lost.id]
    assert store.get("lost") == lost


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
    assert list((small_disk / "runs").iterdir()) == []


def test_what_a_full_disk_refuses_is_said(small_disk: Path) -> None:
    stored_run(Store(small_disk))
    filled(small_disk)
    with pytest.raises(StoreError, match=r"No space left|no space is left"):
        api.submit("1")
    with pytest.raises(StoreError, match="No space left"):
        Config.load().save()
    assert [run.id for run in api.runs()] == [1]
    assert len(list((small_disk / "runs").iterdir())) == 1


@pytest.mark.parametrize("inodes", range(7, 14))
def test_a_run_without_inodes_for_its_files_is_not_started(inodes: int, small_disk: Path) -> None:
    """From `program/main.json` to `launch.json` and `status.json`: one file each."""
    assert api.runs() == []
    options = f"remount,nr_inodes={inodes + used_inodes(small_disk)}"
    subprocess.run(["mount", "-o", options, small_disk], check=True)
    with pytest.raises(StoreError, match=r"runs/1/.*: No space left .* DISTRAIN_HOME"):
        api.submit("1")
    assert list((small_disk / "runs").iterdir()) == []


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
    with pytest.raises(StoreError, match=r"Read-only file system|can't be written"):
        api.submit("1")


def test_a_list_of_an_earlier_version_can_be_read_there_too(small_disk: Path) -> None:
    stored_run(Store(small_disk))
    with closing(sqlite3.connect(small_disk / "runs.db")) as old:
        old.execute("PRAGMA journal_mode = WAL")
        old.execute("UPDATE runs SET handle = NULL")
        old.commit()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert [run.id for run in api.runs()] == [1]


def test_without_locks_the_way_out_is_named(store: Store) -> None:
    """As some network file systems have none: `fcntl` answers ENOLCK."""
    stored_run(store)
    code = (
        "from tests.run.test_store import take_locks\nfrom distrain_nb import api\n"
        "from distrain_nb.run import database\ndatabase.LOCKED_AT_MOST_S = 0.1\n"
        "take_locks()\napi.runs()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StoreError" in done.stderr and "has no locks" in done.stderr, done.stderr
    assert "DISTRAIN_HOME" in done.stderr


def take_locks() -> None:
    """From now on the kernel refuses this process all locks of files, by a seccomp filter."""
    number = {"x86_64": 72, "aarch64": 25}[os.uname().machine]  # of fcntl
    allow, refuse = 0x7FFF0000, 0x00050000 | 37  # ENOLCK
    steps = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 24)]
    steps += [(0x35, 0, 1, 5), (0x25, 0, 1, 7), (0x06, 0, 0, allow), (0x06, 0, 0, refuse)]
    code = b"".join(
        a.to_bytes(2, "little") + bytes([t, f]) + k.to_bytes(4, "little") for a, t, f, k in steps
    )

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))

    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Filter(len(steps), code)), 0, 0) == 0


# -- a list that is damaged or lost ---------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"no database", b"SQLite format 3\0" + bytes(range(256)) * 40])
def test_a_damaged_list_names_the_way_out_which_is_one(store: Store, damage: bytes) -> None:
    stored_run(store, "one\n")
    stored_run(store, "two\n")
    path = store.folder / "runs.db"
    path.write_bytes(damage)
    for deed in (api.runs, api.attach, lambda: api.submit("1")):
        with pytest.raises(StoreError, match=r"damaged: move it away"):
            deed()
    path.unlink()
    assert [(run.id, run.name) for run in api.runs()] == [(2, "stored"), (1, "stored")]
    assert api.attach(1).logs() == "[rank 0] one"
    assert store.add("", "local", "", "").id == 3


def test_a_rehearsal_stays_one_when_the_list_is_made_anew(store: Store) -> None:
    store.add("night", "vertex", "", "", handle={"rehearsal": True})
    (store.folder / "runs.db").unlink()
    assert api.attach("night").rehearsed


def test_runs_of_an_earlier_version_are_listed_anew_by_number(store: Store) -> None:
    run = stored_run(store)
    (run.folder / "record.json").unlink()
    (store.folder / "runs.db").unlink()
    assert api.attach(1).state is State.SUCCEEDED


def test_to_look_makes_nothing(home: Path) -> None:
    assert api.runs() == []
    with pytest.raises(RunNotFound, match="none yet"):
        api.attach()
    assert not home.exists()


# -- odd places -----------------------------------------------------------------------------------


def test_a_long_home_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("/tmp/" + "/".join(["x" * 100] * 6), "/tmp/" + "x" * 300, "/tmp/" + "x/" * 3000):
        monkeypatch.setenv("DISTRAIN_HOME", place)
        with pytest.raises(StoreError, match="DISTRAIN_HOME") as refused:
            api.submit("1")
        assert len(str(refused.value)) < 500


@pytest.mark.parametrize("place", ["~nobody-of-that-name/x", "/dev/null", "/dev/null/x"])
def test_a_home_that_can_t_be_is_refused(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("DISTRAIN_HOME", place)
    with pytest.raises(StoreError, match="set the variable DISTRAIN_HOME"):
        api.submit("1")


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
