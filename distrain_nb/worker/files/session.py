"""The folder of a session: ranks that stay, and run cells one after the other.

A session's folder has `launch.json` and `status.json` as a run's has, written by the same: its
process is to its cells what a supervisor is to a run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.status import Owner

SESSIONS_FOLDER = "sessions"  # in DISTRAIN_HOME, beside the runs
SESSION_FILE = "session.json"  # `SessionFile`, by the kernel that starts it or takes it over
REQUESTS = "requests"  # a socket: datagrams, as to the fork server (`request.py`)
NAMES_FILE = "names-{}.json"  # by each rank, after each cell: `rank/names.py`
CELL_FILE = "cell.json"  # `PresentCell`, by the session's process
MEMORY_FILE = "memory"  # bytes of ranks elsewhere after the last cell, by the session's process
SENT = "main.names"  # in a program's folder: `NamesSent`

# What a session's process is asked besides cells, as the field `ask`.
GET, PUT, RESTART, END, NAMES = "get", "put", "restart", "end", "names"


@dataclass(frozen=True)
class SessionFile:
    """What a session is: `line` are the options of its layout, `idle` the seconds without a cell
    after which it ends; `kernel` is the notebook's that it belongs to. `holds` says in words which
    machines elsewhere it keeps from others, and what they cost."""

    name: str
    backend: str
    line: str
    idle: float
    created: float
    kernel: Optional[Owner] = None
    holds: str = ""

    def write(self, folder: Path) -> None:
        replace_file(folder / SESSION_FILE, fields.encode(self, indent=1, ensure_ascii=False))

    @classmethod
    def read(cls, folder: Path) -> SessionFile:
        """Raise FileNotFoundError; `fields.Damaged`."""
        return fields.read(cls, folder / SESSION_FILE)


@dataclass(frozen=True)
class PresentCell:
    """Which run is at work in a session, 0 for none, its name, and since when that is so. `folders`
    are those of the runs at work or in the queue, in their order."""

    run: int = 0
    name: str = ""
    since: float = 0.0
    runs: int = 0  # that there have been
    last: str = ""
    folders: Tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> PresentCell:
        try:
            return fields.read(cls, folder / CELL_FILE)
        except (OSError, fields.Damaged):
            return cls()


@dataclass(frozen=True)
class NamesSent:
    """What a cell brings from the notebook: names with the digests of their values.

    `keeps` are those of which the ranks keep their own, `binds` those that the cell itself sets.
    `at` is the cell's place in the order of execution of a `kernel`.
    """

    kernel: str = ""
    at: int = 0
    names: Dict[str, str] = field(default_factory=dict)
    keeps: Tuple[str, ...] = ()
    binds: Tuple[str, ...] = ()

    def encode(self) -> bytes:
        return fields.encode(self)

    @classmethod
    def read(cls, program: Path) -> NamesSent:
        """Return what a program folder brings; nothing where it has no such file."""
        try:
            return fields.read(cls, program / SENT)
        except FileNotFoundError:
            return cls()


def names_of(folder: Path, process: int) -> Dict[str, Dict[str, Any]]:
    """Return the table of names of one rank, as it was after its last cell; empty before."""
    try:
        return dict(json.loads((folder / NAMES_FILE.format(process)).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
