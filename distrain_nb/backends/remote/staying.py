"""A cell of a session whose ranks are elsewhere, and the process of such a session.

`python -m distrain_nb.backends.remote.staying FOLDER`: send the job of a session's folder, and hand
its replicas one cell after the other. Each cell is a run that is carried as that of any job.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.remote import carrier_log
from distrain_nb.backends.remote.cells import CellSpec
from distrain_nb.backends.remote.job_ranks import JobRanks
from distrain_nb.backends.remote.lock import carrier_lock
from distrain_nb.backends.remote.log_writer import SERVICE
from distrain_nb.backends.remote.prompt_relay import PromptRelay
from distrain_nb.backends.remote.service import Cursor, LogEntry, Observed
from distrain_nb.backends.remote.shared_folder import SharedFolderService
from distrain_nb.errors import DistrainError
from distrain_nb.types import JsonObject, Unknown
from distrain_nb.worker.files import orders
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.orders import CELL, PROGRAM, STOP, Order
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.supervisor.session import SessionProcess

if TYPE_CHECKING:
    from distrain_nb.image import Listener


@dataclass(frozen=True)
class CellService(SharedFolderService[CellSpec]):
    """A cell of a session as a job: an order of that number, in whose folder replicas leave what
    those of a job leave."""

    ranks: JobRanks
    number: int
    relay: PromptRelay
    _state: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return orders.folder_of(self.ranks.job, self.number)

    @property
    def members(self) -> Sequence[tuple[str, int]]:
        return self.ranks.members

    def stage(self, program: Path, tell: Listener) -> JsonObject:  # noqa: ARG002
        return {"program": str(program)}

    def create(self, request: JsonObject) -> str:
        words: JsonObject = {
            "ranks": list(self.spec.ranks),
            "results": list(self.spec.results),
            "timeout": self.spec.timeout,
            "grace": self.spec.grace,
            "address": self.ranks.address,
            "answered": self.relay.begin(),
        }
        order = Order(self.number, CELL, dict(words))
        self.ranks.send(order, {PROGRAM: Path(str(request["program"]))})
        return str(self.number)

    def find(self, request: JsonObject) -> str:  # noqa: ARG002
        """Return nothing: nobody tells whether it has arrived, and it may be ordered again."""
        return ""

    def observe(self, job: str) -> Observed:  # noqa: ARG002
        self.ranks.look()
        with suppress(OSError):  # the run has been deleted
            self.relay.turn()
        replicas = self.ranks.replicas_of(self.spec.ranks)
        answers = self.ranks.answers(self.number, replicas)
        lost = {n: why for n, why in self.ranks.lost().items() if n in replicas and not answers[n]}
        replies = {n: words for n, words in answers.items() if words}
        if lost or any(words.get("failed") or words.get("error") for words in replies.values()):
            self._stop()  # the others, which may wait for them
        if len(replies) + len(lost) < len(replicas):
            return Observed(State.RUNNING)
        self.relay.end()
        if "remark" not in self._state:
            self._state["remark"] = self.ranks.settle(replies, self.spec.ranks)
        return self._outcome(replies.values(), lost)

    def _outcome(
        self, replies: Iterable[Mapping[str, Unknown]], lost: Mapping[int, str]
    ) -> Observed:
        """Return how it has ended, of which all replicas have said what they can."""
        errors = [str(words["error"]) for words in replies if words.get("error")]
        for number, why in lost.items():
            role, index = self.members[number]
            errors.append(f"{role} {index} was lost: {why}")
        failed = self.first_failure()
        if errors or failed:
            return Observed(State.FAILED, error="\n".join(filter(None, (*errors, failed))))
        ended = self._statuses()
        cancelled = [status for status in ended if status.state is State.CANCELLED]
        if cancelled:
            return Observed(State.CANCELLED, error=cancelled[0].error)
        return Observed(State.SUCCEEDED)

    def _statuses(self) -> Iterator[Status]:
        for number in self.ranks.replicas_of(self.spec.ranks):
            with suppress(OSError, Damaged):
                yield Status.read(orders.place_of(self.ranks.job, self.number, number))

    def _stop(self) -> None:
        if "stopped" not in self._state:
            self.ranks.give(STOP, {"of": self.number})
            self._state["stopped"] = "yes"

    def cancel(self, job: str) -> None:  # noqa: ARG002
        self._stop()

    def log(self, job: str, cursor: Cursor, *, last: bool) -> tuple[Sequence[LogEntry], Cursor]:
        entries, reached = super().log(job, cursor, last=last)
        remark = self._state.get("remark")
        if last and remark and not cursor.get("remark"):
            entries = [*entries, LogEntry(time.time(), SERVICE, 0, remark, "e")]
            reached = {**reached, "remark": True}
        return entries, reached

    def links(self, job: str) -> Mapping[str, str]:  # noqa: ARG002
        return {}


def make_cell(spec: CellSpec, ranks: JobRanks, number: int, folder: Path) -> CellService:
    """Return the cell of a run's folder as the order of that number."""
    places: dict[int, list[int]] = {}  # of the cell's ranks in the run, by replica
    for place, rank in enumerate(spec.ranks):
        (replica,) = ranks.replicas_of((rank,))
        places.setdefault(replica, []).append(place)
    of_replica = partial(orders.place_of, ranks.job, number)
    relay = PromptRelay(folder, of_replica, number, places, ranks.give)
    return CellService(spec, ranks, number, relay)


def main(folder: Path) -> None:
    """Be the process of a session from the start of its job to its end."""
    with carrier_lock(folder) as mine:
        if not mine:
            return
        ranks: JobRanks | None = None
        try:
            ranks = JobRanks(folder, make_cell)
            SessionProcess(folder, ranks).run()
        except Exception as error:
            _give_up(folder, error)
            if ranks is not None:
                ranks.end()


def _give_up(folder: Path, error: Exception) -> None:
    expected = isinstance(error, DistrainError)
    message = str(error) if expected else f"{type(error).__name__}: {error}"
    with suppress(OSError, Damaged):
        Status.read(folder).enter(State.FAILED, str(State.FAILED), error=message).write(folder)


if __name__ == "__main__":
    carrier_log.start(Path(sys.argv[1]))
    main(Path(sys.argv[1]))
