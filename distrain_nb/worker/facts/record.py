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
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

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
FILE_NAME = "rank-{}.jsonl"
MARK_SUFFIX, _MARK_BYTES = ".mark", 512
NUMBER = struct.Struct("=Q")  # of a mark, which its text follows

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


def spans(ranks: Iterable[int]) -> str:
    """Return ranks as a text such as `0-1023` or `0-3,8`. Each of 1,024 ranks notes its groups: a
    list of numbers took 5 kB, several times in each file."""
    parts: List[List[int]] = []
    for rank in sorted(set(ranks)):
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in parts)


def ranks_in(field: Union[str, Sequence[int]]) -> Tuple[int, ...]:
    """Return the ranks of a text by `spans`, or of the list that earlier versions wrote."""
    return _of_spans(field) if isinstance(field, str) else tuple(field)


@lru_cache(maxsize=256)
def _of_spans(text: str) -> Tuple[int, ...]:
    ends = [part.partition("-") for part in text.split(",") if part]
    return tuple(rank for a, _, b in ends for rank in range(int(a), int(b or a) + 1))


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
        self._path, self._bytes = folder / FILE_NAME.format(rank), 0
        attempt = int(os.environ.get(ATTEMPT_VARIABLE) or "1")
        self._path.write_bytes(line_of(BEGIN, {"attempt": attempt, "world": world}))
        self._map(self._path.with_suffix(MARK_SUFFIX))
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
            data = text.encode("utf-8", "replace")[: _MARK_BYTES - NUMBER.size - 1] + b"\n"
            self._number[0] = 0  # no number has half a text
            self._mark[NUMBER.size : NUMBER.size + len(data)] = data
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
        line = line_of(kind, fields)
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


def of_kind(facts: Sequence[Fact], kind: str) -> List[Fact]:
    """Return the facts of a kind, in their order."""
    return [fact for fact in facts if fact["kind"] == kind]


def line_of(kind: str, fields: Mapping[str, Any]) -> bytes:
    """Return the line of a file that has a fact."""
    return json.dumps({"kind": kind, **fields}, default=str, separators=(",", ":")).encode() + b"\n"
