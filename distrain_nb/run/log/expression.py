"""A regular expression over a stretch of a log: a program of its own, standard library only.

An expression can take forever (`(a+)+$`), or long to compile, and nothing else runs in its process
meanwhile: no kernel or server can try one itself. This one gives up by an alarm.

In: JSON with `path`, `begin` and `end` in bytes, `expression`, `flags`, `seconds`. Out, as int64:
where it stopped, then where each record begins whose text matches. An expression that can't be
read ends it with the status UNREADABLE, and why on stderr.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# As escapes.py leaves them out, in UTF-8: what a reader can't see is not searched.
ESCAPE = (
    rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]"
    rb"|(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\n\xc2]|\xc2[\xa0-\xbf])*(?:\x07|\x1b\\|\xc2\x9c)"
    rb"|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]"
)
ALARM_AFTER_S = 3
UNREADABLE = 3
LOOK_EVERY = 64
PIECE_BYTES = 1 << 20

_ESCAPES = re.compile(ESCAPE)
_HARMLESS = bytes(
    byte for byte in range(256) if byte in b"\t\n" or 0x20 <= byte not in (0x7F, 0xC2)
)


def main() -> None:
    wanted = json.load(sys.stdin)
    signal.alarm(ALARM_AFTER_S)
    try:
        matches = re.compile(wanted["expression"], wanted["flags"]).search
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(str(error))
        sys.exit(UNREADABLE)
    give_up = time.monotonic() + wanted["seconds"]
    at, end, found = wanted["begin"], wanted["end"], array("q")
    with Path(wanted["path"] if at < end else os.devnull).open("rb") as log:
        log.seek(at)
        while at < end and time.monotonic() < give_up:
            piece = log.read(min(PIECE_BYTES, end - at))
            if not piece:
                break
            if not piece.endswith(b"\n"):
                piece += log.readline()
            records = zip(piece.split(b"\n"), texts(piece), strict=True)
            for count, (record, text) in enumerate(records):
                if count % LOOK_EVERY == 0:
                    if time.monotonic() > give_up:
                        break
                    signal.alarm(ALARM_AFTER_S)
                if record and matches(text):
                    found.append(at)
                at += len(record) + 1
            else:
                at -= 1  # behind the last line's end is no record
    sys.stdout.buffer.write(array("q", [at]).tobytes() + found.tobytes())


def texts(piece: bytes) -> Iterator[str]:
    """Yield the text of each line of a piece, without what a reader can't see."""
    if piece.translate(None, _HARMLESS):
        piece = _ESCAPES.sub(b"", piece)
    for line in piece.decode("utf-8", "replace").split("\n"):
        yield line.split("\t", 3)[-1]


if __name__ == "__main__":
    main()
