"""Facts of a rank's training, which others compare: a JSON object a line, in a file of the rank.

A rank only ever appends to its own file, a few hundred times in a run, and never waits for another.
The file stands beside the event files, so that it comes back from a cloud as they do. Its first
line has the attempt: facts of different attempts are not compared.
"""

from __future__ import annotations

import base64
import json
import math
import mmap
import os
import struct
import threading
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from distrain_nb.worker.files.folder import FACTS_FOLDER, FACTS_VARIABLE
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE

Fact = Dict[str, Any]
Facts = Mapping[int, Sequence[Fact]]  # by rank

# Kinds of facts.
BEGIN, END = "begin", "end"
MODULE, OPTIMIZER, WEIGHTS = "module", "optimizer", "weights"
FINAL = "final"  # weights at the end, whatever has changed them
LOADER, SAMPLES, EPOCH = "loader", "samples", "epoch"
COLLECTIVES, LOSS, TROUBLE = "collectives", "loss", "trouble"
PROOF = "proof"  # that steps have parted from those of one rank
DRY = "dry"  # what a rank that runs alone has come to
MARK = "mark"  # the last one, of a file beside

ATTEMPT_VARIABLE = "DISTRAIN_ATTEMPT"
MOST_BYTES = 900 << 10
_RESERVED_BYTES = 100 << 10  # of them, for the end
_NAME = "rank-{}.jsonl"
_MARK_SUFFIX, _MARK_BYTES = ".mark", 512
_NUMBER = struct.Struct("=Q")  # of a mark, which its text follows

_FLOAT = struct.Struct("<f")
_LARGEST = 3.4028234663852886e38  # of float32


def packed(numbers: Iterable[float]) -> str:
    """Return numbers as float32 in base64."""
    data = b"".join(
        _FLOAT.pack(number if abs(number) <= _LARGEST or number != number else number * math.inf)
        for number in numbers
    )
    return base64.b64encode(data).decode("ascii")


def unpacked(text: str) -> List[float]:
    """Return the numbers that `packed` made a text of."""
    return [number for (number,) in _FLOAT.iter_unpack(base64.b64decode(text))]


class FactRecord:
    """The facts of this rank. `thread` is the one that trains, 0 while nothing is recorded."""

    def __init__(self) -> None:
        self.thread = 0
        self.number = 0  # of the run, in this process
        self._path = Path()
        self._bytes = 0
        self._mark: Optional[mmap.mmap] = None
        self._number: Any = [0]  # of the mark, in the same memory
        self._marked = ""  # the text that is there
        self._lock = threading.Lock()

    def begin(self, folder: Path, rank: int, world: int) -> None:
        """Record this thread from now on, in a new file of that folder. Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        self._path, self._bytes = folder / _NAME.format(rank), 0
        attempt = int(os.environ.get(ATTEMPT_VARIABLE) or "1")
        self._path.write_bytes(_line(BEGIN, {"attempt": attempt, "world": world}))
        self._map(self._path.with_suffix(_MARK_SUFFIX))
        self.number += 1
        self.thread = threading.get_ident()

    def _map(self, path: Path) -> None:
        with open(str(path), "w+b") as file:
            file.truncate(_MARK_BYTES)
            self._mark, self._marked = mmap.mmap(file.fileno(), _MARK_BYTES), ""
            self._number = memoryview(self._mark).cast("Q")

    def mark(self, number: int, text: str) -> None:
        """Keep a number from 1 on and a text in place of the last ones, whatever ends this process
        after it. A text that is the last one costs nothing."""
        if text is not self._marked and self._mark is not None:
            data = text.encode("utf-8", "replace")[: _MARK_BYTES - _NUMBER.size - 1] + b"\n"
            self._number[0] = 0  # no number has half a text
            self._mark[_NUMBER.size : _NUMBER.size + len(data)] = data
            self._marked = text
        self._number[0] = number

    def end(self, **fields: Any) -> None:
        """Record that the program has ended, and nothing more."""
        self.note(END, **fields)
        self.thread = 0

    def note(self, kind: str, **fields: Any) -> None:
        """Append a fact. One that has no room, or no disk, is left out."""
        if not self.thread:
            return
        line = _line(kind, fields)
        with self._lock:
            limit = MOST_BYTES if kind in (END, COLLECTIVES) else MOST_BYTES - _RESERVED_BYTES
            if self._bytes + len(line) > limit:
                return
            self._bytes += len(line)
            try:
                # Opened anew: the program may have closed every descriptor that it doesn't know.
                with open(str(self._path), "ab", 0) as file:
                    file.write(line)
            except OSError:
                self.thread = 0


RECORD = FactRecord()


def _forget_in_child() -> None:
    """Record nothing in a forked child, whose lock another thread may have held."""
    RECORD.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_forget_in_child)


def begin() -> bool:
    """Begin the record of this rank; say whether there is one: a rank alone compares with none."""
    folder, rank = os.environ.get(FOLDER_VARIABLE), os.environ.get("RANK", "")
    world = os.environ.get("WORLD_SIZE", "1")
    if not folder or not rank.isdigit() or world in ("", "1"):
        return False
    if os.environ.get(FACTS_VARIABLE) == "0":
        return False
    try:
        RECORD.begin(Path(folder, FACTS_FOLDER), int(rank), int(world))
    except (OSError, ValueError):  # a full disk; a variable of the program's own
        return False
    return True


def read_facts(events_folder: Path, ranks: Optional[Iterable[int]] = None) -> Dict[int, List[Fact]]:
    """Return the facts of the newest attempt, by rank, of all or of these; a line that is being
    written is left out."""
    read = {}
    for path in _files(events_folder, ranks):
        number = path.stem.rpartition("-")[2]
        facts = list(_facts_in(path))
        if number.isdigit() and facts and facts[0].get("kind") == BEGIN:
            read[int(number)] = facts
    newest = max((facts[0]["attempt"] for facts in read.values()), default=1)
    return {rank: facts for rank, facts in sorted(read.items()) if facts[0]["attempt"] == newest}


def settle(events_folder: Path, ranks: Iterable[int]) -> None:
    """Append the last mark of ranks that have ended without a word to their files, which come back
    from elsewhere as far as they have grown. Raises OSError."""
    for rank in ranks:
        path = events_folder / FACTS_FOLDER / _NAME.format(rank)
        facts = _facts_in(path)
        if facts and not of_kind(facts, END):
            with path.open("ab", 0) as file:
                for mark in _mark_beside(path):
                    file.write(_line(MARK, {"number": mark["number"], "text": mark["text"]}))


def sizes(events_folder: Path, ranks: Optional[Iterable[int]] = None) -> Dict[str, int]:
    """Return the bytes of each file of facts, of all ranks or of these: equal sizes have equal
    facts."""
    return {path.name: path.stat().st_size for path in _files(events_folder, ranks)}


def _files(events_folder: Path, ranks: Optional[Iterable[int]]) -> List[Path]:
    folder = events_folder / FACTS_FOLDER
    if ranks is None:
        return sorted(folder.glob(_NAME.format("*")))
    paths = (folder / _NAME.format(rank) for rank in ranks)
    return [path for path in paths if path.exists()]


def of_kind(facts: Sequence[Fact], kind: str) -> List[Fact]:
    """Return the facts of a kind, in their order."""
    return [fact for fact in facts if fact["kind"] == kind]


def _facts_in(path: Path) -> List[Fact]:
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return []
    facts = []
    for line in lines:
        try:
            fact = json.loads(line)
        except ValueError:
            continue
        if isinstance(fact, dict) and "kind" in fact:
            facts.append(fact)
    return [*facts, *_mark_beside(path)]


def _mark_beside(path: Path) -> List[Fact]:
    """Return the last mark of a rank as a fact, where its file has come too."""
    try:
        data = path.with_suffix(_MARK_SUFFIX).read_bytes()
    except OSError:
        return []
    number = _NUMBER.unpack_from(data)[0] if len(data) >= _NUMBER.size else 0
    line, _, _ = data[_NUMBER.size :].partition(b"\n")
    fact = {"kind": MARK, "number": number, "text": line.decode("utf-8", "replace")}
    return [fact] if number else []


def _line(kind: str, fields: Mapping[str, Any]) -> bytes:
    return json.dumps({"kind": kind, **fields}, default=str, separators=(",", ":")).encode() + b"\n"
