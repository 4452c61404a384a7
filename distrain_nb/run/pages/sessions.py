"""The sessions as rows, for tables, pages and agents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from distrain_nb.run.summary import duration
from distrain_nb.worker.files.disk import readable_size

if TYPE_CHECKING:
    from distrain_nb.run.session import SessionHandle
    from distrain_nb.types import JsonObject


@dataclass(frozen=True)
class SessionRow:
    """A session as a row of a list.

    `ranks` is their number, or how many of them are left. `idle`, `limit` and `memory` are empty if
    the session has ended.
    """

    name: str
    ranks: str
    state: str
    place: str
    last: str
    final: bool
    idle: str = ""
    limit: str = ""
    memory: str = ""

    @classmethod
    def of(cls, session: SessionHandle) -> SessionRow:
        status, present, ranks = session.status, session.present, session.ranks
        dead = [process for process in ranks.values() if process.outcome]
        count = f"{len(ranks) - len(dead)} of {len(ranks)}" if dead else str(len(ranks))
        where = (session.backend, present.last)
        if status.state.final:
            ended = status.phase if status.phase != str(status.state) else status.error
            ended = ended.partition("\n")[0] or "ended"
            return cls(session.name, str(len(ranks)), ended, *where, final=True)
        idle, limit = session.idle
        state = f"at work: run {present.run} ({present.name})" if present.run else status.phase
        memory = readable_size(session.memory)
        return cls(
            *(session.name, count, state, *where),
            final=False, idle=duration(idle), limit=duration(limit), memory=memory,
        )  # fmt: skip

    @property
    def line(self) -> str:
        """The row as a line of text."""
        ranks = f"{self.ranks} rank{'' if self.ranks == '1' else 's'} on {self.place}"
        last = f"last cell {self.last}" if self.last else ""
        idle = f"idle for {self.idle}, ends after {self.limit}" if self.idle else ""
        memory = f"memory {self.memory}" if self.memory else ""
        parts = (f"session {self.name}", ranks, self.state, last, idle, memory)
        return "; ".join(filter(None, parts))

    def as_json(self) -> JsonObject:
        return asdict(self)


def session_rows(sessions: Iterable[SessionHandle]) -> list[SessionRow]:
    """Return a row for each session."""
    return [*map(SessionRow.of, sessions)]
