"""Sessions and the names of their ranks, as tables of text and HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distrain_nb.run.pages.sessions import session_rows
from distrain_nb.saved.tables import as_text
from distrain_nb.worker.files.disk import readable_size

if TYPE_CHECKING:
    from distrain_nb.run.session import SessionHandle

NONE_YET = "no sessions: %distrain session start -n 2 --name lab starts one"


@dataclass(frozen=True)
class SessionsTable:
    """Rows of text below their headings; prints as text, and shows as a table in a notebook."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str

    def __repr__(self) -> str:
        return as_text(self.headings, self.rows, "") if self.rows else self.empty

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{html.escape(self.empty)}</p>"
        head = "".join(f"<th>{html.escape(text)}</th>" for text in self.headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def sessions_table(sessions: Iterable[SessionHandle]) -> SessionsTable:
    """Return a row for each session: its ranks, place, last cell, idle time and memory."""
    headings = ("session", "ranks", "state", "where", "last cell", "idle", "ends after", "memory")
    rows = (
        (row.name, row.ranks, row.state, row.place, row.last, row.idle, row.limit, row.memory)
        for row in session_rows(sessions)
    )
    return SessionsTable(headings, tuple(rows), NONE_YET)


def names_table(session: SessionHandle) -> SessionsTable:
    """Return a row for each name that ranks of a session have, marked where they differ."""
    living = [rank for rank, process in session.ranks.items() if not process.outcome]
    tables = session.names(living).tables
    names = dict.fromkeys(name for rank in living for name in tables[rank] if name.isidentifier())
    rows = [_name_row(name, {rank: tables[rank].get(name) for rank in living}) for name in names]
    headings = ("name", "type", "shape", "dtype", "device", "memory", "set by", "ranks")
    empty = f"the ranks of session {session.name} have no names yet"
    return SessionsTable(headings, tuple(rows), empty)


def _name_row(name: str, of_ranks: Mapping[int, Mapping[str, Any] | None]) -> tuple[str, ...]:
    present = {rank: entry for rank, entry in of_ranks.items() if entry is not None}
    texts = [
        _joined(str(entry[field]) for entry in present.values())
        for field in ("type", "shape", "dtype", "device")
    ]
    memory = max(int(entry["bytes"]) for entry in present.values())
    latest = max(present.values(), key=lambda entry: int(entry["set"]))
    line = f", line {latest['line']}" if latest["line"] else ""
    origin = f"{latest['cell']}{line}" if latest["set"] >= 0 else "the notebook"
    return (
        name,
        *texts,
        readable_size(memory) if memory else "",
        origin,
        _where(present, len(of_ranks)),
    )


def _where(present: Mapping[int, Mapping[str, Any]], ranks: int) -> str:
    if len(present) < ranks:
        return f"only {', '.join(map(str, present))}"
    same = {(entry["same"], entry["shape"], entry["type"]) for entry in present.values()}
    contents = {entry["content"] for entry in present.values() if entry["content"]}
    return "differ" if len(same) > 1 or len(contents) > 1 else ""


def _joined(texts: Iterable[str]) -> str:
    parts: Sequence[str] = [*dict.fromkeys(texts)]
    return " | ".join(parts)
