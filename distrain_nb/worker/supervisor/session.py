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
    GET,
    NAMES,
    NAMES_FILE,
    PUT,
    REQUESTS,
    RESTART,
    SESSION_FILE,
    PresentCell,
    SessionFile,
)
from distrain_nb.worker.files.status import Owner, Process, State, Status
from distrain_nb.worker.machine import system
from distrain_nb.worker.metrics import writer
from distrain_nb.worker.supervisor.crew import StayingChild, StayingCrew
from distrain_nb.worker.supervisor.start import Output
from distrain_nb.worker.supervisor.supervisor import Supervisor

TURN_S, QUEUE_TURN_S = 0.5, 0.1
ENDS_WITHIN_S = 5.0


class SessionProcess:
    """One session, from its launch file to its last status."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = SessionFile.read(folder)
        self._launch = Launch.read(folder)
        self._crew = StayingCrew(folder, self._launch, self._save, self._note_begin)
        self._state, self._phase = State.STARTING, "starting"
        self._cell = PresentCell()
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
        system.adopt_orphans()
        signal.signal(signal.SIGTERM, self._on_terminate)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        output = Output(self._folder)
        output.wake_by(self._crew.wakeup())
        output.watch(self._listener.fileno())
        for number in range(len(self._launch.processes)):
            self._crew.ranks.append(None)  # type: ignore[arg-type]  # whose place is taken next
            self._crew.fork(number, output)
        self._enter(State.RUNNING, "ready")
        threading.Thread(target=self._take_meanwhile, name="requests", daemon=True).start()
        while not self._is_over():
            try:
                task = self._work.get_nowait()
            except queue.Empty:
                self._rest(output)
                continue
            self._busy_since = time.monotonic()
            self._is_busy.set()
            if isinstance(task, Request):
                self._run_cell(task, output)
            else:
                self._answer(task, output)
            self._is_busy.clear()
            self._busy_since = time.monotonic()
        self._enter(State.STOPPING, "ending")
        self._crew.end(ENDS_WITHIN_S)
        with suppress(OSError):
            (self._folder / REQUESTS).unlink()
        output.close()
        self._refuse_waiting()
        self._enter(State.SUCCEEDED, self._ended or "ended")

    def _on_terminate(self, *_: Any) -> None:
        self._crew.ending = True

    def _is_over(self) -> bool:
        idle = time.monotonic() - self._busy_since
        if idle > self._file.idle:
            self._ended = f"ended after {self._file.idle:g} s without a cell"
        elif not self._folder.exists():
            self._ended = "its folder has been deleted"
        elif self._crew.ending:
            self._ended = "ended"
        return bool(self._ended)

    def _rest(self, output: Output) -> None:
        """Keep what ranks print between cells, and notice those that end."""
        output.turn(TURN_S)
        self._take(is_main=True)
        list(self._crew.ends())

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
                self._crew.ending = True  # also while a cell is at work
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

    def _note_begin(self) -> None:
        """Leave word of a cell that the ranks have now, and answer for it."""
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

    def _run_cell(self, request: Request, output: Output) -> None:
        if request not in self._waiting:  # it was cancelled
            return
        folder = request.folder
        record = _record(folder)
        runs = self._cell.runs + 1
        began = PresentCell(record["id"], record["name"], time.time(), runs, self._cell.last)
        self._begin(began, folder)
        self._waiting.remove(request)
        if self._crew.straggler:
            self._note_begin()
        while self._crew.straggler and not (folder / CANCEL_FILE).exists():
            self._rest(output)
            if self._crew.ending:
                break
        self._crew.finish(output)
        try:
            with disk.without_waiting():
                Supervisor(folder, crew=self._crew).run()
        except (OSError, fields.Damaged) as error:  # deleted since, or a disk that is full
            _give_up(folder, f"session {self._file.name} can't run the cell: {error}")
        finally:
            writer.begin_run()  # whose files of this cell are open
            self._begin(PresentCell(0, "", time.time(), runs, f"run {record['id']}"))
            self._note_begin()
            self._crew.listen(output)
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

    # -- questions ----------------------------------------------------------------------------

    def _answer(self, question: SessionQuery, output: Output) -> None:
        ask = question.words.get("ask")
        if ask == RESTART:
            answer = self._restart(question.words, output)
        elif ask in (GET, PUT, NAMES):
            answer = self._of_ranks(question.words, output)
        else:
            answer = {}
        question.reply(json.dumps(answer))

    def _of_ranks(self, words: Dict[str, Any], output: Output) -> Dict[str, Any]:
        """Return each rank's answer, by its number."""
        answers: Dict[str, Any] = {}
        for rank in self._crew.ranks:
            number = self._crew.spec(rank).rank
            if words["ranks"] is not None and number not in words["ranks"]:
                continue
            if rank.death or rank.is_busy:
                answers[str(number)] = {"error": rank.death or "it is still busy with a cell"}
                continue
            order = {**words, "do": words["ask"]}
            if words["ask"] == GET:
                order["folder"] = f"{words['folder']}/{number}"
            answers[str(number)] = self._crew.ask(rank, order, lambda: output.turn(TURN_S))
        return answers

    def _restart(self, words: Dict[str, Any], output: Output) -> Dict[str, Any]:
        """Put new ranks in the place of some, which have no names yet."""
        for rank in list(self._crew.ranks):
            if self._crew.spec(rank).rank not in words["ranks"]:
                continue
            self._end_rank(rank, output)
            with suppress(OSError):
                (self._folder / NAMES_FILE.format(rank.number)).unlink()
            self._crew.fork(rank.number, output)
        self._crew.leave("ranks were started anew")
        self._enter(State.RUNNING, "ready")
        return {}

    def _end_rank(self, rank: StayingChild, output: Output) -> None:
        if not rank.death:
            system.kill(rank.pid)
        while not rank.death:
            self._crew.look_for_deaths()
            time.sleep(0.01)
        with suppress(KeyError, ValueError):
            output.unwatch(rank.channel.fileno())
        output.drain(ENDS_WITHIN_S)
        rank.close()

    def _enter(self, state: State, phase: str) -> None:
        self._state, self._phase = state, phase
        self._save()

    def _save(self) -> None:
        processes = tuple(
            Process(
                rank.number, spec.label, spec.role, spec.replica, spec.rank, rank.pid, rank.death
            )
            for rank in self._crew.ranks
            for spec in [self._crew.spec(rank)]
        )
        try:
            status = Status.read(self._folder)
        except OSError:
            return
        status = status.enter(self._state, self._phase)
        changed = replace(status, supervisor=Owner.of(os.getpid()), processes=processes)
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
