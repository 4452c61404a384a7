"""Processes that the notebook forks, and what they ask about the world."""

from __future__ import annotations

import os
from mmap import mmap

from distrain_nb.observed.sites import SeenRead

_SIZE, _END = 4096, "\0"  # of a question that a child tells


class Children:
    """Memory that this process shares with those that it forks, for what one of them asked."""

    def __init__(self) -> None:
        self._shared, self._parent = mmap(-1, _SIZE), os.getpid()

    def tell(self, read: SeenRead) -> bool:
        """Tell the parent what was asked; false where this is the parent."""
        if os.getpid() == self._parent:
            return False
        text = f"{read.what}{_END}{read.where}".encode()[: _SIZE - 1]
        self._shared[: len(text) + 1] = text + _END.encode()
        return True

    @property
    def has_told(self) -> bool:
        """Whether a child has asked since `question` was called."""
        return bool(self._shared[0])

    def question(self) -> SeenRead | None:
        """Return what a child has asked since the last call."""
        if not self._shared[0]:
            return None
        what, where, *_ = self._shared[:].decode(errors="replace").split(_END)
        self._shared[0] = 0
        return SeenRead(what, where, direct=True)
