"""The ranks of a session, to whoever hands them its cells: those of this machine are here.

The process of a session asks no more of them than `Ranks` says. Where they are replicas of a job,
each replica has the ranks of its machine, and a class of its own speaks with all replicas.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.session import GET, NAMES, NAMES_FILE, PUT, RESTART
from distrain_nb.worker.files.status import Process
from distrain_nb.worker.machine import system
from distrain_nb.worker.metrics import writer
from distrain_nb.worker.supervisor.output import Output
from distrain_nb.worker.supervisor.staying_child import StayingChild
from distrain_nb.worker.supervisor.staying_crew import StayingCrew
from distrain_nb.worker.supervisor.supervisor import Supervisor

TURN_S = 0.5
ENDS_WITHIN_S = 5.0


class SessionOwner(ABC):
    """Whoever has the ranks of a session."""

    @abstractmethod
    def note_change(self) -> None:
        """Keep which ranks there are: one has ended, or is new."""

    @abstractmethod
    def note_begin(self) -> None:
        """Leave word that the ranks have been handed a cell, or that it waits for them."""

    @abstractmethod
    def attend(self) -> None:
        """Take what is asked, while the ranks start."""


class Ranks(ABC):
    """The ranks of a session."""

    @property
    @abstractmethod
    def is_ending(self) -> bool:
        """Whether they end, or have ended: no further cell begins."""

    @property
    def why_ended(self) -> str:
        """Why they have ended by themselves; empty where they haven't."""
        return ""

    @property
    @abstractmethod
    def processes(self) -> Tuple[Process, ...]:
        """The ranks, each with why it has ended."""

    @abstractmethod
    def start(self, session: SessionOwner, listener: int) -> None:
        """Start them, and return when they are ready. What can be read at the descriptor `listener`
        ends a `rest`."""

    @abstractmethod
    def rest(self) -> None:
        """Let some time pass between cells, and notice ranks that end."""

    @abstractmethod
    def run(self, folder: Path) -> None:
        """Run the cell of a run's folder, and return when it has ended."""

    @abstractmethod
    def answer(self, words: Mapping[str, Any]) -> Dict[str, Any]:
        """Do what a session is asked between cells."""

    @abstractmethod
    def end_soon(self) -> None:
        """Have the cell that is at work stopped, and no further one begin. Any thread may call it,
        and a handler of signals."""

    @abstractmethod
    def end(self) -> str:
        """End them all. Return why some may still be there; empty where none is."""


class StayingRanks(Ranks):
    """Ranks of this machine, as processes below this one. `folder` has their names."""

    def __init__(self, folder: Path, launch: Launch) -> None:
        self._folder = folder
        self._launch = launch
        self._session: Optional[SessionOwner] = None
        self.crew = StayingCrew(folder, launch, self._note_change, self._note_begin)

    def _note_change(self) -> None:
        if self._session:
            self._session.note_change()

    def _note_begin(self) -> None:
        if self._session:
            self._session.note_begin()

    @property
    def is_ending(self) -> bool:
        return self.crew.ending

    @property
    def processes(self) -> Tuple[Process, ...]:
        return tuple(
            Process(
                rank.number, spec.label, spec.role, spec.replica, spec.rank, rank.pid, rank.death
            )
            for rank in self.crew.ranks
            for spec in [self.crew.spec(rank)]
        )

    def start(self, session: SessionOwner, listener: int = -1) -> None:
        system.adopt_orphans()
        self._output = Output(self._folder)
        self._output.wake_by(self.crew.wakeup())
        if listener >= 0:
            self._output.watch(listener)
        for number in range(len(self._launch.processes)):
            self.crew.ranks.append(None)  # type: ignore[arg-type]  # whose place is taken next
            self.crew.fork(number, self._output)
        self._session = session

    def rest(self) -> None:
        """Keep what ranks print between cells, and notice those that end."""
        self._output.turn(TURN_S)
        list(self.crew.ends())

    def run(self, folder: Path) -> None:
        if self.crew.straggler:
            self._note_begin()
        while self.crew.straggler and not (folder / CANCEL_FILE).exists():
            self.rest()
            if self.crew.ending:
                break
        self.crew.finish(self._output)
        try:
            Supervisor(folder, crew=self.crew).run()
        finally:
            writer.begin_run()  # whose files of this cell are open
            self.crew.listen(self._output)

    def answer(self, words: Mapping[str, Any]) -> Dict[str, Any]:
        if words.get("ask") == RESTART:
            return self._restart(words)
        if words.get("ask") in (GET, PUT, NAMES):
            return self._of_ranks(words)
        return {}

    def _of_ranks(self, words: Mapping[str, Any]) -> Dict[str, Any]:
        """Return each rank's answer, by its number."""
        answers: Dict[str, Any] = {}
        for rank in self.crew.ranks:
            number = self.crew.spec(rank).rank
            if words["ranks"] is not None and number not in words["ranks"]:
                continue
            if rank.death or rank.is_busy:
                answers[str(number)] = {"error": rank.death or "it is still busy with a cell"}
                continue
            order = {**words, "do": words["ask"]}
            if words["ask"] == GET:
                order["folder"] = f"{words['folder']}/{number}"
            answers[str(number)] = self.crew.ask(rank, order, lambda: self._output.turn(TURN_S))
        return answers

    def _restart(self, words: Mapping[str, Any]) -> Dict[str, Any]:
        """Put new ranks in the place of some, which have no names yet."""
        for rank in list(self.crew.ranks):
            if self.crew.spec(rank).rank not in words["ranks"]:
                continue
            self._end_rank(rank)
            with suppress(OSError):
                (self._folder / NAMES_FILE.format(rank.number)).unlink()
            self.crew.fork(rank.number, self._output)
        self.crew.leave("ranks were started anew")
        self._note_change()
        return {}

    def _end_rank(self, rank: StayingChild) -> None:
        if not rank.death:
            system.kill(rank.pid)
        while not rank.death:
            self.crew.look_for_deaths()
            time.sleep(0.01)
        with suppress(KeyError, ValueError):
            self._output.unwatch(rank.channel.fileno())
        self._output.drain(ENDS_WITHIN_S)
        rank.close()

    def end_soon(self) -> None:
        self.crew.ending = True

    def end(self) -> str:
        self.crew.end(ENDS_WITHIN_S)
        self._output.close()
        return ""
