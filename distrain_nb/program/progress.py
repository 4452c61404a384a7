"""Progress of long work on a cell, reported to a listener that a block installs.

A variable of the context carries the listener, so that nothing between the two need know of it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from distrain_nb.worker.files.status import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


CHUNK = 8 << 20
Listener = Callable[[Progress], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def report_to(listener: Listener) -> Iterator[None]:
    """Report the progress made in the block to this listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(phase: str, done: int = 0, total: int = 0) -> None:
    """`done` of `total` bytes are done; a `total` of 0 means that nobody knows it."""
    listener = _listener.get()
    if listener is not None:
        listener(Progress(phase, done, total))


class ByteCounter:
    """Adds up the bytes of one phase."""

    def __init__(self, phase: str, total: int) -> None:
        self._phase = phase
        self._total = total
        self._done = 0

    def add(self, size: int) -> None:
        self._done += size
        report(self._phase, min(self._done, self._total), self._total)


class CountedMemory(io.BytesIO):
    """A file in memory that reports the bytes written to it."""

    def __init__(self, meter: ByteCounter) -> None:
        super().__init__()
        self._meter = meter

    def write(self, data: Any) -> int:
        whole = memoryview(data)
        if whole.nbytes <= CHUNK:
            self._meter.add(super().write(whole))
            return whole.nbytes
        view = whole.cast("B")
        for start in range(0, len(view), CHUNK):
            self._meter.add(super().write(view[start : start + CHUNK]))
        return len(view)


def write_file(path: Path, data: bytes, meter: ByteCounter) -> None:
    """Write a file, reporting its bytes as they are written."""
    view = memoryview(data)
    with path.open("wb") as file:
        for start in range(0, len(view), CHUNK):
            meter.add(file.write(view[start : start + CHUNK]))
