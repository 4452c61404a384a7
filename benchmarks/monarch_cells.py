"""An actor of Monarch that executes cells, for `session_failures.py`."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any

from monarch.actor import Actor, current_rank, endpoint


class Cells(Actor):  # type: ignore[misc]
    """The names of one rank."""

    def __init__(self, ranks: int, port: int) -> None:
        self._rank = current_rank().rank
        self._names: dict[str, Any] = {"__name__": "__main__"}
        os.environ.update(
            RANK=str(self._rank),
            LOCAL_RANK=str(self._rank),
            WORLD_SIZE=str(ranks),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
        )

    @endpoint  # type: ignore[misc]
    def run(self, text: str) -> tuple[int, str]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, "cell", "exec"), self._names)
        return self._rank, printed.getvalue()
