"""The prompts of a run whose ranks are elsewhere, from one attempt to the next.

The replicas of a run follow orders for their prompts if they find one when they begin. So the first
is given before the job is sent; without it none looks for more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from distrain_nb.backends.remote.carried import CarriedRun
from distrain_nb.backends.remote.prompt_relay import PromptRelay
from distrain_nb.backends.remote.service import Service
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.types import JsonObject
from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.files.orders import HEARD, ORDERS, START, Order
from distrain_nb.worker.files.status import Process
from distrain_nb.worker.rank import program
from distrain_nb.worker.rank.debugger import DEBUG_VARIABLE
from distrain_nb.worker.replica import shared
from distrain_nb.worker.replica.replica import TRAINING_ROLES

_log = logging.getLogger(__name__)

COUNTER = "orders-given"  # in the job's folder: the number of the last order


@runtime_checkable
class TakesOrders(Protocol):
    """What a service has besides whose replicas follow orders."""

    @property
    def folder(self) -> Path: ...

    @property
    def members(self) -> Sequence[tuple[str, int]]: ...

    @property
    def attempt(self) -> int: ...

    def give(self, order: Order, files: Mapping[str, Path]) -> None: ...

    def pull(self) -> None: ...


class RunPrompts:
    """What the ranks of a run ask: nothing where nobody follows it, or the service takes no
    orders."""

    def __init__(self, run: CarriedRun, submission: Submission, service: Service) -> None:
        self._run = run
        self._service = service if isinstance(service, TakesOrders) else None
        self._processes = submission.processes
        self._may_be_debugged = DEBUG_VARIABLE in program.variables(run.folder / PROGRAM_FOLDER)
        self._relay: PromptRelay | None = None

    def begin(self) -> None:
        """Begin an attempt that is about to be sent, or go on with one that has been."""
        service, folder = self._service, self._run.folder
        follows = prompts.is_answered(folder) is not None or self._may_be_debugged
        if service is None or not (follows or prompts.is_relayed(folder)):
            return
        if not self._run.may_be_there:
            for name in (ORDERS, COUNTER):
                (service.folder / name).unlink(missing_ok=True)
        prompts.forget(folder)
        prompts.note_relayed(folder)
        place = partial(shared.replica_folder, service.folder, attempt=service.attempt)
        members = _numbers(service.members, self._processes)
        self._relay = PromptRelay(folder, place, START, members, self._give)
        try:
            self._give(HEARD, {"of": START, "answered": self._relay.begin()})
        except Exception:  # as where a dashboard gives no answer: the run goes on without
            _log.warning("ranks of this attempt can't ask", exc_info=True)
            self._relay = None

    def turn(self) -> None:
        """Pass on what is new."""
        if self._relay is not None:
            self._relay.turn()

    def attend(self) -> None:
        """Pass on what is new while somebody is at a prompt, who waits for each answer."""
        if self._service is not None and self._relay is not None and self._relay.open:
            with suppress(Exception):  # the next look at the job says what is wrong
                self._service.pull()
                self._relay.turn()

    @property
    def note(self) -> str:
        """Which ranks wait at a prompt, for people."""
        labels = self._run.journal.labels
        names = [labels[number] for number in self._relay.open] if self._relay else []
        verb = "waits" if len(names) == 1 else "wait"
        return f"{', '.join(names)} {verb} at a prompt" if names else ""

    def end(self) -> None:
        """End the attempt's, and note whether somebody has left a debugger by `q`."""
        if self._service is None or self._relay is None:
            return
        self._relay.end()
        replicas = range(len(self._service.members))
        if any(prompts.is_quit(self._relay.place(number)) for number in replicas):
            prompts.note_quit(self._run.folder)

    def _give(self, do: str, words: JsonObject) -> None:
        assert self._service is not None
        counter = self._service.folder / COUNTER
        number = (int(counter.read_text()) if counter.exists() else 0) + 1
        self._service.give(Order(number, do, dict(words)), {})
        replace_file(counter, str(number).encode())


def _numbers(
    members: Sequence[tuple[str, int]], processes: Sequence[Process]
) -> dict[int, list[int]]:
    """Return the numbers of each replica's processes in the run, whose ranks come first."""
    trains = [number for number, (role, _) in enumerate(members) if role in TRAINING_ROLES]
    ranks = [process.index for process in processes if process.rank is not None]
    per_replica = len(ranks) // max(1, len(trains))
    numbers = {
        replica: ranks[place * per_replica : (place + 1) * per_replica]
        for place, replica in enumerate(trains)
    }
    others = (process.index for process in processes if process.rank is None)
    rest = (number for number in range(len(members)) if number not in numbers)
    return numbers | {replica: [number] for replica, number in zip(rest, others, strict=True)}
