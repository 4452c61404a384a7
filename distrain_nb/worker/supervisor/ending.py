"""How an attempt ends, as soon as that is decided."""

from __future__ import annotations

from typing import NamedTuple

from distrain_nb.worker.files.status import State


class Ending(NamedTuple):
    """The state, what is said of it, and its cause's kind, one of `files/cause.py`'s names; both
    are empty where what ranks have left says it."""

    state: State
    error: str = ""
    kind: str = ""

    @property
    def is_of_ranks(self) -> bool:
        """Whether ranks have failed by themselves."""
        return self.state is State.FAILED and not self.error
