"""Records of a log whose text matches: plain text in C's speed, expressions in another process."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from distrain_nb.errors import OptionError, shown
from distrain_nb.run.log import expression
from distrain_nb.run.log.reader import buffers
from distrain_nb.run.log.scan import line_starts, texts

if TYPE_CHECKING:
    from distrain_nb.run.log.index import LogIndex

Offsets = NDArray[np.int64]

EXPRESSION_S = 0.5
LONGEST_TEXT = 1_000  # what compiling an expression costs grows with it

# Of a piece with more matches, all lines are looked at together: that costs 3 ms a MiB, a match
# by itself about 1 us.
_FEW = 100
_SAMPLE_BYTES = 4 << 10
_PIECES_ALIKE = 64
_NARROWED_BY = 3  # bytes of the text: where they leave many places, the text itself is frequent
_LOWER = 0x20  # the bit that a capital letter of ASCII lacks
_SMALL_LETTERS = range(ord("a"), ord("z") + 1)
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


def pattern_of(term: SearchTerm) -> Pattern:
    """Return what finds the wanted text. Raises OptionError for one of more than 1,000 characters.

    It works on bytes where that gives the same result: a tab could match in a record's header.
    """
    if len(term.text) > LONGEST_TEXT:
        raise OptionError(
            f"text is {len(term.text):,} characters long; a search takes {LONGEST_TEXT:,}"
        )
    plain = not term.regex and "\t" not in term.text
    if plain and (term.case or term.text.isascii()):
        return PlainText(term.text.encode(), fold=not term.case)
    text = term.text if term.regex else re.escape(term.text)
    return Expression(text, 0 if term.case else int(re.IGNORECASE))


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
        rarest: list[tuple[int, int]] = []
        with log.open() as file:
            for number, (at, piece, size) in enumerate(buffers(file, begin, end)):
                if number % _PIECES_ALIKE == 0:
                    rarest = self._rarest(bytes(piece[: min(size, _SAMPLE_BYTES)]))
                yield at + size, self._in_piece(piece, size, rarest) + at

    def _rarest(self, sample: bytes) -> list[tuple[int, int]]:
        """Return a few bytes of the text and where they are in it, the rarest first.

        With `fold`, capitals are small letters.
        """
        sample, text = self._folded(sample)
        places = sorted(range(len(text)), key=lambda offset: sample.count(text[offset]))
        return [(text[offset], offset) for offset in places[:_NARROWED_BY]]

    def _in_piece(self, piece: bytearray, size: int, rarest: list[tuple[int, int]]) -> Offsets:
        if piece.find(b"\x1b", 0, size) >= 0:
            coloured = bytes(piece[:size])
            return self._in_every_line(coloured, _ESCAPE.sub(b"", coloured))
        places = self._places_of_byte(piece, size, *rarest[0])
        if places is None:
            places = self._places_of_bytes(np.frombuffer(piece, np.uint8, size), rarest)
        if places is None:
            data = bytes(piece[:size])
            return self._in_every_line(data, data)
        width, text = len(self.text), self._folded(b"")[1]
        begins = {
            begin: None
            for at in places
            if self._folded(bytes(piece[at : at + width]))[0] == text
            and self._is_text(piece, begin := piece.rfind(b"\n", 0, at) + 1, at)
        }
        return np.fromiter(begins, np.int64, len(begins)) if begins else _NONE

    def _places_of_byte(self, piece: bytearray, size: int, byte: int, at: int) -> list[int] | None:
        """Return where the text may be, as its byte at `at` is there; None for many places."""
        end = size - len(self.text) + at + 1
        capital = byte - _LOWER if self.fold and byte in _SMALL_LETTERS else byte
        places: list[int] = []
        for spelling in {byte, capital}:
            offset = piece.find(spelling, at, end)
            while offset >= 0:
                if len(places) == _FEW:
                    return None
                places.append(offset - at)
                offset = piece.find(spelling, offset + 1, end)
        return sorted(places)

    def _places_of_bytes(
        self, data: NDArray[np.uint8], rarest: list[tuple[int, int]]
    ) -> list[int] | None:
        """Return where the text may be, by its rarest bytes; None where they leave many places."""
        count = len(data) - len(self.text) + 1
        if count <= 0:
            return []
        lacking = np.uint8(_LOWER if self.fold else 0)
        if self.fold:
            data = data | lacking
        masks = (data[at : at + count] == byte | lacking for byte, at in rarest)
        there = next(masks)
        while np.count_nonzero(there) > _FEW:
            narrower = next(masks, None)
            if narrower is None:
                return None
            there &= narrower
        places: list[int] = np.flatnonzero(there).tolist()
        return places

    def _in_every_line(self, piece: bytes, plain: bytes) -> Offsets:
        """Search `plain`, which has the lines of `piece` without colours."""
        searched, text = self._folded(plain)
        at = (match.start() for match in re.finditer(re.escape(text), searched))
        if self.around is not None:
            at = (offset for offset in at if self._fits(plain, offset))
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

    def _is_text(self, piece: bytearray, begin: int, at: int) -> bool:
        """Return whether what is at `at` in the record that begins at `begin` counts as a match."""
        is_in_text = self._is_in_no_head or at >= _text_begin(piece, begin)
        return is_in_text and self._fits(piece, at)

    def _fits(self, piece: bytes | bytearray, at: int) -> bool:
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


def _text_begin(piece: bytearray, begin: int) -> int:
    """Return where the text of the record at `begin` starts: behind its third tab."""
    for _ in range(3):
        begin = piece.find(b"\t", begin) + 1
        if not begin:
            return len(piece)
    return begin
