"""A session, to every process but its own: its ranks, their names, and its end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.plugins import find
from distrain_nb.backends.sessions import HoldsSessions
from distrain_nb.config import home
from distrain_nb.errors import DistrainError, OptionError, did_you_mean
from distrain_nb.program import current_notebook
from distrain_nb.program.gathering.ranks import RankNames, digest
from distrain_nb.run.results import Results
from distrain_nb.run.summary import plural
from distrain_nb.scratch import Scratch
from distrain_nb.types import Json, Value
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.request import SessionQuery, ask
from distrain_nb.worker.files.session import (
    END,
    GET,
    MEMORY_FILE,
    PUT,
    REQUESTS,
    RESTART,
    SESSION_FILE,
    SESSIONS_FOLDER,
    NamesSent,
    PresentCell,
    SessionFile,
    names_of,
)
from distrain_nb.worker.files.status import Owner, Process, State, Status
from distrain_nb.worker.machine.process_table import resident_bytes
from distrain_nb.worker.rank import values

if TYPE_CHECKING:
    from typing_extensions import Self

LOOK_EVERY_S = 0.02
ENDS_WITHIN_S = 60.0  # a job elsewhere takes longer than ranks here


class SessionHandle:
    """Ranks that stay; any process may hold one. `with` ends it with the block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def file(self) -> SessionFile:
        try:
            return SessionFile.read(self.folder)
        except (OSError, fields.Damaged) as error:
            raise OptionError(f"session {self.name} can't be read: {error}") from None

    @property
    def backend(self) -> str:
        return self.file.backend

    @property
    def status(self) -> Status:
        """Its state, and its processes: `outcome` says why one has ended."""
        try:
            backend = find(self.backend)
            assert isinstance(backend, HoldsSessions)
            return backend.session_status(self.folder)
        except (OSError, fields.Damaged, OptionError):
            return Status(State.FAILED, error="its folder has been deleted")

    @property
    def ranks(self) -> Mapping[int, Process]:
        """Its ranks by their numbers."""
        return {p.rank: p for p in self.status.processes if p.rank is not None}

    @property
    def present(self) -> PresentCell:
        """The run at work in it, and how many there have been."""
        return PresentCell.read(self.folder)

    @property
    def idle(self) -> tuple[float, float]:
        """For how many seconds no cell has been at work, and after how many it ends."""
        present, file = self.present, self.file
        since = time.time() - max(present.since, file.created)
        return 0.0 if present.run else since, file.idle

    @property
    def memory(self) -> int:
        """Bytes of memory that its ranks have; elsewhere those after the last cell."""
        here = [process.pid for process in self.ranks.values() if process.pid]
        if here:
            return sum(map(resident_bytes, here))
        try:
            return int((self.folder / MEMORY_FILE).read_text())
        except (OSError, ValueError):
            return 0

    # -- cells --------------------------------------------------------------------------------

    def names(self, ranks: Sequence[int], at: int = 0, **choices: frozenset[str]) -> RankNames:
        """Return what ranks have, and what cells will have made that are at work or in the
        queue."""
        numbers = {p.rank: p.index for p in self.status.processes}
        tables = {rank: names_of(self.folder, numbers[rank]) for rank in ranks}
        for folder in self.present.folders:
            program = Path(folder) / PROGRAM_FOLDER
            sent, label = NamesSent.read(program), Path(folder).name
            stamp = {"type": "", "same": "", "reads": (), "kernel": sent.kernel, "sent": -1}
            stamp |= {
                "digest": "",
                "set": sent.at,
                "in_place": False,
                "cell": f"run {label}",
                "line": 0,
            }
            launch = Launch.read(Path(folder))
            for spec in launch.processes:
                if spec.rank in tables:
                    tables[spec.rank] |= dict.fromkeys(sent.binds, stamp)
        return RankNames(self.name, tables, kernel_name(), at, **choices)

    def chosen(self, text: str) -> tuple[int, ...]:
        """Return the ranks that `--rank` names, or all. Raises OptionError for one that it hasn't,
        or that has ended."""
        ranks = self.ranks
        try:
            chosen = tuple(int(part) for part in text.split(",")) if text else tuple(ranks)
        except ValueError:
            chosen = ()
        if not chosen or not set(chosen) <= ranks.keys():
            raise OptionError(
                f"invalid --rank {text!r}: session {self.name} has the ranks "
                f"{', '.join(map(str, ranks))}"
            )
        dead = [rank for rank in chosen if ranks[rank].outcome]
        if dead:
            living = ",".join(str(rank) for rank in ranks if not ranks[rank].outcome)
            others = f", or run the cell in the others: --rank {living}" if living else ""
            raise OptionError(
                f"rank {dead[0]} of session {self.name} has ended: {ranks[dead[0]].outcome}; "
                f"%distrain session restart {self.name} --rank {dead[0]} puts a new one in its "
                f"place, without names{others}"
            )
        return tuple(sorted(set(chosen)))

    def check_usable(self) -> None:
        """Raise OptionError where it has ended, or is another notebook's."""
        status = self.status
        if status.state is not State.RUNNING:
            why = status.error or status.phase or str(status.state)
            raise OptionError(
                f"session {self.name} has ended ({why.splitlines()[0]}): start it again with "
                f"%distrain session start --name {self.name}"
            )
        kernel = self.file.kernel
        if kernel is not None and kernel != Owner.of(os.getpid()):
            if kernel.alive:
                raise OptionError(
                    f"session {self.name} belongs to another notebook, whose kernel is process "
                    f"{kernel.pid}: %distrain session attach {self.name} takes it over"
                )
            self.attach()

    def attach(self) -> Self:
        """Make it this notebook's. Names that both have count as set by both, unless they are
        equal."""
        replace(self.file, kernel=Owner.of(os.getpid())).write(self.folder)
        return self

    # -- names --------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Value:
        """Return a copy of what the lowest living rank has under a name. Raises KeyError."""
        living = [rank for rank, process in self.ranks.items() if not process.outcome]
        if not living:
            raise KeyError(f"session {self.name} has no living rank")
        return self._values(name, (living[0],))[living[0]]

    def get(self, name: str, rank: int | str = 0) -> Value:
        """Return a copy of what a rank has under a name; of all by their numbers with "all".
        Raises KeyError, ValueError for what can't be copied, with the reason."""
        if rank == "all":
            return self._values(name, tuple(self.ranks))
        (number,) = self.chosen(str(rank))
        return self._values(name, (number,))[number]

    def put(self, rank: int | str = "all", **named: Value) -> None:
        """Give names to ranks: `session.put(lr=0.1)`. Raises ValueError for what can't travel."""
        ranks = tuple(self.ranks) if rank == "all" else self.chosen(str(rank))
        notebook = current_notebook()
        at = len(notebook.cells) if notebook else 0
        with Scratch("put", self.folder) as folder:
            unsaved = values.dump(named, folder / "values")
            for name, reason in unsaved.items():
                raise ValueError(f"{name} can't be sent to session {self.name}: {reason}")
            question: dict[str, Json] = {
                "ask": PUT,
                "ranks": ranks,
                "folder": f"{folder}/values",
                "kernel": kernel_name(),
                "at": at,
                "digests": {name: digest(name, value) for name, value in named.items()},
            }
            for number, answer in self._ask(question).items():
                if answer.get("error"):
                    raise DistrainError(f"rank {number} didn't take it: {answer['error']}")

    def _values(self, name: str, ranks: Sequence[int]) -> dict[int, Value]:
        self._refuse_ended()
        copies: dict[int, Value] = {}
        with Scratch("get", self.folder) as folder:
            answers = self._ask(
                {"ask": GET, "ranks": ranks, "names": [name], "folder": str(folder)}
            )
            for rank, answer in answers.items():
                if answer.get("error"):
                    raise KeyError(f"rank {rank} of session {self.name}: {answer['error']}")
                if answer.get("missing"):
                    present = [n for n in self.names([int(rank)]) if n.isidentifier()]
                    hint = did_you_mean(name, present, ".")
                    raise KeyError(
                        f"rank {rank} of session {self.name} has no {name!r}{hint} It has "
                        f"{', '.join(sorted(present)) or 'no names yet'}"
                    )
                if reason := answer.get("unsaved", {}).get(name):
                    raise ValueError(f"{name} of rank {rank} can't be copied: {reason}")
                copies[int(rank)] = Results(Path(folder, rank), 0, trusts=True)[name]
        return copies

    # -- its life -----------------------------------------------------------------------------

    def restart(self, rank: int | str = "all") -> None:
        """Put new ranks, without names, in the place of one or of all."""
        self._refuse_ended()
        ranks = self.ranks
        numbers = tuple(ranks) if rank == "all" else (int(rank),)
        if not set(numbers) <= ranks.keys():
            raise OptionError(
                f"session {self.name} has no rank {rank}; it has {', '.join(map(str, ranks))}"
            )
        answer = self._ask({"ask": RESTART, "ranks": numbers})
        if error := answer.get("error"):
            raise DistrainError(str(error))

    def stop(self) -> None:
        """End its ranks, and a cell that is at work in them; returns when they have gone."""
        if not self.status.state.final:
            ask(self.folder / REQUESTS, lambda answer: SessionQuery({"ask": END}, answer))
        until = time.monotonic() + ENDS_WITHIN_S
        while not self.status.state.final:
            if time.monotonic() > until:
                raise DistrainError(f"session {self.name} has not ended after {ENDS_WITHIN_S:g} s")
            time.sleep(LOOK_EVERY_S)

    def _refuse_ended(self) -> None:
        if self.status.state is not State.RUNNING:
            raise OptionError(f"session {self.name} has ended: {self.status.phase}")

    def _ask(self, words: dict[str, Json]) -> dict[str, dict[str, Value]]:
        answer = ask(self.folder / REQUESTS, lambda writing: SessionQuery(words, writing))
        if not answer:
            raise DistrainError(f"session {self.name} has ended before it answered")
        return dict(json.loads(answer))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        status = self.status
        text = f"{plural(len(self.ranks), 'rank')}, {status.phase or status.state}"
        return f"<session {self.name}: {text}>"


class SeenSession(SessionHandle):
    """A session as it was at one look: what is checked before a cell belongs together."""

    @cached_property
    def file(self) -> SessionFile:
        return super().file

    @cached_property
    def status(self) -> Status:
        return super().status


def kernel_name() -> str:
    """Return what tells this process from those before it."""
    owner = Owner.of(os.getpid())
    return f"{owner.pid}-{owner.started}"


def session_folders(below: Path | None = None) -> list[Path]:
    """Return the folders of all sessions, those that have ended too; the newest first. `below` is
    another DISTRAIN_HOME."""
    there = ((below or home()) / SESSIONS_FOLDER).glob(f"*/{SESSION_FILE}")
    folders = [path.parent for path in there]
    return sorted(folders, key=lambda folder: -folder.stat().st_mtime)


def find_session(name: str) -> SessionHandle:
    """Return the session of a name; the only living one for an empty name. Raises OptionError."""
    folder = home() / SESSIONS_FOLDER / name
    if name and Path(name).name == name and (folder / SESSION_FILE).is_file():
        return SessionHandle(folder)
    every = {folder.name: SessionHandle(folder) for folder in session_folders()}
    living = [s for s in every.values() if not s.status.state.final]
    if not name and len(living) == 1:
        return living[0]
    names = ", ".join(session.name for session in living) or "none"
    if not name:
        raise OptionError(f"which session? Running: {names}")
    hint = did_you_mean(name, every, ".")
    raise OptionError(
        f"no session {name!r}{hint} Running: {names}; %distrain session start --name {name} "
        "starts one"
    )
