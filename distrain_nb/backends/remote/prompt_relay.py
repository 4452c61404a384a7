"""Passes on what ranks elsewhere ask, and the answers to it.

A rank asks its replica, by the files of `worker/files/prompts.py` where the replica has its own:
those of a run, or of a session's cell. They are brought into the run's folder, where a kernel finds
them as those of a rank here. Answers go back as orders, which lie in files: so nobody is asked for
a password.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.disk import private_folder, replace_file
from distrain_nb.worker.files.folder import PROMPTS_FOLDER
from distrain_nb.worker.files.orders import HEARD, HOLD, REPLY, REQUEST
from distrain_nb.worker.files.prompts import Asker

Give = Callable[[str, JsonObject], object]


@dataclass
class _Passed:
    """One process that asks: `shown` is what the run's folder has of it, `pipe` where answers to it
    come while it waits."""

    replica: int
    asker: Asker
    shown: Asker
    position: int = 0
    rest: bytes = b""
    pipe: int = -1
    answers: bytes = b""


@dataclass
class PromptRelay:
    """The questions of the run or cell whose order has that number. `place` is where a replica has
    its files. `members` are the numbers of the ranks in the run by replica, in the order that the
    replica has them. `give` gives an order."""

    run: Path
    place: Callable[[int], Path]
    number: int
    members: Mapping[int, Sequence[int]]
    give: Give
    _passed: dict[tuple[int, Asker], _Passed] = field(default_factory=dict)
    _heard: bool | None = None
    _waiting: tuple[int, ...] = ()
    _requested: str = ""

    def begin(self) -> bool | None:
        """Return whether somebody can answer, as the cell is to be told."""
        request = prompts.request(self.run)
        self._requested = request.name if request else ""
        self._heard = prompts.is_answered(self.run)
        return self._heard

    def turn(self) -> None:
        """Pass on what is new."""
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

    @property
    def open(self) -> list[int]:
        """The numbers of the run's processes that wait at a prompt."""
        return sorted(p.shown.process for p in self._passed.values() if p.pipe >= 0)

    def end(self) -> None:
        """Let go of the pipes."""
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
            targets = [place for place, number in enumerate(numbers) if number in request.targets]
            if targets:
                self._order(REQUEST, replica=replica, kind=request.kind, targets=targets)

    # -- from the ranks -----------------------------------------------------------------------

    def _bring(self, replica: int, asker: Asker) -> None:
        """Bring what a process has said since the last time."""
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
            if "open" not in word:
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
