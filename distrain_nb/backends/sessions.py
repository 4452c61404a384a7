"""Backends that hold sessions: their ranks stay between cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from distrain_nb.backends.plan import Plan
from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.request import TAKEN, Request, ask
from distrain_nb.worker.files.session import REQUESTS
from distrain_nb.worker.files.status import Status

if TYPE_CHECKING:
    from distrain_nb.types import Unknown


@runtime_checkable
class HoldsSessions(Protocol):
    """A backend whose ranks can stay between cells."""

    def start_session(self, plan: Unknown, folder: Path) -> None:
        """Start the ranks of a plan as the session of a folder.

        This returns at once. The folder's status says when the ranks are ready. Raises OptionError
        for a plan whose processes can't stay, and DistrainError.
        """

    def session_status(self, folder: Path) -> Status:
        """Return the status of a folder's session. Raises OSError; `fields.Damaged`."""

    def session_plan(self, job: Unknown, folder: Path, ranks: Sequence[int]) -> Plan:
        """Return the plan of a cell for these ranks of the session in a folder."""


def submit_cell(folder: Path, session: Path) -> None:
    """Have a session's ranks run the cell of a run.

    Raises DistrainError if the session has ended.
    """
    answer = ask(session / REQUESTS, lambda writing: Request(folder, writing))
    if answer != TAKEN:
        raise DistrainError(
            f"session {session.name} can't run the cell: {answer or 'it has ended'}"
        )
