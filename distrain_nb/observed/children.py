"""What processes ask that the notebook starts: those that it forks tell it; of commands, their
text does."""

from __future__ import annotations

import os
import re
from mmap import mmap
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.watch import SeenRead, asked_variable

if TYPE_CHECKING:
    from collections.abc import Iterable

_SIZE, _END = 4096, "\0"


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

    def told(self) -> SeenRead | None:
        """Return what a child has asked since the last call."""
        if not self._shared[0]:
            return None
        what, where, *_ = self._shared[:].decode(errors="replace").split(_END)
        self._shared[0] = 0
        return SeenRead(what, where, direct=True)


def asked_by_command(command: Any) -> str:
    """Return how a command asks for a launcher's variable that it names; empty for any other."""
    parts: Iterable[Any] = command if isinstance(command, (list, tuple)) else (command,)
    words = (word for part in parts for word in re.findall(r"\w+", _text(part)))
    return next(filter(None, map(asked_variable, words)), "")


def _text(part: Any) -> str:
    part = os.fspath(part) if hasattr(part, "__fspath__") else part
    return part.decode(errors="replace") if isinstance(part, bytes) else str(part)
