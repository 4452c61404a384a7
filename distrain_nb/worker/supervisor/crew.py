"""The ranks of a run, to the supervisor that sees it to its end: forked for it, or those of a
session, which stay.

A rank that stays is `alive`, to the supervisor of a cell, as long as the cell is at work in it. To
end it is to stop the cell: by SIGINT, and by leaving the process groups, which frees it from a
collective. One that C code keeps is given up after the run's grace period: the run ends, the rank
keeps its names, and the next cell waits for it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.files import disk, failure
from distrain_nb.worker.files.launch import Launch, ProcessSpec
from distrain_nb.worker.machine import system
from distrain_nb.worker.rank import session as rank_session
from distrain_nb.worker.rank import stopping
from distrain_nb.worker.supervisor.child import Child
from distrain_nb.worker.supervisor.fork import fork_rank
from distrain_nb.worker.supervisor.output import Output
from distrain_nb.worker.supervisor.start import filled, start

# From SIGINT on, for a cell that ends by itself; a group that is left has to be made again.
LEAVES_GROUPS_AFTER_S = 0.15
INTERRUPTED_AGAIN_S = 0.5
ANSWERS_WITHIN_S = 60.0
# Files that are given up one by one when the disk is full, for room to say so.
RESERVE_FILES = 8
RESERVE_BYTES = 32 << 10


Handler = Callable[..., None]


class End(NamedTuple):
    """A process that has ended, or a rank that stays and has ended its cell, with its exit status
    as subprocess has it; `peak` are the bytes that it took at most."""

    child: Child
    status: int
    peak: int


class Crew:
    """Ranks that are forked for one run."""

    def __init__(self) -> None:
        self._children: List[Child] = []

    def start(
        self, folder: Path, launch: Launch, ports: Sequence[int], output: Output
    ) -> List[Child]:
        """Start all processes of a run. Raises OSError where the disk has no room for its end."""
        if not self._children:  # else it is a further attempt
            disk.reserve(folder, RESERVE_FILES, RESERVE_BYTES)
        self._children = start(folder, launch, ports, output)
        return self._children

    def note_begin(self) -> None:
        """Note that the run's status has its processes."""

    def ends(self) -> Iterator[End]:
        """Yield what has ended since the last time."""
        for pid, status, peak in _reaped():
            for child in self._children:
                if child.pid == pid:
                    child.alive = False
                    yield End(child, status, peak)

    def kill_rest(self) -> None:
        """Kill what processes of the run have left behind."""
        for pid in system.descendants(os.getpid()):
            system.kill(pid)

    def finish(self, output: Output) -> None:
        """Let go of the log of a run that has ended."""

    def wakeup(self) -> int:
        """Return a descriptor that can be read once a process has ended."""
        return system.wakeup()

    def remarks(self) -> Iterator[str]:
        """Yield what a run's log says of its ranks at its end."""
        return iter(())

    @property
    def is_ending(self) -> bool:
        """Whether somebody ends more than the run."""
        return False

    def take_signals(self, on_terminate: Handler, on_notice: Handler) -> None:
        """Have this process hear of its stop and of a time limit, and adopt what is orphaned."""
        system.adopt_orphans()
        signal.signal(signal.SIGTERM, on_terminate)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, on_notice)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])  # see replica/start.py


def _reaped() -> Iterator[Tuple[int, int, int]]:
    while True:
        try:
            pid, wait_status, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, failure.exit_status(wait_status), used.ru_maxrss << 10  # in KiB, on Linux


def has_left(reason: str) -> str:
    """Return what a log says of ranks that have left their process groups."""
    return (
        f"all ranks have left their process groups, as {reason}: names are kept; "
        "call init_process_group again, and wrap models in DDP or FSDP again"
    )


class StayingChild(Child):
    """A rank that stays, with its channel, as a child of the supervisor of each cell."""

    def __init__(self, pid: int, number: int, channel: socket.socket, outputs: Any) -> None:
        super().__init__(pid, {})
        self.number = number
        self.channel = channel
        self.outputs: List[Tuple[int, str]] = outputs
        self.alive = False
        self.is_busy = False  # with a cell that may have been given up
        self.death = ""  # why it has ended
        self.status = self.peak = 0  # then
        self.interrupted_at = 0.0
        self.answer: Optional[Dict[str, Any]] = None

    def order(self, word: Dict[str, Any]) -> None:
        with suppress(OSError):  # it has just ended, and is reaped soon
            self.channel.send(json.dumps(word).encode())

    def kill(self) -> None:
        """Give the cell up; the rank stays."""
        self.signalled, self.alive = True, False

    def terminate(self) -> None:
        """Interrupt the cell; the rank stays."""
        self.signalled = True
        self.interrupted_at = time.monotonic()
        for which in (signal.SIGINT, signal.SIGCONT):  # one that is halted hears nothing
            with suppress(ProcessLookupError):
                os.kill(self.pid, which)

    def close(self) -> None:
        self.channel.close()
        for descriptor, _ in self.outputs:
            with suppress(OSError):
                os.close(descriptor)


class StayingCrew(Crew):
    """The ranks of a session. `note_death` is called when one has ended, `note_begin` when they
    have been handed a cell."""

    def __init__(
        self,
        folder: Path,
        launch: Launch,
        note_death: Callable[[], None],
        note_begin: Callable[[], None],
    ) -> None:
        super().__init__()
        self._folder = folder
        self._note_death = note_death
        self._note_begin = note_begin
        self._launch = launch
        self.ranks: List[StayingChild] = []
        self._reason = ""
        self._has_left = False
        self._failed = False
        self._sequences: Dict[int, int] = {}
        self.ending = False
        self._wakeup = system.wakeup()

    def wakeup(self) -> int:
        return self._wakeup

    def note_begin(self) -> None:
        self._note_begin()

    def fork(self, number: int, output: Output) -> None:
        """Put a new rank in the place of that number."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        work = partial(rank_session.serve, theirs, self._folder, number)
        pid, outputs = fork_rank(self._folder, self._launch, number, work, theirs.fileno())
        theirs.close()
        ours.setblocking(False)
        self.ranks[number : number + 1] = [StayingChild(pid, number, ours, outputs)]
        self.listen(output, [self.ranks[number]])

    def listen(self, output: Output, ranks: Optional[Sequence[StayingChild]] = None) -> None:
        """Have what ranks print between cells in a log."""
        for rank in self.ranks if ranks is None else ranks:
            if not rank.death:
                output.watch(rank.channel.fileno())
                for descriptor, stream in rank.outputs:
                    output.add(descriptor, rank.number, stream, stays=True)

    def finish(self, output: Output) -> None:
        for rank in self.ranks:
            if not rank.death:
                output.unwatch(rank.channel.fileno())
        output.end_streams()

    # -- a cell -------------------------------------------------------------------------------

    def start(
        self, folder: Path, launch: Launch, ports: Sequence[int], output: Output
    ) -> List[Child]:
        """Hand the cell of a run to the ranks that its launch names."""
        launch = filled(folder, launch, ports, output)
        self._has_left = self._failed = False
        self._sequences = {}
        children: List[Child] = []
        for index, spec in enumerate(launch.processes):
            rank = self._of(spec)
            rank.specs, rank.alive, rank.signalled = {index: spec}, True, False
            rank.interrupted_at = 0.0
            children.append(rank)
            if rank.death:  # since the cell was sent: its end is said now
                continue
            rank.is_busy = True
            output.watch(rank.channel.fileno())
            for descriptor, stream in rank.outputs:
                output.add(descriptor, index, stream, stays=True)
            rank.order(
                {
                    "do": rank_session.CELL,
                    "folder": str(folder),
                    "process": index,
                    "environment": spec.environment,
                    "working_folder": launch.working_folder,
                    "results": launch.results if index == 0 else (),
                }
            )
        with suppress(OSError):  # the ranks have the cell by now: they don't wait for files
            disk.reserve(folder, RESERVE_FILES, RESERVE_BYTES)
        self._children = children
        return children

    def _of(self, spec: ProcessSpec) -> StayingChild:
        return next(rank for rank in self.ranks if self.spec(rank).rank == spec.rank)

    def spec(self, rank: StayingChild) -> ProcessSpec:
        return self._launch.processes[rank.number]

    def ends(self) -> Iterator[End]:
        self.look_for_deaths()
        for rank in self.ranks:
            for word in self._words(rank):
                if word["did"] != rank_session.CELL:
                    rank.answer = word
                    continue
                rank.is_busy = False
                self._sequences[rank.number] = word["sequence"]
                if rank.alive:
                    rank.alive = False
                    self._failed |= word["status"] not in (0, stopping.STOPPED)
                    yield End(rank, word["status"], 0)
            if rank.death and rank.alive:
                rank.alive, self._failed = False, True
                yield End(rank, rank.status, rank.peak)
        self._free()

    def look_for_deaths(self) -> None:
        for pid, status, peak in _reaped():
            for rank in self.ranks:
                if rank.pid == pid and not rank.death:
                    word = failure.read(self._folder, rank.number)
                    rank.death = word.summary if word else failure.describe_exit(status)
                    rank.status, rank.peak, rank.is_busy = status or -1, peak, False
                    self._note_death()  # before its run ends, whose reader may send the next cell

    def _words(self, rank: StayingChild) -> Iterator[Dict[str, Any]]:
        while not rank.death:
            try:
                data = rank.channel.recv(rank_session.LONGEST_ORDER)
            except OSError:  # nothing more has come, or it has just ended
                return
            if not data:
                return
            yield json.loads(data)

    def _free(self) -> None:
        """Have ranks out of collectives that SIGINT doesn't stop, and stop them again."""
        now = time.monotonic()
        waiting = [r for r in self.ranks if r.is_busy and r.interrupted_at]
        for rank in waiting:
            patience = 0.0 if self._failed else LEAVES_GROUPS_AFTER_S
            if now - rank.interrupted_at >= patience and not self._has_left:
                self.leave(f"{self.spec(rank).label} had to be released")
            if now - rank.interrupted_at >= INTERRUPTED_AGAIN_S:
                rank.terminate()

    def leave(self, why: str) -> None:
        """Have all ranks leave their process groups."""
        self._has_left, self._reason = True, why
        for rank in self.ranks:
            if not rank.death:
                rank.order({"do": rank_session.LEAVE})

    @property
    def why_left(self) -> str:
        """Why the ranks have left their process groups since the last cell began; empty where they
        have not."""
        return self._reason if self._has_left else ""

    @property
    def sequences(self) -> Dict[int, int]:
        """At which collective each rank was at the end of the last cell, by its number here."""
        return dict(self._sequences)

    def remarks(self) -> Iterator[str]:
        if self._has_left:
            yield has_left(self._reason)
        for rank in self.ranks:
            if rank.is_busy:
                yield (
                    f"{self.spec(rank).label} is still in C code, which can't be stopped: the next "
                    "cell waits for it; %distrain session restart --rank "
                    f"{self.spec(rank).rank} ends it, with its names"
                )

    def kill_rest(self) -> None:
        """End the cell: leave groups that no next cell could use. Kill what has lost its parent;
        what ranks have started is theirs."""
        for rank in self.ranks:
            rank.interrupted_at = 0.0 if not rank.is_busy else rank.interrupted_at
        deaths = [rank for rank in self.ranks if rank.death]
        counts = set(self._sequences.values())
        if not self._has_left and len(self._children) == len(self.ranks):
            if deaths and any(count >= 0 for count in counts):
                self.leave(f"{self.spec(deaths[0]).label} has ended")
            elif self._failed and len(counts) > 1:
                self.leave("the ranks were at different collectives")
        for pid in system.descendants(os.getpid(), without={rank.pid for rank in self.ranks}):
            system.kill(pid)

    @property
    def is_ending(self) -> bool:
        return self.ending

    def take_signals(self, on_terminate: Handler, on_notice: Handler) -> None:
        """Leave the handlers to the session, whose end is more than a cell's."""

    @property
    def straggler(self) -> Optional[StayingChild]:
        """A rank that is still in the cell of a run that has ended."""
        return next((rank for rank in self.ranks if rank.is_busy and not rank.death), None)

    # -- between cells ------------------------------------------------------------------------

    def ask(
        self, rank: StayingChild, word: Dict[str, Any], turn: Callable[[], None]
    ) -> Dict[str, Any]:
        """Return a rank's answer, between cells; `turn` keeps the log meanwhile."""
        rank.answer = None
        rank.order(word)
        until = time.monotonic() + ANSWERS_WITHIN_S
        while rank.answer is None and not rank.death and time.monotonic() < until:
            turn()
            list(self.ends())
        return rank.answer or {"error": rank.death or "it doesn't answer"}

    def end(self, seconds: float) -> None:
        """End all ranks, and kill those that aren't gone in time."""
        for rank in self.ranks:
            rank.order({"do": rank_session.FINISH})
        until = time.monotonic() + seconds
        while any(not rank.death for rank in self.ranks) and time.monotonic() < until:
            time.sleep(0.01)
            self.look_for_deaths()
        for pid in system.descendants(os.getpid()):
            system.kill(pid)
