"""The log of a run as a text file, a piece at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distrain_nb.run import Run
from distrain_nb.run.log.index import Filter
from distrain_nb.run.log.reader import pieces
from distrain_nb.run.streams import streams
from distrain_nb.run.summary import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# What stands before the text of a record. If a later record replaces this one, all of it.
_HEAD = re.compile(rb"^[^\t\n]*\t(\d+)\t(?:[oe]\t|[OE]\t.*\n)", re.MULTILINE)


def log_text(run: Run) -> Iterator[bytes]:
    """Yield all lines with their processes, a MiB at a time. The last states of bars follow."""
    labels = labels_of(run.status)
    log = streams(run.folder).log
    log.update()

    def tag(process: int) -> bytes:
        return f"[{labels.get(process, process)}] ".encode()

    def head(record: re.Match[bytes]) -> bytes:
        return b"" if record[0].endswith(b"\n") else tag(int(record[1]))

    with log.open() as file:
        for _, piece in pieces(file, 0, log.end):
            yield _HEAD.sub(head, piece)
    for _, bar in log.bars(Filter()):
        yield tag(bar.process) + bar.text.encode() + b"\n"
