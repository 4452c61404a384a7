"""A run that can't be read is one row of the list that says so, and it can be deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.errors import RunUnreadable, StoreError
from distrain_nb.run import Run, Store
from distrain_nb.server import table
from distrain_nb.ui.monitor import Monitor
from distrain_nb.ui.table import runs_table
from distrain_nb.worker.files.status import State
from distrain_nb.worker.metrics.event_format import event, record
from tests.server.stored import stored_run


def status(text: bytes) -> Callable[[Run], object]:
    return lambda run: (run.folder / "status.json").write_bytes(text)


def replaced_by_file(run: Run) -> None:
    shutil.rmtree(run.folder)
    run.folder.write_text("")


def replaced_by_loop(run: Run) -> None:
    shutil.rmtree(run.folder)
    run.folder.symlink_to(run.folder.name)


def without_backend(run: Run) -> None:
    replace(run.record, backend="uninstalled").write()


UNREADABLE = {
    "empty status": status(b""),
    "half a status": status(b'{"state": "succ'),
    "no state": status(b'{"state": null, "supervisor": null, "processes": []}'),
    "no fields": status(b"{}"),
    "a list": status(b"[]"),
    "a number": status(b"7"),
    "not UTF-8": status(b"\xff\xfe"),
    "deep JSON": status(b"[" * 100_000),
    "times of text": status(
        b'{"state": "failed", "times": {"failed": "x"}, "supervisor": null, "processes": []}'
    ),
    "status is a folder": lambda run: (
        (run.folder / "status.json").unlink(),
        (run.folder / "status.json").mkdir(),
    ),
    "status is a loop": lambda run: (
        (run.folder / "status.json").unlink(),
        (run.folder / "status.json").symlink_to("status.json"),
    ),
    "half a record": lambda run: (run.folder / "record.json").write_text('{"name": "st'),
    "folder is a file": replaced_by_file,
    "folder is a loop": replaced_by_loop,
    "no such backend": without_backend,
}


@pytest.fixture
def store(home: Path) -> Store:
    return Store(home)


@pytest.mark.parametrize("spoil", UNREADABLE.values(), ids=UNREADABLE)
def test_it_is_a_row_that_says_so_and_can_be_deleted(
    store: Store, spoil: Callable[[Run], object]
) -> None:
    whole, odd = stored_run(store), stored_run(store)
    spoil(odd)
    title = api.attach(odd.id).title
    listed = runs_table(api.runs())
    assert listed.rows[0][2].startswith(f"? unreadable: {title} can't be read: ")
    assert listed.rows[1][2] == "✓ succeeded"
    assert f"{title} can" in listed.still()
    assert list(api.runs().frame["state"]) == ["unreadable", "succeeded"]
    assert "unreadable" in repr(api.runs())
    rows = table.rows(store)["runs"]
    assert [each["id"] for each in rows][-1] == whole.id
    found = api.attach(odd.id)
    for deed in (lambda: found.state, lambda: found.results, found.wait):
        with pytest.raises(RunUnreadable, match=rf"run {odd.id} .* `%distrain delete {odd.id}`"):
            deed()
    api.delete(found)
    assert [run.id for run in api.runs()] == [whole.id]
    assert not os.path.lexists(odd.folder)


def test_a_run_whose_folder_was_removed_is_on_no_list(store: Store) -> None:
    run, folders = stored_run(store), store.folder / "runs"
    assert len(api.runs()) == 1
    shutil.rmtree(run.folder)
    assert api.runs() == [] and table.rows(store)["runs"] == []
    for use in (lambda: run.state, run.cancel, lambda: setattr(run, "note", "a note")):
        with pytest.raises(RunUnreadable, match=f"its folder {folders / str(run.id)} is gone"):
            use()


def test_links_among_event_files_are_followed_once(store: Store) -> None:
    run = stored_run(store)
    events = run.folder / "tensorboard"
    (events / "night").mkdir(parents=True)
    (events / "night" / "events.out.tfevents.1").write_bytes(record(event(1.0, 1, {"loss": 0.5})))
    for place, target in (
        ("latest", "."),
        ("newest", "night"),
        ("night/up", ".."),
        ("night/self", "self"),
        ("x.tfevents", "x.tfevents"),
        ("gone", "nowhere"),
        ("tfevents", "night"),
    ):
        (events / place).symlink_to(target)
    summary = runs_table(api.runs()).summaries[0]
    assert summary.summary.state == "succeeded"
    assert summary.last == {"loss": 0.5}
    assert len(api.attach(run.id).metrics()) == 1


def test_a_folder_that_lies_elsewhere_is_followed(store: Store, tmp_path: Path) -> None:
    run = stored_run(store)
    (tmp_path / "elsewhere").mkdir()
    (run.folder / "tensorboard").mkdir()
    (run.folder / "tensorboard" / "mine").symlink_to(tmp_path / "elsewhere")
    file = tmp_path / "elsewhere" / "events.out.tfevents.1"
    file.write_bytes(record(event(1.0, 1, {"loss": 0.5})))
    assert runs_table(api.runs()).summaries[0].last == {"loss": 0.5}


def test_a_page_is_told_of_no_run_that_lies_outside_the_store(store: Store, tmp_path: Path) -> None:
    own, elsewhere = stored_run(store), stored_run(store)
    shutil.move(elsewhere.folder, tmp_path / "elsewhere")
    elsewhere.folder.symlink_to(tmp_path / "elsewhere")
    assert [row["id"] for row in table.rows(store)["runs"]] == [own.id]


def test_what_else_is_damaged_says_so_where_it_is_asked_for(store: Store) -> None:
    run = stored_run(store)
    (run.folder / "options.json").write_text("[7]")
    (run.folder / "links.json").write_text("{")
    (run.folder / "results").mkdir()
    (run.folder / "results" / "index.json").write_text("")
    assert len(runs_table(api.runs()).rows) == 1
    for deed in (
        lambda: run.options,
        lambda: run.links,
        lambda: list(run.results),
        lambda: run.results["x"],
        lambda: api.compare(run, stored_run(store)),
    ):
        with pytest.raises(RunUnreadable, match=f"run {run.id} "):
            deed()


def test_files_that_can_t_be_removed_keep_the_run_on_the_list(store: Store) -> None:
    """Those that another user's container left in it, say: here an immutable one. Needs root."""
    run = stored_run(store)
    kept = run.folder / "kept"
    kept.write_text("")
    flags(kept, immutable=True)
    try:
        with pytest.raises(StoreError, match=rf"{run.folder} can't be removed: .*kept"):
            api.delete(run)
        assert [each.id for each in api.runs()] == [run.id]
    finally:
        flags(kept, immutable=False)
    api.delete(run)
    assert api.runs() == []


def flags(path: Path, immutable: bool) -> None:
    """By the ioctl FS_IOC_SETFLAGS, as `chattr` does."""
    import fcntl

    with path.open("rb") as file:
        fcntl.ioctl(file, 0x40086602, (0x10 if immutable else 0).to_bytes(8, "little"))


def test_what_follows_a_run_ends_quietly_when_it_is_deleted(store: Store) -> None:
    run = stored_run(store, state=State.STOPPING)
    monitor = Monitor(run)
    shutil.rmtree(run.folder)
    monitor._follow()
