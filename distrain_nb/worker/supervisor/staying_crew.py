"""The ranks of a session, which stay between cells.

A cell is stopped by SIGINT. If that doesn't help, the ranks leave their process groups, which frees
them from a collective. A cell in C code can't be stopped so: the supervisor gives it up after the
run's grace period. The run ends, the rank keeps its names, and the next cell waits for it.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from distrain_nb.worker.files import failure, reserve
from distrain_nb.worker.files.launch import Launch, ProcessSpec
from distrain_nb.worker.machine import process_table, system
from distrain_nb.worker.rank import session as rank_session
from distrain_nb.worker.rank import stopping
from distrain_nb.worker.supervisor.child import Child
from distrain_nb.worker.supervisor.crew import (
    Crew,
    End,
    Handler,
    reaped,
)
from distrain_nb.worker.supervisor.fork import fork_rank
from distrain_nb.worker.supervisor.output import Output
from distrain_nb.worker.supervisor.start import filled
from distrain_nb.worker.supervisor.staying_child import StayingChild

# Time for a cell to end by SIGINT alone: a group that is left has to be made again.
LEAVES_GROUPS_AFTER_S = 0.15
INTERRUPTED_AGAIN_S = 0.5
ANSWERS_WITHIN_S = 60.0


class StayingCrew(Crew):
    """The ranks of a session.

    `note_death` is called when a rank has ended, `note_begin` when the ranks have a cell.
    """

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
        """Replace the rank of that number by a new one."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        work = partial(rank_session.serve, theirs, self._folder, number)
        pid, outputs = fork_rank(self._folder, self._launch, number, work, theirs.fileno())
        theirs.close()
        ours.setblocking(False)
        self.ranks[number : number + 1] = [StayingChild(pid, number, ours, outputs)]
        self.listen(output, [self.ranks[number]])

    def listen(self, output: Output, ranks: Optional[Sequence[StayingChild]] = None) -> None:
        """Write the output of ranks between cells to a log."""
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
        """Hand a run's cell to the ranks that its launch names."""
        launch = filled(folder, launch, ports, output)
        self._has_left = self._failed = False
        self._sequences = {}
        children: List[Child] = []
        for index, spec in enumerate(launch.processes):
            rank = self._of(spec)
            rank.specs, rank.alive, rank.signalled = {index: spec}, True, False
            rank.interrupted_at = 0.0
            children.append(rank)
            if rank.death:  # it died while the cell was sent: `ends` reports it
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
        with suppress(OSError):  # after the orders, so that ranks don't wait for these files
            reserve.reserve(folder, reserve.OF_RUN)
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
        for pid, status, peak in reaped():
            for rank in self.ranks:
                if rank.pid == pid and not rank.death:
                    word = failure.read(self._folder, rank.number)
                    rank.death = word.summary if word else failure.describe_exit(status)
                    rank.status, rank.peak, rank.is_busy = status or -1, peak, False
                    self._note_death()  # before the run ends: then the next cell may come

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
        """Make ranks leave collectives that SIGINT doesn't stop, and interrupt them again."""
        now = time.monotonic()
        waiting = [r for r in self.ranks if r.is_busy and r.interrupted_at]
        for rank in waiting:
            patience = 0.0 if self._failed else LEAVES_GROUPS_AFTER_S
            if now - rank.interrupted_at >= patience and not self._has_left:
                self.leave(f"{self.spec(rank).label} had to be released")
            if now - rank.interrupted_at >= INTERRUPTED_AGAIN_S:
                rank.terminate()

    def leave(self, why: str) -> None:
        """Make all ranks leave their process groups."""
        self._has_left, self._reason = True, why
        for rank in self.ranks:
            if not rank.death:
                rank.order({"do": rank_session.LEAVE})

    @property
    def why_left(self) -> str:
        """Why the ranks have left their groups since the cell began; empty if they have not."""
        return self._reason if self._has_left else ""

    @property
    def sequences(self) -> Dict[int, int]:
        """The collective at which each rank was when the last cell ended, by its number here."""
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
        """End the cell.

        Leave groups that the next cell could not use.

        Kill processes that have lost their parent. Processes with a rank as parent are the rank's
        own.
        """
        for rank in self.ranks:
            rank.interrupted_at = 0.0 if not rank.is_busy else rank.interrupted_at
        deaths = [rank for rank in self.ranks if rank.death]
        counts = set(self._sequences.values())
        if not self._has_left and len(self._children) == len(self.ranks):
            if deaths and any(count >= 0 for count in counts):
                self.leave(f"{self.spec(deaths[0]).label} has ended")
            elif self._failed and len(counts) > 1:
                self.leave("the ranks were at different collectives")
        for pid in process_table.descendants(
            os.getpid(), without={rank.pid for rank in self.ranks}
        ):
            system.kill(pid)

    @property
    def is_ending(self) -> bool:
        return self.ending

    def take_signals(self, on_terminate: Handler, on_notice: Handler) -> None:
        """Leave the signals to the session: they end more than a cell."""

    @property
    def straggler(self) -> Optional[StayingChild]:
        """A rank that is still at work in the cell of a run that has ended."""
        return next((rank for rank in self.ranks if rank.is_busy and not rank.death), None)

    # -- between cells ------------------------------------------------------------------------

    def ask(
        self, rank: StayingChild, word: Dict[str, Any], turn: Callable[[], None]
    ) -> Dict[str, Any]:
        """Return the answer of a rank between cells. *turn* writes the log meanwhile."""
        rank.answer = None
        rank.order(word)
        until = time.monotonic() + ANSWERS_WITHIN_S
        while rank.answer is None and not rank.death and time.monotonic() < until:
            turn()
            list(self.ends())
        return rank.answer or {"error": rank.death or "it doesn't answer"}

    def end(self, seconds: float) -> None:
        """End all ranks. Kill those that are still there after so many seconds."""
        for rank in self.ranks:
            rank.order({"do": rank_session.FINISH})
        until = time.monotonic() + seconds
        while any(not rank.death for rank in self.ranks) and time.monotonic() < until:
            time.sleep(0.01)
            self.look_for_deaths()
        for pid in process_table.descendants(os.getpid()):
            system.kill(pid)


def has_left(reason: str) -> str:
    """Return the line of a log about ranks that have left their process groups."""
    return (
        f"all ranks have left their process groups, as {reason}: names are kept; "
        "call init_process_group again, and wrap models in DDP or FSDP again"
    )
