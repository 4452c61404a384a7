"""Rows of a list that is read again and again: what they keep, and what they forget."""

from __future__ import annotations

import gc
import shutil
import time
import weakref
from pathlib import Path

import pytest

from distrain_nb.run import Run, Store
from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.run.pages.listing import Listing
from distrain_nb.worker.files.status import Owner, State, Status


@pytest.fixture
def store(home: Path) -> Store:
    return Store(home)


def stored(store: Store, state: State) -> Run:
    """A run in that state."""
    record = store.add("", "local", "", "", {})
    status = Status(state, times={str(state): time.time()}, supervisor=Owner.of(1))
    status.write(record.folder)
    return Run(record)


def open_readers(folder: Path) -> int:
    """How many readers of a run's event files there are; other tests' may end meanwhile."""
    gc.collect()
    readers = (thing for thing in gc.get_objects() if isinstance(thing, EventFolder))
    return sum(reader.path.parent == folder for reader in readers)


def test_the_row_of_a_deleted_run_is_forgotten(store: Store) -> None:
    ended, listing = stored(store, State.SUCCEEDED), Listing()
    row = weakref.ref(listing.read([ended])[0])
    assert row() is not None
    shutil.rmtree(ended.folder)
    assert listing.read([]) == ()
    gc.collect()
    assert row() is None


def test_a_row_that_is_not_asked_for_is_kept(store: Store) -> None:
    ended, other, listing = stored(store, State.SUCCEEDED), stored(store, State.FAILED), Listing()
    first = listing.read([ended])[0]
    listing.read([other])
    assert listing.read([ended])[0] is first


def test_the_event_files_of_a_deleted_run_are_let_go(store: Store) -> None:
    running, listing = stored(store, State.RUNNING), Listing()
    assert [row.final for row in listing.read([running])] == [False]
    assert open_readers(running.folder) == 1
    shutil.rmtree(running.folder)
    listing.read([])
    assert open_readers(running.folder) == 0
