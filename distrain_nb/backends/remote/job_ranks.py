"""The ranks of a session whose replicas are those of a job, as the session's process has them.

The replicas follow orders (`worker/files/orders.py`), whose folders have what they leave of each.
"""

from __future__ import annotations

import select
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote.carried import CarriedRun, error_line
from distrain_nb.backends.remote.carrier import carry_cell, phase_of, waiting_reason
from distrain_nb.backends.remote.cells import CellSpec
from distrain_nb.backends.remote.name_tables import NameTables
from distrain_nb.backends.remote.sending import Cancelled, send
from distrain_nb.backends.remote.service import Pace, Service, Unanswered
from distrain_nb.backends.remote.shared_folder import SharedFolderService, SharedSpec
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.backends.remote.variables import delete_variables
from distrain_nb.errors import DistrainError
from distrain_nb.types import JsonObject, Unknown
from distrain_nb.worker.files import orders
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.orders import LEAVE, STOP, VALUES, Order
from distrain_nb.worker.files.session import (
    END,
    GET,
    MEMORY_FILE,
    NAMES,
    PUT,
    RESTART,
)
from distrain_nb.worker.files.status import Process, State, Status, request_cancel
from distrain_nb.worker.replica import shared
from distrain_nb.worker.supervisor.staying import Ranks, SessionOwner
from distrain_nb.worker.supervisor.staying_crew import has_left

if TYPE_CHECKING:
    from distrain_nb.backends.remote.resuming import ResumingBackend


CELL_PACE = Pace(look=0.1, quiet=0, arrival=5.0, fetch=20.0)
REST_S, ANSWER_LOOK_S = 0.5, 0.03
JOB_LOOK_S = 2.0  # between cells
LOST_AFTER_S = 60.0  # of silence; a network file system may keep what is new for seconds
ANSWERS_WITHIN_S, ENDS_WITHIN_S, CANCELLED_WITHIN_S = 60.0, 10.0, 30.0


class JobRanks(Ranks):
    """The ranks of a session whose replicas are those of a job. `folder` is the session's, and
    `make` gives the service that a cell's run is carried by, which has the cell's number."""

    def __init__(self, folder: Path, make: MakeCell) -> None:
        self._folder = folder
        self._make = make
        self._run = CarriedRun(folder)
        self._submission = Submission.read(folder)
        backend = cast("ResumingBackend[Unknown, Unknown]", find(self._submission.backend))
        self._run.pace = backend.pace
        self._service = cast(
            "SharedFolderService[SharedSpec]",
            backend.service(self._submission.spec, {}, folder),
        )
        self._per_replica = len(self._submission.processes) // len(self._service.members)
        self._names = NameTables(self.job, folder, self._per_replica)
        self._processes = self._submission.processes
        self._beats = orders.Beats(self.job)
        self._number = orders.START
        self._address = ""
        self._memory: dict[int, int] = {}
        self._ending, self._why = False, ""
        self._present: Path | None = None
        self._looked_at = 0.0

    # -- what it is ---------------------------------------------------------------------------

    @property
    def job(self) -> Path:
        """The folder of the job, as this machine has it."""
        return self._service.folder

    @property
    def members(self) -> Sequence[tuple[str, int]]:
        return self._service.members

    @property
    def is_ending(self) -> bool:
        return self._ending

    @property
    def why_ended(self) -> str:
        return self._why

    @property
    def processes(self) -> tuple[Process, ...]:
        return self._processes

    def replicas_of(self, ranks: Iterable[int]) -> list[int]:
        """Return the numbers of the replicas that have these ranks."""
        return sorted({rank // self._per_replica for rank in ranks})

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(range(len(self._processes)))

    # -- start and end ------------------------------------------------------------------------

    def start(self, session: SessionOwner, listener: int) -> None:
        self._session, self._listener = session, listener
        self._run.take(self._submission.processes)
        try:
            send(self._run, self._service)
        except Cancelled:
            self._ending = True
            return
        delete_variables(self._folder)
        self._stop_left()
        while not self._ending and not self._are_ready():
            self._say_where_it_is()
            self._wait(self._run.pace.look)
            session.attend()
        self._look_at_ranks()

    def _stop_left(self) -> None:
        """Stop the cell that an earlier process of this session was at, which was killed: nobody
        follows its run any more."""
        ordered = (self.job / orders.ORDERED).glob("*/replicas/*")
        self._number = max((int(place.parents[1].name) for place in ordered), default=orders.START)
        if self._number > orders.START:
            self.give(STOP, {"of": self._number})

    def _are_ready(self) -> bool:
        with suppress(Unanswered):
            self._service.pull()
        answers = self.answers(orders.START, range(len(self.members)))
        if None in answers.values():
            return False
        self._note(answers)
        return True

    def _say_where_it_is(self) -> None:
        """Show how the job is doing. Raises DistrainError for one that has ended."""
        try:
            observed = self._service.observe(self._run.journal.job)
        except Exception as error:
            self._run.note(f"can't reach the service, trying again: {error_line(error)}", error)
            return
        if observed.state.final:
            raise DistrainError(observed.error or f"the job has ended: {observed.state}")
        state = State.STARTING if observed.state is State.RUNNING else observed.state
        phase = phase_of(observed, observed.state)
        phase = "starting ranks" if observed.state is State.RUNNING else phase
        status = self._run.status
        entered = status.reach(phase) if state is status.state else status.enter(state, phase)
        self._run.put(replace(entered, progress=None))
        self._run.note(waiting_reason(observed))

    def end_soon(self) -> None:
        self._ending = True
        with suppress(OSError):
            request_cancel(self._present or self._folder)

    def end(self) -> str:
        """Have the replicas end by themselves, or else the job."""
        if not self._run.may_be_there:
            return ""
        until = time.monotonic() + ENDS_WITHIN_S
        has_ended = False
        with suppress(DistrainError, OSError):
            if self._address and not self._why:
                self.give(END, {})
            while not has_ended and self._address and time.monotonic() < until:
                self._service.pull()
                has_ended = all(map(self._has_ended, range(len(self.members))))
                time.sleep(0.1)
        trouble = self._end_job(is_last=has_ended)
        with suppress(OSError):
            (self.job / shared.VARIABLES).unlink()
        return trouble

    def _end_job(self, *, is_last: bool) -> str:
        """Cancel the job, unless it has ended; return why it may still be there. Its replicas end
        by themselves when nobody has ordered anything for the session's idle time."""
        job, until = self._run.journal.job, time.monotonic() + CANCELLED_WITHIN_S
        while job and not self._has_job_ended(is_last=is_last):
            try:
                self._service.cancel(job)
                return ""
            except DistrainError as error:
                if time.monotonic() > until:
                    return f"its job {job} may still be there: {error_line(error)}"
            time.sleep(1.0)
        return ""

    def _has_job_ended(self, *, is_last: bool) -> bool:
        """Return whether the job has ended; one whose replicas have, soon does so."""
        until = time.monotonic() + (ENDS_WITHIN_S if is_last else 0.0)
        while True:
            with suppress(DistrainError):
                if self._service.observe(self._run.journal.job).state.final:
                    return True
            if time.monotonic() > until:
                return False
            time.sleep(0.5)

    def _has_ended(self, replica: int) -> bool:
        status = self._status(replica)
        return replica in self.lost() or (status is not None and status.state.final)

    # -- between cells ------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Wait, but only until something is asked of the session."""
        select.select([self._listener], [], [], seconds)

    def rest(self) -> None:
        self._wait(REST_S)
        if time.monotonic() > self._looked_at + JOB_LOOK_S:
            self._looked_at = time.monotonic()
            with suppress(DistrainError, OSError):
                self._look_at_job()

    def _look_at_job(self) -> None:
        """Notice ranks that have ended, and the end of the job."""
        self._look_at_ranks()
        observed = self._service.observe(self._run.journal.job)
        if observed.state.final:
            lines = (observed.error or "its job has ended").splitlines()
            self._why, self._ending = lines[0], True

    def look(self) -> None:
        """Bring what the replicas have left."""
        self._service.pull()
        self.lost()

    def _look_at_ranks(self) -> None:
        self.look()
        before, self._processes = self._processes, tuple(self._living())
        if self._processes != before:
            self._session.note_change()

    def _living(self) -> Iterator[Process]:
        """Yield the ranks, as the replicas know them. Their processes are elsewhere."""
        lost = self.lost()
        for replica, _ in enumerate(self.members):
            first = replica * self._per_replica
            status = self._status(replica)
            there = status.processes if status else ()
            for process in self._processes[first : first + self._per_replica]:
                present = next((p for p in there if p.rank == process.rank), None)
                outcome = present.outcome if present else ""
                if replica in lost:
                    outcome = outcome or f"its machine was lost: {lost[replica]}"
                yield replace(process, outcome=outcome)

    def _status(self, replica: int) -> Status | None:
        with suppress(OSError, Damaged):
            return Status.read(shared.replica_folder(self.job, replica))
        return None

    def lost(self) -> Mapping[int, str]:
        """Return the replicas that are gone, and why: by whom the service asks, or as they say
        nothing any more."""
        stated = self._service.lost()
        if stated is not None:
            return stated
        silent = self._beats.silent(range(len(self.members)), LOST_AFTER_S)
        return dict.fromkeys(silent, f"it has said nothing for {LOST_AFTER_S:g} s")

    # -- orders -------------------------------------------------------------------------------

    def give(self, do: str, words: JsonObject, files: Mapping[str, Path] | None = None) -> int:
        """Order something of all replicas, and return its number."""
        order = Order(self._number + 1, do, dict(words))
        self.send(order, files or {})
        return order.number

    def send(self, order: Order, files: Mapping[str, Path]) -> None:
        """Give an order that may have been given before, without an answer. Raises Unanswered."""
        self._service.give(order, files)
        self._number = max(self._number, order.number)

    def answer(self, words: Mapping[str, Unknown]) -> dict[str, Unknown]:
        asked = words.get("ask")
        if asked not in (GET, PUT, NAMES, RESTART):
            return {}
        ranks = self.ranks if words["ranks"] is None else tuple(words["ranks"])
        lost = self.lost()
        gone = [rank for rank in ranks if rank // self._per_replica in lost]
        if gone and asked == RESTART:
            why = lost[gone[0] // self._per_replica]
            return {"error": f"rank {gone[0]} can't come back: its machine was lost: {why}"}
        files = {VALUES: Path(words["folder"])} if asked == PUT else {}
        rest = {name: word for name, word in words.items() if name not in ("ask", "folder")}
        number = self.give(str(asked), rest, files)
        answers = self._await(number, self.replicas_of(ranks))
        merged = {str(rank): {"error": "it doesn't answer"} for rank in ranks}
        for reply in filter(None, answers.values()):
            merged.update(reply.get("ranks", {}))
        if asked == GET:
            self._fetch_values(number, Path(words["folder"]))
        if asked == RESTART:
            self._names.forget(ranks)
            self._look_at_ranks()
            return {}
        self._names.bring(self.ranks)
        return merged

    def _await(self, number: int, replicas: Sequence[int]) -> dict[int, dict[str, Unknown] | None]:
        """Wait for the answers of replicas; those that give none in time are left out."""
        until = time.monotonic() + ANSWERS_WITHIN_S
        while True:
            with suppress(DistrainError):
                self.look()
            answers = self.answers(number, replicas)
            missing = [n for n, words in answers.items() if words is None and n not in self.lost()]
            if not missing or time.monotonic() > until:
                self._note(answers)
                return answers
            time.sleep(ANSWER_LOOK_S)

    def answers(self, number: int, replicas: Iterable[int]) -> dict[int, dict[str, Unknown] | None]:
        return {n: orders.answer_of(self.job, number, n) for n in replicas}

    def _note(self, answers: Mapping[int, Mapping[str, Unknown] | None]) -> None:
        """Note what replicas say with every answer."""
        for replica, words in answers.items():
            if words:
                self._address = str(words.get("address", self._address))
                self._memory[replica] = int(words.get("memory", 0))
        with suppress(OSError):
            replace_file(self._folder / MEMORY_FILE, b"%d" % sum(self._memory.values()))

    @property
    def address(self) -> str:
        """Where ranks meet that make a group in the next cell."""
        return self._address

    def _fetch_values(self, number: int, target: Path) -> None:
        for replica, _ in enumerate(self.members):
            source = orders.place_of(self.job, number, replica) / VALUES
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)

    # -- cells --------------------------------------------------------------------------------

    def run(self, folder: Path) -> None:
        def make(spec: JsonObject) -> Service:
            return self._make(CellSpec.of(spec), self, self._number + 1, folder)

        self._present = folder
        self._session.note_begin()
        if self._ending:
            request_cancel(folder)
        try:
            carry_cell(folder, make, CELL_PACE)
        finally:
            self._present = None
            with suppress(DistrainError, OSError):
                self._look_at_ranks()

    def settle(self, replies: Mapping[int, Mapping[str, Unknown]], ranks: Sequence[int]) -> str:
        """Have what is to be had before the next cell, and return what its log says of groups.

        Ranks leave their groups everywhere if some have, or if they are not of use any more.
        """
        self._note(replies)
        self._names.bring(self.ranks)
        answers = replies.values()
        why = next((str(words["left"]) for words in answers if words.get("left")), "")
        sequences = {number for words in answers for number in words.get("sequences", ())}
        failed = any(words.get("failed") for words in answers)
        remark = ""
        if not why and len(ranks) == len(self.ranks) and max(sequences, default=-1) >= 0:
            if len(replies) < len(self.replicas_of(ranks)):
                why = "a machine was lost"
            elif failed and len(sequences) > 1:
                why = "the ranks were at different collectives"
            remark = has_left(why) if why else ""
        if why:
            self.give(LEAVE, {"why": why})
        return remark


MakeCell: TypeAlias = Callable[[CellSpec, JobRanks, int, Path], Service]
