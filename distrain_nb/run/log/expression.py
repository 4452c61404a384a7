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
from collections.abc import Iterator
from pathlib import Path

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
    request = json.load(sys.stdin)
    signal.alarm(ALARM_AFTER_S)
    try:
        matches = re.compile(request["expression"], request["flags"]).search
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(str(error))
        sys.exit(UNREADABLE)
    give_up = time.monotonic() + request["seconds"]
    at, end, offsets = request["begin"], request["end"], array("q")
    literal, folds = required(request["expression"], request["flags"])
    with Path(request["path"] if at < end else os.devnull).open("rb") as log:
        log.seek(at)
        while at < end and time.monotonic() < give_up:
            piece = log.read(min(PIECE_BYTES, end - at))
            if not piece:
                break
            if not piece.endswith(b"\n"):
                piece += log.readline()
            signal.alarm(ALARM_AFTER_S)
            lines = with_literal(piece, literal, folds) if literal else every_line(piece)
            for count, (begin, text) in enumerate(lines):
                if count % LOOK_EVERY == 0:
                    if time.monotonic() > give_up:
                        at += begin
                        break
                    signal.alarm(ALARM_AFTER_S)
                if matches(text):
                    offsets.append(at + begin)
            else:
                at += len(piece)
    sys.stdout.buffer.write(array("q", [at]).tobytes() + offsets.tobytes())


def required(expression: str, flags: int) -> tuple[bytes, bool]:
    """Return the longest text that each match has, empty if none is known, and whether its case
    counts for nothing."""
    if sys.version_info >= (3, 11):
        from re import _parser as parser
    else:
        import sre_parse as parser
    parsed = parser.parse(expression, flags)
    folds = bool(parsed.state.flags & re.IGNORECASE)
    runs = [""]
    for kind, value in parsed.data:
        letter = chr(value) if str(kind) == "LITERAL" and isinstance(value, int) else ""
        # Without case i, k and s have forms beyond ASCII.
        if letter in "\n" or not letter.isascii() or (folds and letter in "iIkKsS"):
            runs.append("")
        else:
            runs[-1] += letter
    longest = max(runs, key=len).encode()
    return (longest.lower() if folds else longest), folds


def with_literal(piece: bytes, literal: bytes, folds: bool) -> Iterator[tuple[int, str]]:
    """Yield where each line begins that has this text, and the line's text."""
    if piece.translate(None, _HARMLESS):
        yield from every_line(piece)
        return
    searched = piece.lower() if folds else piece
    at = searched.find(literal)
    while at >= 0:
        begin, end = piece.rfind(b"\n", 0, at) + 1, piece.find(b"\n", at)
        end = len(piece) if end < 0 else end
        yield begin, piece[begin:end].decode("utf-8", "replace").split("\t", 3)[-1]
        at = searched.find(literal, end)


def every_line(piece: bytes) -> Iterator[tuple[int, str]]:
    """Yield where each line of a piece begins, and its text."""
    begin = 0
    for record, text in zip(piece.split(b"\n"), texts(piece), strict=True):
        if record:
            yield begin, text
        begin += len(record) + 1


def texts(piece: bytes) -> Iterator[str]:
    """Yield the text of each line of a piece, without what a reader can't see."""
    if piece.translate(None, _HARMLESS):
        piece = _ESCAPES.sub(b"", piece)
    for line in piece.decode("utf-8", "replace").split("\n"):
        yield line.split("\t", 3)[-1]


if __name__ == "__main__":
    main()
