"""Logs written by the code that writes them in real runs."""

from __future__ import annotations

from pathlib import Path

from distrain_nb.run import Line, LogReader
from distrain_nb.worker.files.folder import LOG_FILE
from distrain_nb.worker.files.log import LineSplitter, LogWriter

WRITERS = [(0, "o"), (0, "e"), (3, "o"), (12, "o")]


class Printing:
    """A log that processes print into."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._log = LogWriter(folder)
        self._splitters = {writer: LineSplitter(*writer) for writer in WRITERS}

    def print(self, text: str | bytes, process: int = 0, stream: str = "o") -> None:
        splitter = self._splitters[process, stream]
        data = text.encode() if isinstance(text, str) else text
        self._log.write(splitter.feed(data) + splitter.moving())

    def write(self, records: bytes) -> None:
        self._log.write(records)


def standing(folder: Path) -> list[Line]:
    """The lines that no other took the place of, read the plain way."""
    if not (folder / LOG_FILE).exists():
        return []
    return [line for line in LogReader(folder) if not line.moving]


def left_moving(folder: Path) -> list[Line]:
    bars: dict[tuple[int, str], Line] = {}
    for line in LogReader(folder):
        bars.pop((line.process, line.stream), None)
        if line.moving:
            bars[line.process, line.stream] = line
    return list(bars.values())
