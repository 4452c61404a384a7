"""Orders to the replicas of a job: of a session elsewhere, or of a run whose ranks may ask.

`orders` in the job's folder has a line of JSON for each order. Every replica follows each order. A
replica opens the file at each look: only then does a network file system fetch new lines.
`ordered/NUMBER` has the files of an order. `replicas/INDEX` below it has what a replica leaves of
the order. Its `answer.json` is written last. Order 0 is the start.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import files_below, replace_file

ORDERS, ORDERED, ANSWER, BEAT = "orders", "ordered", "answer.json", "beat"
PROGRAM, VALUES = "program", "values"  # folders of an order
START = 0
_LINE = "order"  # in an archive

# Orders, besides the requests to a session (`files/session.py`).
CELL, STOP, LEAVE = "cell", "stop", "leave"
# Orders for a cell at work; the word `of` is the cell's number. They are an answer to a rank's
# question; whether a user can answer; the replicas with a rank at a prompt; a request as in
# `files/prompts.py`; and the replies of ranks of other replicas to a request.
REPLY, HEARD, HOLD, REQUEST, REPLIES = "reply", "heard", "hold", "request", "replies"


@dataclass(frozen=True)
class Order:
    """An order to all replicas, with words as its arguments."""

    number: int
    do: str
    words: Dict[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> bytes:
        return fields.encode(self).replace(b"\n", b" ") + b"\n"


def folder_of(job: Path, number: int) -> Path:
    """Return the folder of an order's files."""
    return job / ORDERED / str(number)


def place_of(job: Path, number: int, replica: int) -> Path:
    """Return the folder for the files that a replica leaves of an order."""
    return folder_of(job, number) / "replicas" / str(replica)


def give(job: Path, order: Order, files: Mapping[str, Path]) -> None:
    """Write an order with folders of files into the job's folder."""
    for name, source in files.items():
        target = str(folder_of(job, order.number) / name)
        shutil.copytree(str(source), target, symlinks=True, dirs_exist_ok=True)
    note(job, order.line)


def note(job: Path, line: bytes) -> None:
    """Append an order. Its files have to be there: a replica may read the line at once."""
    descriptor = os.open(str(job / ORDERS), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def packed(order: Order, files: Mapping[str, Path]) -> bytes:
    """Return an order with its files as one archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(_LINE, order.line)
        for folder, source in files.items():
            for name, path in files_below(source):
                archive.write(str(path), f"{folder}/{name}")
    return buffer.getvalue()


def unpack(job: Path, data: bytes) -> None:
    """Write an order that was sent as an archive into a job's folder."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        line = archive.read(_LINE)
        archive.extractall(str(folder_of(job, int(json.loads(line)["number"]))))
    note(job, line)


class OrderReader:
    """Reads the orders of a job in turn."""

    def __init__(self, job: Path) -> None:
        self._path = job / ORDERS
        self._read_to = 0

    def new(self) -> List[Order]:
        """Return the orders that have come since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_to)
                data = file.read()
        except OSError:  # there is no order yet, or the file system is not reachable
            return []
        # A line may still be on its way: the next call reads it whole.
        complete = data[: data.rfind(b"\n") + 1]
        self._read_to += len(complete)
        return [Order(**json.loads(line)) for line in complete.splitlines()]


def answer(job: Path, number: int, replica: int, words: Mapping[str, Any]) -> None:
    """Write a replica's answer to an order."""
    place = place_of(job, number, replica)
    place.mkdir(parents=True, exist_ok=True)
    replace_file(place / ANSWER, json.dumps(words).encode())


def answer_of(job: Path, number: int, replica: int) -> Optional[Dict[str, Any]]:
    """Return a replica's answer to an order; None while there is none."""
    try:
        return dict(json.loads((place_of(job, number, replica) / ANSWER).read_bytes()))
    except (OSError, ValueError):
        return None


class Beats:
    """Tells by heartbeats which replicas of a job are silent."""

    def __init__(self, job: Path) -> None:
        self._job = job
        self._last: Dict[int, Tuple[bytes, float]] = {}  # a beat, and its first time

    def silent(self, replicas: Iterable[int], seconds: float) -> List[int]:
        """Return the replicas that had a heartbeat, but no new one for so many seconds."""
        now = time.monotonic()
        for replica in replicas:
            beat, _ = self._last.get(replica, (b"", now))
            try:
                path = self._job / "replicas" / str(replica) / BEAT
                heard = path.read_bytes()
            except OSError:
                continue
            if heard != beat:
                self._last[replica] = heard, now
        return [replica for replica, (_, since) in self._last.items() if now - since > seconds]
