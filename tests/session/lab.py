"""A notebook without a kernel, whose cells go to its names or to a session."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from distrain_nb import api
from distrain_nb.api.sessions import Session, start_session
from distrain_nb.api.source import Source
from distrain_nb.observed.observer import Observer
from distrain_nb.program import Cell, Notebook
from distrain_nb.run import Run

WITHIN_S = 60.0


class Lab:
    """A session with its notebook."""

    def __init__(
        self, ranks: int, name: str = "lab", idle: str | float = "2h", **options: Any
    ) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.cells: list[Cell] = []
        self.observer: Observer | None = None
        self.session: Session = start_session(
            name,
            idle,
            {"ranks_per_replica": ranks, **options},  # type: ignore[typeddict-item]
        )

    def here(self, text: str) -> None:
        """Run a cell in the notebook."""
        self.cells.append(Cell(f"Cell In[{len(self.cells) + 1}]", text))
        exec(text, self.namespace)

    def source(self, text: str) -> Source:
        cell = Cell(f"Cell In[{len(self.cells) + 1}]", f"%%distrain --in lab\n{text}")
        self.cells.append(cell)
        notebook = Notebook(self.namespace, self.cells, Path.cwd(), observer=self.observer)
        return Source(cell, notebook, first_line=2)

    def begin(self, text: str, **options: Any) -> Run:
        """Send a cell to the session."""
        options = {"wait": False, "session": self.session.name, **options}
        return api.submit(self.source(text), **options)

    def there(self, text: str, **options: Any) -> Run:
        """Run a cell in the session, and wait until it has ended, in whatever way."""
        run = self.begin(text, **options)
        until = time.monotonic() + WITHIN_S
        while not run.state.final:
            assert time.monotonic() < until, f"the cell hangs: {text}"
            time.sleep(0.005)
        return run

    def lines(self, text: str, **options: Any) -> list[str]:
        """Return what a cell that succeeds prints, sorted."""
        run = self.there(text, **options)
        assert run.state == "succeeded", run.status.error
        return sorted(run.logs().splitlines())

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.stop()
