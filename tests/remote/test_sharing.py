"""One carrier carries several runs, each in a thread."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from distrain_nb.backends.remote import carrier, carrier_log, sharing
from distrain_nb.backends.remote.sharing import SharedCarrier
from distrain_nb.worker.files.status import State, Status

from .folder_service import FolderService, new_run


@pytest.fixture
def runs(tmp_path: Path, service: FolderService) -> list[Path]:
    made = []
    for number in range(3):
        other = FolderService(tmp_path / f"service {number}")
        (other.folder / "results").mkdir(parents=True)
        (other.folder / "reached").write_text("2990")
        made.append(new_run(tmp_path / f"run {number}", other))
    return made


def serve(connection: socket.socket) -> threading.Thread:
    thread = threading.Thread(target=SharedCarrier(connection).serve)
    thread.start()
    return thread


def test_each_run_ends_and_has_its_own_log(runs: list[Path]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        thread = serve(theirs)
        for run in runs:
            assert sharing._is_sent(ours, run)
        ours.close()
        thread.join()
    for run in runs:
        status = Status.read(run)
        assert status.state is State.SUCCEEDED, status.error
        assert status.supervisor is not None and status.supervisor.pid == os.getpid()
        log = carrier_log.read(run)
        assert log.count("carries run") == 1 and f"carries run {run.name} " in log


def test_it_takes_no_more_than_so_many(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What has been sent before is carried; what comes later goes to another carrier."""
    monkeypatch.setattr(sharing, "MOST_RUNS", 1)
    goes_on = threading.Event()
    monkeypatch.setattr(carrier, "carry", lambda folder: goes_on.wait())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert sharing._is_sent(ours, runs[0]) and sharing._is_sent(ours, runs[1])
        thread = serve(theirs)
        while sharing._is_sent(ours, runs[2]):
            thread.join(0.01)
        goes_on.set()
        thread.join()


def test_a_run_that_it_can_not_carry_on_is_let_go(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process goes on with the others: by its life nobody would start another carrier."""

    def carry(folder: Path) -> None:
        run = carrier.CarriedRun(folder)
        run.take(())
        raise OSError("no room")

    monkeypatch.setattr(carrier, "carry", carry)
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        thread = serve(theirs)
        sharing._is_sent(ours, runs[0])
        ours.close()
        thread.join()
    status = Status.read(runs[0])
    assert status.supervisor is None and not status.state.final
