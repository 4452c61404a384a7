"""The process of a session: has ranks that stay, and runs one cell after the other in them.

While a cell is at work, a thread takes requests: a cell that comes meanwhile is queued, and says
for whom it waits. Else the main thread takes them itself, since a cell begins sooner without the
change of threads. Only the main thread forks, and speaks with the ranks.
"""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

from distrain_nb.worker.files import disk, fields
from distrain_nb.worker.files.folder import CANCEL_FILE, RECORD_FILE
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.request import TAKEN, Request, SessionQuery, listen, receive
from distrain_nb.worker.files.session import (
    CELL_FILE,
    END,
    REQUESTS,
    SESSION_FILE,
    PresentCell,
    SessionFile,
)
from distrain_nb.worker.files.status import Owner, State, Status
from distrain_nb.worker.supervisor.staying import Ranks, SessionOwner

QUEUE_TURN_S = 0.1


class SessionProcess(SessionOwner):
    """One session, from its start to its last status."""

    def __init__(self, folder: Path, ranks: Ranks) -> None:
        self._folder = folder
        self._file = SessionFile.read(folder)
        self._ranks = ranks
        self._state, self._phase = State.STARTING, "starting"
        before = PresentCell.read(folder)  # by a process that was killed
        self._cell = PresentCell(0, "", time.time(), before.runs, before.last)
        self._present: List[str] = []
        self._lock = threading.Lock()
        self._waiting: List[Request] = []  # as the thread has taken them
        self._work: queue.SimpleQueue[Union[Request, SessionQuery]] = queue.SimpleQueue()
        self._unanswered: Optional[Request] = None  # whose cell is about to begin
        self._is_busy = threading.Event()
        self._listener = listen(folder / REQUESTS)
        self._listener.setblocking(False)
        self._busy_since = time.monotonic()
        self._ended = ""

    def run(self) -> None:
        """Have the ranks, and serve until it is ended or has been idle for too long."""
        signal.signal(signal.SIGTERM, self._on_terminate)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._ranks.start(self, self._listener.fileno())
        self._enter(State.RUNNING, "ready")
        self._show()
        threading.Thread(target=self._take_meanwhile, name="requests", daemon=True).start()
        self._busy_since = time.monotonic()
        while not self._is_over():
            try:
                task = self._work.get_nowait()
            except queue.Empty:
                self._ranks.rest()
                self.attend()
                continue
            self._busy_since = time.monotonic()
            self._is_busy.set()
            if isinstance(task, Request):
                self._run_cell(task)
            else:
                task.reply(json.dumps(self._ranks.answer(task.words)))
            self._is_busy.clear()
            self._busy_since = time.monotonic()
        self._enter(State.STOPPING, "ending")
        trouble = self._ranks.end()
        with suppress(OSError):
            (self._folder / REQUESTS).unlink()
        self._refuse_waiting()
        self._enter(State.SUCCEEDED, "; ".join(filter(None, (self._ended or "ended", trouble))))

    def _on_terminate(self, *_: Any) -> None:
        self._ranks.end_soon()

    def _is_over(self) -> bool:
        idle = time.monotonic() - self._busy_since
        if idle > self._file.idle:
            self._ended = f"ended after {self._file.idle:g} s without a cell"
        elif not self._folder.exists():
            self._ended = "its folder has been deleted"
        elif self._ranks.is_ending:
            self._ended = self._ranks.why_ended or "ended"
        return bool(self._ended)

    def attend(self) -> None:
        self._take(is_main=True)

    def note_change(self) -> None:
        self._save()

    # -- requests -----------------------------------------------------------------------------

    def _take_meanwhile(self) -> None:
        """Take what comes while the main thread is busy, and answer at once for cells."""
        while True:
            self._is_busy.wait()
            # A moment, for the next cell to find only the main thread waiting.
            if select.select([self._listener], [], [], QUEUE_TURN_S)[0]:
                self._take(is_main=False)
            else:
                self._end_cancelled()

    def _take(self, *, is_main: bool) -> None:
        """Queue what has come, if anything has and the other thread hasn't taken it."""
        try:
            asked = receive(self._listener)
        except OSError:
            return
        if isinstance(asked, Request):
            self._queue(asked, is_main=is_main)
        elif isinstance(asked, SessionQuery):
            if asked.words.get("ask") == END:
                self._ranks.end_soon()  # also while a cell is at work
            self._work.put(asked)
        if not is_main:
            os.kill(os.getpid(), signal.SIGCHLD)  # wakes the main thread

    def _queue(self, request: Request, *, is_main: bool) -> None:
        if not request.is_awaited:
            request.close()
            return
        if self._cell.run or self._waiting:
            who = f"run {self._cell.run} ({self._cell.name})" if self._cell.run else "another"
            try:
                status = Status.read(request.folder)
                status = replace(status, supervisor=Owner.of(os.getpid()))
                status = status.enter(State.QUEUED, f"session {self._file.name} is busy with {who}")
                with disk.without_waiting():
                    status.write(request.folder)
            except Exception as error:
                request.reply(str(error))
                return
        elif is_main:
            self._unanswered = request
        self._waiting.append(request)
        self._work.put(request)
        if self._unanswered is not request:
            self._show()  # before whoever asked sends another, which may read what this one makes
            request.reply(TAKEN)

    def note_begin(self) -> None:
        """Leave word of the cell at work, and answer for it."""
        self._show()
        if self._unanswered is not None:
            self._unanswered.reply(TAKEN)
            self._unanswered = None

    def _end_cancelled(self) -> None:
        """End cells that nobody waits for any more, before their turn has come."""
        for request in list(self._waiting):
            with suppress(Exception):
                launch = Launch.read(request.folder)
                gone = launch.kernel is not None and not launch.kernel.alive
                if gone or (request.folder / CANCEL_FILE).exists():
                    self._waiting.remove(request)
                    self._show()
                    Status.read(request.folder).enter(State.CANCELLED, "cancelled").write(
                        request.folder
                    )

    def _refuse_waiting(self) -> None:
        for request in self._waiting:
            _give_up(request.folder, f"session {self._file.name} has ended before the cell began")

    # -- cells --------------------------------------------------------------------------------

    def _run_cell(self, request: Request) -> None:
        if request not in self._waiting:  # it was cancelled
            return
        folder = request.folder
        record = _record(folder)
        runs = self._cell.runs + 1
        began = PresentCell(record["id"], record["name"], time.time(), runs, self._cell.last)
        self._begin(began, folder)
        self._waiting.remove(request)
        try:
            with disk.without_waiting():
                self._ranks.run(folder)
        except (OSError, fields.Damaged) as error:  # deleted since, or a disk that is full
            _give_up(folder, f"session {self._file.name} can't run the cell: {error}")
        finally:
            self._begin(PresentCell(0, "", time.time(), runs, f"run {record['id']}"))
            self.note_begin()
        with suppress(OSError):
            disk.sync_folder(folder)
        self._enter(State.RUNNING, "ready")

    def _begin(self, cell: PresentCell, folder: Optional[Path] = None) -> None:
        """Have another cell at work, or none. Its file is written when the ranks have it."""
        with self._lock:  # both threads read it
            self._cell, self._present = cell, [str(folder)] if folder else []

    def _show(self) -> None:
        """Leave word of the cell at work, and of those that wait."""
        with self._lock:
            waiting = [str(request.folder) for request in self._waiting]
            shown = replace(self._cell, folders=(*self._present, *waiting))
            with disk.without_waiting(), suppress(OSError):
                disk.replace_file(self._folder / CELL_FILE, fields.encode(shown))

    def _enter(self, state: State, phase: str) -> None:
        self._state, self._phase = state, phase
        self._save()

    def _save(self) -> None:
        try:
            status = Status.read(self._folder)
        except OSError:
            return
        status = status.enter(self._state, self._phase)
        changed = replace(status, supervisor=Owner.of(os.getpid()))
        changed = replace(changed, processes=self._ranks.processes)
        with suppress(OSError):
            changed.write(self._folder)


def _record(folder: Path) -> Dict[str, Any]:
    try:
        return fields.load(folder / RECORD_FILE)
    except (OSError, fields.Damaged):
        return {"id": 0, "name": folder.name}


def _give_up(folder: Path, why: str) -> None:
    with suppress(Exception):  # there is no such folder any more
        Status.read(folder).enter(State.FAILED, "failed", error=why).write(folder)


def is_session(folder: Path) -> bool:
    """Return whether a folder is a session's."""
    return (folder / SESSION_FILE).exists()
