"""The relay between ranks that ask the user and a user who is elsewhere.

A rank writes its question into files of its replica, as `worker/files/prompts.py` describes: those
of a run, or of a session's cell. The relay copies the question into the run's folder, where the
kernel reads it like one of a local rank. The answer goes back as an order. Orders are files, so
nobody is asked for a password.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from distrain_nb.backends.remote.replica_files import labels_of
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.folder import PROMPTS_FOLDER
from distrain_nb.worker.files.orders import HEARD, HOLD, REPLIES, REPLY, REQUEST
from distrain_nb.worker.files.private_folder import private_folder
from distrain_nb.worker.files.prompts import Asker, PromptRequest

REPLIES_WITHIN_S = 10.0

Give = Callable[[str, JsonObject], object]


@dataclass
class _Passed:
    """One process that asks.

    `shown` is its entry in the run's folder. `pipe` brings the answers while the process waits.
    """

    replica: int
    asker: Asker
    shown: Asker
    position: int = 0
    rest: bytes = b""
    pipe: int = -1
    answers: bytes = b""


class _Inquiry(NamedTuple):
    """A request with a name, by a rank of one replica to the ranks of the others."""

    origin: int
    name: str
    others: tuple[int, ...]
    until: float


@dataclass
class PromptRelay:
    """The questions of a run, or of a session's cell.

    `number` is that of the order which started it. `place` returns the folder in which a replica
    has its files. `members` are the numbers of the ranks in the run by replica, in the order of the
    replica's own. `give` gives an order to the replicas.
    """

    run: Path
    place: Callable[[int], Path]
    number: int
    members: Mapping[int, Sequence[int]]
    give: Give
    _passed: dict[tuple[int, Asker], _Passed] = field(default_factory=dict)
    _heard: bool | None = None
    _waiting: tuple[int, ...] = ()
    _requested: str = ""
    _inquiries: list[_Inquiry] = field(default_factory=list)

    def begin(self) -> bool | None:
        """Return whether somebody can answer. The cell is told this when it starts."""
        request = prompts.request(self.run)
        self._requested = request.name if request else ""
        self._heard = prompts.is_answered(self.run)
        return self._heard

    def turn(self) -> None:
        """Pass on everything that is new."""
        self._tell_who_hears()
        for replica in self.members:
            for asker in prompts.askers(self.place(replica)):
                self._bring(replica, asker)
        for passed in self._passed.values():
            for answer in self._answers(passed):
                self._order(REPLY, replica=passed.replica, asker=list(passed.asker), **answer)
        waiting = tuple(sorted({p.replica for p in self._passed.values() if p.pipe >= 0}))
        if waiting != self._waiting:
            self._waiting = waiting
            self._order(HOLD, replicas=list(waiting))
        self._pass_request()
        self._pass_replies()

    @property
    def open(self) -> list[int]:
        """The numbers of the run's processes that wait at a prompt."""
        return sorted(p.shown.process for p in self._passed.values() if p.pipe >= 0)

    def end(self) -> None:
        """Close the pipes."""
        for passed in self._passed.values():
            self._close(passed)

    def _order(self, do: str, **words: Json) -> None:
        self.give(do, {"of": self.number, **words})

    def _tell_who_hears(self) -> None:
        heard = prompts.is_answered(self.run)
        if heard != self._heard:
            self._heard = heard
            self._order(HEARD, answered=heard)

    def _pass_request(self) -> None:
        """Have a rank stop at its prompt, as `%distrain debug` asks."""
        request = prompts.request(self.run)
        if request is None or request.name == self._requested:
            return
        self._requested = request.name
        for replica, numbers in self.members.items():
            targets = tuple(place for place, n in enumerate(numbers) if n in request.targets)
            if targets:
                self._request(replica, replace(request, targets=targets))

    def _request(self, replica: int, request: PromptRequest) -> None:
        self._order(
            REQUEST, replica=replica, request={**asdict(request), "targets": list(request.targets)}
        )

    # -- between the ranks --------------------------------------------------------------------

    def _inquire(self, origin: int, request: PromptRequest) -> None:
        """Ask the ranks of all other replicas what one rank of replica `origin` asks."""
        others = {n: numbers for n, numbers in self.members.items() if n != origin}
        for replica, numbers in others.items():
            self._request(replica, replace(request, targets=tuple(range(len(numbers)))))
        until = time.monotonic() + REPLIES_WITHIN_S
        self._inquiries.append(_Inquiry(origin, request.name, tuple(others), until))

    def _pass_replies(self) -> None:
        """Pass on the replies of ranks: when all have replied, or when the time is over."""
        waiting, self._inquiries = self._inquiries, []
        for inquiry in waiting:
            texts: dict[str, str | None] = {}
            for replica in inquiry.others:
                answers = prompts.replies(self.place(replica), inquiry.name)
                for place, label in enumerate(self._labels(replica)):
                    texts[label] = answers.get(place)
            if None in texts.values() and time.monotonic() < inquiry.until:
                self._inquiries.append(inquiry)
                continue
            silent = f"*** no answer within {REPLIES_WITHIN_S:g} s"
            replies = {label: silent if text is None else text for label, text in texts.items()}
            self._order(REPLIES, replica=inquiry.origin, name=inquiry.name, replies=dict(replies))

    def _labels(self, replica: int) -> tuple[str, ...]:
        """Return the labels of a replica's ranks; nothing before the replica has begun."""
        try:
            return labels_of(self.place(replica))
        except (FileNotFoundError, Damaged):
            return ()

    # -- from the ranks -----------------------------------------------------------------------

    def _bring(self, replica: int, asker: Asker) -> None:
        """Copy what a process has written since the last time."""
        passed = self._passed.get((replica, asker))
        if passed is None:
            shown = Asker(self.members[replica][asker.process], asker.pid)
            passed = self._passed[replica, asker] = _Passed(replica, asker, shown)
        with asker.asked(self.place(replica)).open("rb") as file:
            file.seek(passed.position)
            data = file.read()
        passed.position += len(data)
        *lines, passed.rest = (passed.rest + data).split(b"\n")
        for line in lines:
            word = json.loads(line)
            if "inquire" in word:
                self._inquire(replica, PromptRequest(**word["inquire"]))
            elif "open" not in word:
                self._append(passed, line + b"\n")
            elif word["open"]:
                self._open(passed)
            else:
                self._close(passed)

    def _append(self, passed: _Passed, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(passed.shown.asked(self.run), flags, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def _open(self, passed: _Passed) -> None:
        private_folder(self.run / PROMPTS_FOLDER)
        pipe = passed.shown.answers(self.run)
        with suppress(FileExistsError):
            os.mkfifo(pipe, 0o600)
        passed.pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        replace_file(passed.shown.open(self.run), str(os.getpid()).encode())

    def _close(self, passed: _Passed) -> None:
        if passed.pipe >= 0:
            os.close(passed.pipe)
            passed.pipe, passed.answers = -1, b""
            passed.shown.open(self.run).unlink(missing_ok=True)
            passed.shown.answers(self.run).unlink(missing_ok=True)

    # -- to the ranks -------------------------------------------------------------------------

    def _answers(self, passed: _Passed) -> Iterator[dict[str, Json]]:
        """Yield the answers that have come."""
        while passed.pipe >= 0:
            try:
                data = os.read(passed.pipe, 1 << 16)
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    raise
                return
            *lines, passed.answers = (passed.answers + data).split(b"\n")
            yield from map(json.loads, lines)
