"""A replica of a job whose ranks stay for the cells of a session.

It does what `files/orders.py` has been told, until it is ended, or nobody has ordered anything for
longer than `DISTRAIN_SESSION` seconds: an allocation is held for nobody else.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

from distrain_nb.worker.files import disk, orders
from distrain_nb.worker.files.folder import CANCEL_FILE, PROGRAM_FOLDER, RESULTS_FOLDER
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.orders import CELL, LEAVE, STOP, Order, OrderReader
from distrain_nb.worker.files.session import END, GET, PUT
from distrain_nb.worker.files.status import Owner, State, Status
from distrain_nb.worker.machine import ports, process_table
from distrain_nb.worker.replica import prompt_orders, shared
from distrain_nb.worker.supervisor.staying import SessionOwner, StayingRanks

# After the last order, and later: each look is a request to a network file system.
LOOK_S, LOOK_LATER_S, LATER_S = 0.03, 0.2, 60.0
BEAT_EVERY_S = 2.0


class StayingReplica(SessionOwner):
    """The part of a session that one replica has."""

    def __init__(self, job: Path, index: int, launch: Launch, idle: float) -> None:
        self._job, self._index, self._idle = job, index, idle
        self._folder = shared.replica_folder(job, index)
        self._launch = replace(launch, ports=0)
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._stopped: List[int] = []  # orders that are to end, or not to begin
        self._ordered_at = time.monotonic()
        self._is_at_work = False
        self._ports: List[ports.HeldPort] = []
        self._state = State.STARTING

    def run(self) -> int:
        """Have the ranks, and do what is ordered; return the exit status."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._launch.write(self._folder)
        Status(State.STARTING).enter(State.STARTING).write(self._folder)
        self._ranks = StayingRanks(self._folder, self._launch)
        signal.signal(signal.SIGTERM, lambda *_: self._ranks.end_soon())
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # the notice of a time limit
        self._ranks.start(self)
        self._enter(State.RUNNING)
        self._answer(orders.START, {})
        threading.Thread(target=self._follow, name="orders", daemon=True).start()
        while not self._is_over():
            try:
                order = self._orders.get_nowait()
            except queue.Empty:
                self._ranks.rest()
                continue
            self._is_at_work = True
            self._do(order)
            self._is_at_work, self._ordered_at = False, time.monotonic()
        self._ranks.end()
        self._enter(State.SUCCEEDED)
        (self._folder / shared.DELIVERED).touch()
        return 0

    def _is_over(self) -> bool:
        is_idle = time.monotonic() - self._ordered_at > self._idle
        return self._ranks.is_ending or is_idle or not self._job.exists()

    # -- orders -------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Take orders as they come. Those that stop a cell are for one that is at work."""
        reader, beat_at, beats = OrderReader(self._job), 0.0, 0
        while True:
            for order in reader.new():
                self._ordered_at = time.monotonic()
                if order.do == STOP:
                    self._stop(int(order.words["of"]))
                if order.do == END:
                    self._ranks.end_soon()
                if order.do in prompt_orders.FOR_PROMPTS:
                    prompt_orders.apply(self._place(int(order.words["of"])), self._index, order)
                    orders.answer(self._job, order.number, self._index, {})
                    continue
                self._orders.put(order)
                os.kill(os.getpid(), signal.SIGCHLD)  # wakes the main thread
            now = time.monotonic()
            if now >= beat_at:
                beat_at, beats = now + BEAT_EVERY_S, beats + 1
                with suppress(OSError):
                    (self._folder / orders.BEAT).write_text(str(beats))
            is_late = now - self._ordered_at > LATER_S and not self._is_at_work
            time.sleep(LOOK_LATER_S if is_late else LOOK_S)

    def _stop(self, number: int) -> None:
        self._stopped.append(number)
        with suppress(OSError):  # it hasn't begun, and won't
            (self._place(number) / CANCEL_FILE).touch()

    def _place(self, number: int) -> Path:
        return orders.place_of(self._job, number, self._index)

    def _do(self, order: Order) -> None:
        try:
            with disk.without_waiting():
                words = self._outcome(order)
        except Exception as error:
            words = {"error": f"{type(error).__name__}: {error}"}
        self._answer(order.number, words)

    def _outcome(self, order: Order) -> Dict[str, Any]:
        if order.do == CELL:
            return self._run_cell(order)
        if order.do == LEAVE:
            if not self._ranks.crew.why_left:  # they have left by themselves
                self._ranks.crew.leave(order.words["why"])
            return {}
        if order.do in (STOP, END):
            return {}
        words: Dict[str, Any] = {**order.words, "ask": order.do}
        if order.do == PUT:
            words["folder"] = str(orders.folder_of(self._job, order.number) / orders.VALUES)
        if order.do == GET:
            values = self._place(order.number) / orders.VALUES
            values.mkdir(parents=True)
            words["folder"] = str(values)
        return {"ranks": self._ranks.answer(words)}

    def _answer(self, number: int, words: Dict[str, Any]) -> None:
        """Answer, with the address at which ranks meet that make a group in the next cell, and the
        memory that the ranks have."""
        pids = [process.pid for process in self._ranks.processes if process.pid]
        words["memory"] = sum(map(process_table.resident_bytes, pids))
        if self._index == 0:
            words["address"] = self._next_address()
        with disk.without_waiting(), suppress(OSError):
            orders.answer(self._job, number, self._index, words)

    def _next_address(self) -> str:
        """Return one that no group of an earlier cell has, perhaps still."""
        host = self._launch.processes[0].environment["MASTER_ADDR"]
        self._ports = [*self._ports[-1:], ports.HeldPort(host if host == "127.0.0.1" else "")]
        return f"{host}:{self._ports[-1].number}"

    # -- cells --------------------------------------------------------------------------------

    def _run_cell(self, order: Order) -> Dict[str, Any]:
        launch = self._launch_of(order)
        if not launch.processes:  # its ranks are elsewhere
            return {}
        folder = self._place(order.number)
        folder.mkdir(parents=True)
        launch.write(folder)
        program = orders.folder_of(self._job, order.number) / orders.PROGRAM
        (folder / PROGRAM_FOLDER).symlink_to(program)
        for path in shared.output_folders(orders.folder_of(self._job, order.number)).values():
            os.makedirs(path, exist_ok=True)
        if order.number in self._stopped:
            (folder / CANCEL_FILE).touch()
        status = Status(State.STARTING, supervisor=Owner.of(os.getpid()))
        status.enter(State.STARTING).write(folder)
        prompt_orders.hear(folder, order.words.get("answered"))
        self._ranks.run(folder)
        if (folder / RESULTS_FOLDER).is_dir():
            target = orders.folder_of(self._job, order.number) / shared.OUTPUT / RESULTS_FOLDER
            shutil.copytree(str(folder / RESULTS_FOLDER), str(target), dirs_exist_ok=True)
        crew = self._ranks.crew
        failed = Status.read(folder).state is State.FAILED
        return {"left": crew.why_left, "sequences": [*crew.sequences.values()], "failed": failed}

    def _launch_of(self, order: Order) -> Launch:
        words = order.words
        host, _, port = words["address"].rpartition(":")
        outputs = shared.output_folders(orders.folder_of(self._job, order.number))
        meeting = {"MASTER_ADDR": host, "MASTER_PORT": port, **outputs}
        specs = tuple(
            replace(spec, environment={**spec.environment, **meeting})
            for spec in self._launch.processes
            if spec.rank in words["ranks"]
        )
        is_primary = any(spec.rank == min(words["ranks"]) for spec in specs)
        return replace(
            self._launch,
            processes=specs,
            results=tuple(words["results"]) if is_primary else (),
            timeout=words["timeout"],
            grace=words["grace"],
            distributes=False,  # a cell needn't train
            retries=0,  # its names are as the failed attempt left them
            signal_before=None,
        )

    # -- what it leaves -----------------------------------------------------------------------

    def note_change(self) -> None:
        self._enter(self._state)

    def note_begin(self) -> None:
        """Do nothing: nobody waits for that here."""

    def attend(self) -> None:
        """Do nothing: no order comes before the ranks are there."""

    def _enter(self, state: State) -> None:
        self._state = state
        phase = "ready" if state is State.RUNNING else str(state)
        changed = replace(
            Status.read(self._folder).enter(state, phase),
            supervisor=Owner.of(os.getpid()),
            processes=self._ranks.processes,
        )
        with suppress(OSError), disk.without_waiting():
            changed.write(self._folder)


def run(launch: Launch) -> int:
    """Be the part of a session that this replica has, and return its exit status."""
    job = Path(os.environ[shared.JOB_VARIABLE])
    index = int(os.environ.get(shared.INDEX_VARIABLE, "0"))
    return StayingReplica(job, index, launch, float(os.environ[shared.SESSION_VARIABLE])).run()
