"""Cells on their way to the ranks of a session."""

from __future__ import annotations

from pathlib import Path

from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.request import TAKEN, Request, ask
from distrain_nb.worker.files.session import REQUESTS


def submit_cell(folder: Path, session: Path) -> None:
    """Have the ranks of a session run the cell of a run. Raises DistrainError where it has ended
    meanwhile."""
    answer = ask(session / REQUESTS, lambda writing: Request(folder, writing))
    if answer != TAKEN:
        raise DistrainError(
            f"session {session.name} can't run the cell: {answer or 'it has ended'}"
        )
