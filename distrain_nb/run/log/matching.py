"""Records of a log whose text matches: plain text in C's speed, expressions in another process."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from distrain_nb.errors import OptionError, shown
from distrain_nb.run.log import expression
from distrain_nb.run.log.reader import pieces
from distrain_nb.run.log.scan import line_starts, texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distrain_nb.run.log.index import LogIndex

Offsets = NDArray[np.int64]

EXPRESSION_S = 0.5
LONGEST_TEXT = 1_000  # what compiling an expression costs grows with it

# Of a piece with more matches, all lines are looked at together: that costs 3 ms a MiB, a match
# by itself about 1 us.
_FEW = 200
_SAMPLE_BYTES = 4 << 10
_NARROWED_BY = 3  # bytes of the text: where they leave many places, the text itself is frequent
_LOWER = np.uint8(0x20)  # the bit that a capital letter of ASCII lacks
_OF_HEADS = b"0123456789.-oOeE"  # all that stands before a record's text, but for tabs

_ESCAPE = re.compile(expression.ESCAPE)
_NONE: Offsets = np.empty(0, np.int64)


@dataclass(frozen=True)
class SearchTerm:
    """What to search for in the text of a line: plain text, or a regular expression."""

    text: str
    regex: bool = False
    case: bool = False


class Pattern(Protocol):
    """Something that finds records."""

    def find(self, log: LogIndex, begin: int, end: int) -> Iterator[tuple[int, Offsets]]:
        """Yield how far the search has come, in bytes of the file, and where the matching records
        begin that it has met on the way. The bytes from `begin` to `end` are whole records."""


def pattern_of(wanted: SearchTerm) -> Pattern:
    """Return what finds the wanted text. Raises OptionError for one of more than 1,000 characters.

    It works on bytes where that gives the same result: a tab could match in a record's header.
    """
    if len(wanted.text) > LONGEST_TEXT:
        raise OptionError(
            f"text is {len(wanted.text):,} characters long; a search takes {LONGEST_TEXT:,}"
        )
    plain = not wanted.regex and "\t" not in wanted.text
    if plain and (wanted.case or wanted.text.isascii()):
        return PlainText(wanted.text.encode(), fold=not wanted.case)
    text = wanted.text if wanted.regex else re.escape(wanted.text)
    return Expression(text, 0 if wanted.case else int(re.IGNORECASE))


@dataclass(frozen=True)
class PlainText:
    """Text that lines have as it is, or with `fold` in upper and lower case of ASCII.

    `around`, where there is one, has to match where the text begins.
    """

    text: bytes
    fold: bool = False
    around: re.Pattern[bytes] | None = None

    def find(self, log: LogIndex, begin: int, end: int) -> Iterator[tuple[int, Offsets]]:
        """Yield the matching records of a piece at a time; see `Pattern`."""
        with log.open() as file:
            for at, piece in pieces(file, begin, end):
                yield at + len(piece), self._in_piece(piece) + at

    def _in_piece(self, piece: bytes) -> Offsets:
        if b"\x1b" in piece:
            return self._in_every_line(piece, _ESCAPE.sub(b"", piece))
        places = self._few_places(piece)
        if places is None:
            return self._in_every_line(piece, piece)
        begins = {
            begin: None
            for at in places
            if self._is_text(piece, begin := piece.rfind(b"\n", 0, at) + 1, at)
        }
        return np.fromiter(begins, np.int64, len(begins)) if begins else _NONE

    def _few_places(self, piece: bytes) -> list[int] | None:
        """Return where the text is in the piece; None where it may be at many places.

        Its rarest bytes leave few of them, by operations on whole arrays.
        """
        data = np.frombuffer(piece, np.uint8)
        text, fold = self.text, self.fold
        count = len(data) - len(text) + 1
        if count <= 0:
            return []
        if fold:
            text, data = text.lower(), data | _LOWER
        often = np.bincount(data[:_SAMPLE_BYTES], minlength=256)
        wanted = [(byte | int(_LOWER) if fold else byte, place) for place, byte in enumerate(text)]
        wanted.sort(key=lambda byte_at: often[byte_at[0]])
        rarest = (data[at : at + count] == byte for byte, at in wanted[:_NARROWED_BY])
        there = next(rarest)
        while np.count_nonzero(there) > _FEW:
            another = next(rarest, None)
            if another is None:
                return None
            there &= another
        places = np.flatnonzero(there).tolist()
        return [at for at in places if self._same(piece[at : at + len(text)], text)]

    def _same(self, some: bytes, text: bytes) -> bool:
        return (some.lower() if self.fold else some) == text

    def _in_every_line(self, piece: bytes, plain: bytes) -> Offsets:
        """Search `plain`, which has the lines of `piece` without colours."""
        searched, text = self._folded(plain)
        at = (match.start() for match in re.finditer(re.escape(text), searched))
        if self.around is not None:
            at = (place for place in at if self._fits(plain, place))
        positions = np.fromiter(at, np.int64)
        if self._is_in_no_head:
            starts = line_starts(plain)
            record = np.searchsorted(starts, positions, side="right") - 1
        else:
            starts, begins = texts(plain)
            record = np.searchsorted(starts, positions, side="right") - 1
            record = record[positions >= begins[record]]
        return (starts if plain is piece else line_starts(piece))[np.unique(record)]

    def _folded(self, piece: bytes) -> tuple[bytes, bytes]:
        return (piece.lower(), self.text.lower()) if self.fold else (piece, self.text)

    @property
    def _is_in_no_head(self) -> bool:
        """Whether it has a byte that stands before no record's text."""
        return bool(self.text.strip(_OF_HEADS))

    def _is_text(self, piece: bytes, begin: int, at: int) -> bool:
        """Return whether what is at `at` in the record that begins at `begin` counts as a match."""
        is_in_text = self._is_in_no_head or at >= _text_begin(piece, begin)
        return is_in_text and self._fits(piece, at)

    def _fits(self, piece: bytes, at: int) -> bool:
        return self.around is None or self.around.match(piece, at) is not None


@dataclass(frozen=True)
class Expression:
    """A regular expression. Only another process compiles and tries it: either may take forever."""

    pattern: str
    flags: int

    def find(self, log: LogIndex, begin: int, end: int) -> Iterator[tuple[int, Offsets]]:
        """Yield the matching records of half a second at a time; see `Pattern`.

        Raises OptionError for an expression that can't be read, or takes too long.
        """
        at = begin
        while True:
            at, offsets = self._tried(log.path, at, end)
            yield at, offsets
            if at >= end:
                return

    def _tried(self, path: Path, begin: int, end: int) -> tuple[int, Offsets]:
        request = {
            "path": str(path),
            "begin": begin,
            "end": end,
            "expression": self.pattern,
            "flags": self.flags,
            "seconds": EXPRESSION_S,
        }
        program = [sys.executable, "-I", "-S", "-W", "ignore", expression.__file__]
        done = subprocess.run(program, input=json.dumps(request).encode(), capture_output=True)
        if done.returncode == -signal.SIGALRM:
            raise OptionError(
                f"regular expression {shown(self.pattern)} takes too long on this log: "
                "look for something simpler, without repetitions inside repetitions"
            )
        if done.returncode == expression.UNREADABLE:
            raise OptionError(f"regular expression {shown(self.pattern)}: {done.stderr.decode()}")
        done.check_returncode()
        answer = np.frombuffer(done.stdout, np.int64)
        return int(answer[0]), answer[1:]


def _text_begin(piece: bytes, begin: int) -> int:
    """Return where the text of the record at `begin` starts: behind its third tab."""
    for _ in range(3):
        begin = piece.find(b"\t", begin) + 1
        if not begin:
            return len(piece)
    return begin
