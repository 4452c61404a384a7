"""A run's log as a text file, a piece at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.run import LogReader
from distrain_nb.run.scan import writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.run import Line, Run


def log_text(run: Run) -> Iterator[bytes]:
    """All lines with their processes, a few MiB at a time; bars as they were left at the end."""
    labels = {process.index: process.label for process in run.status.processes}
    reader = LogReader(run.folder)
    bars: dict[int, Line] = {}

    def text(line: Line) -> str:
        return f"[{labels.get(line.process, line.process)}] {line.text}\n"

    while lines := reader.read():
        for line in lines:
            bars.pop(writer(line.process, line.stream), None)
            if line.moving:
                bars[writer(line.process, line.stream)] = line
        yield "".join(text(line) for line in lines if not line.moving).encode()
    yield "".join(map(text, bars.values())).encode()
