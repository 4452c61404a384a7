"""A cell is given to the process of its session, which takes it or says why not."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from distrain_nb.backends.sessions import submit_cell
from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.request import TAKEN, Request, receive
from distrain_nb.worker.files.session import REQUESTS


def answered(session: Path, run: Path, answer: str) -> None:
    """Submit a cell to a process that gives this answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(session / REQUESTS))
        listener.settimeout(60)

        def serve() -> None:
            request = receive(listener)
            if isinstance(request, Request):
                request.reply(answer if request.folder == run else f"{request.folder} is unknown")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            submit_cell(run, session)
        finally:
            thread.join()


def test_a_session_takes_a_cell_or_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    monkeypatch.chdir(lab)  # a socket's path is short
    with pytest.raises(DistrainError, match=r"^session lab can't run the cell: it has ended$"):
        submit_cell(tmp_path / "run", lab)
    answered(lab, tmp_path / "run", TAKEN)
    (lab / REQUESTS).unlink()
    with pytest.raises(DistrainError, match=r"^session lab can't run the cell: rank 1 is busy$"):
        answered(lab, tmp_path / "run", "rank 1 is busy")
