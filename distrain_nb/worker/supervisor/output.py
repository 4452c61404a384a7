"""What the processes of a run print, on its way into the run's log."""

from __future__ import annotations

import os
import re
import selectors
import time
from pathlib import Path
from typing import Callable, Dict, Optional, Set

from distrain_nb.worker.files.log import LineSplitter, LogWriter
from distrain_nb.worker.metrics import progress
from distrain_nb.worker.supervisor.receiver import Receiver

# The line of a kernel on a GPU whose assertion has failed; the exception to come doesn't name it.
_ASSERTED = b"] Assertion `"
_ASSERTION = re.compile(
    rb"\t(\d+)\t\w\t.*?([^\s:]+): block: \[[\d,]+\], thread: \[[\d,]+\] (Assertion `.*?` failed)"
)

READ_AT_MOST = 1 << 18
HELD_RETRIES_S = 5.0


class Output:
    """The open streams of the processes, and the log that they end in.

    `echo` is given the same records as the log.
    """

    def __init__(self, folder: Path, echo: Optional[Callable[[bytes], None]] = None) -> None:
        self._log = LogWriter(folder)
        self._echo = echo
        self._selector = selectors.DefaultSelector()
        self._splitters: Dict[int, LineSplitter] = {}
        self._staying: Set[int] = set()  # streams of ranks that outlive this log
        self._signs: Set[int] = set()  # that somebody else reads
        self.heard_at = time.monotonic()  # when a process last printed
        self.progress: Optional[progress.ProgressTracker] = None
        self.tell: Optional[Callable[[str], None]] = None  # has a line of the service in the log
        self.receiver: Optional[Receiver] = None
        self.assertions: Dict[int, str] = {}  # by process, the first that has failed on its GPU

    @property
    def trouble(self) -> str:
        """Why the log can't be written just now; empty when it can."""
        return self._log.trouble

    def add(self, descriptor: int, process: int, stream: str, *, stays: bool = False) -> None:
        """Log a stream of a process; one that `stays` is left open at the end."""
        self._splitters[descriptor] = LineSplitter(process, stream)
        self._selector.register(descriptor, selectors.EVENT_READ)
        if stays:
            self._staying.add(descriptor)

    def watch(self, descriptor: int) -> None:
        """End the wait of `turn` when there is something here, and leave it to be read."""
        self._signs.add(descriptor)
        self._selector.register(descriptor, selectors.EVENT_READ)

    def unwatch(self, descriptor: int) -> None:
        if descriptor in self._signs:
            self._signs.remove(descriptor)
            self._selector.unregister(descriptor)

    def serve(self) -> None:
        """Take what libraries send of their progress, once the processes have been started."""
        if self.receiver is not None and self.progress is not None:
            self.receiver.serve(self.progress.take_sent)

    def wake_by(self, descriptor: int) -> None:
        """End the wait of `turn` also when something can be read here."""
        self._selector.register(descriptor, selectors.EVENT_READ)

    def turn(self, wait: float) -> None:
        """Log what comes within `wait` seconds. Raises LogLost when the log can't hold it."""
        for key, _ in self._selector.select(wait):
            if key.fd not in self._signs:
                self._read(key.fd)
        moving = [splitter.moving() for splitter in self._splitters.values()]
        self._write(b"".join(moving))
        if self.progress is not None:
            self.progress.look()

    def say(self, process: int, text: str) -> None:
        """Write a line of our own into the log of a process, on its standard error."""
        self._write(LineSplitter(process, "e").feed(text.encode("utf-8", "replace") + b"\n"))

    def drain(self, wait: float) -> None:
        """Log what is left in the streams, for `wait` seconds at most."""
        end = time.monotonic() + wait
        while self._staying and self._selector.select(0) and time.monotonic() < end:
            self.turn(0)
        while self._splitters.keys() - self._staying and time.monotonic() < end:
            self.turn(0.05)

    def end_streams(self) -> None:
        """End the lines of processes that are gone; others may be added."""
        for descriptor, splitter in self._splitters.items():
            self._write(splitter.finish())
            self._selector.unregister(descriptor)
            if descriptor not in self._staying:
                os.close(descriptor)
        self._splitters.clear()
        self._staying.clear()
        if self.progress is not None:
            self.progress.look(at_once=True)

    def close(self) -> int:
        """End the log; the bytes of it that could not be written."""
        end = time.monotonic() + HELD_RETRIES_S
        self.end_streams()
        while not self._log.flush() and time.monotonic() < end:
            time.sleep(0.25)
        self._selector.close()
        if self.receiver is not None:
            self.receiver.close()
        return self._log.close()

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, READ_AT_MOST)
        except BlockingIOError:
            return
        splitter = self._splitters.get(descriptor)
        if splitter is None:
            return
        self.heard_at = time.monotonic()
        self._write(splitter.feed(data) if data else splitter.finish())
        if not data:
            self._selector.unregister(descriptor)
            del self._splitters[descriptor]
            if descriptor not in self._staying:  # a rank that has died has its session close it
                os.close(descriptor)
            self._staying.discard(descriptor)

    def _write(self, records: bytes) -> None:
        if self._echo is not None and records:
            self._echo(records)
        if self.progress is not None and records:
            self.progress.hear(records)
        if _ASSERTED in records:
            for process, kernel, text in _ASSERTION.findall(records):
                words = f"{text.decode('utf-8', 'replace')} in {kernel.decode('utf-8', 'replace')}"
                self.assertions.setdefault(int(process), words)
        self._log.write(records)
