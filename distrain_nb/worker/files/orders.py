"""Orders to the replicas of a job, for a session elsewhere and for a run whose ranks may ask.

`orders` in the job's folder has a line of JSON for each order, which every replica follows. It is
opened at each look: a network file system then asks for what is new. `ordered/NUMBER` has the files
of an order, and in `replicas/INDEX` what each replica leaves of it. Its `answer.json` is written
last. Order 0 is the start.
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

# What is ordered, besides what a session is asked (`files/session.py`).
CELL, STOP, LEAVE = "cell", "stop", "leave"
# For a cell at work, whose number is the word `of`: an answer to a rank's question; whether
# somebody can answer; which replicas have a rank at a prompt; what `files/prompts.py` has as a
# request; and what ranks of other replicas reply to one.
REPLY, HEARD, HOLD, REQUEST, REPLIES = "reply", "heard", "hold", "request", "replies"


@dataclass(frozen=True)
class Order:
    """What is to be done, with `words` that depend on it."""

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
    """Return the folder of what a replica leaves of an order."""
    return folder_of(job, number) / "replicas" / str(replica)


def give(job: Path, order: Order, files: Mapping[str, Path]) -> None:
    """Have an order in the job's folder, with folders of files by their names."""
    for name, source in files.items():
        target = str(folder_of(job, order.number) / name)
        shutil.copytree(str(source), target, symlinks=True, dirs_exist_ok=True)
    note(job, order.line)


def note(job: Path, line: bytes) -> None:
    """Add an order whose files are there."""
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
    """Have an order in the folder of a job that has been sent as an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        line = archive.read(_LINE)
        archive.extractall(str(folder_of(job, int(json.loads(line)["number"]))))
    note(job, line)


class OrderReader:
    """Reads the orders of a job in their turn."""

    def __init__(self, job: Path) -> None:
        self._path = job / ORDERS
        self._read_to = 0

    def new(self) -> List[Order]:
        """Return those that have come since the last time."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_to)
                data = file.read()
        except OSError:  # nothing has been ordered yet, or the file system is away
            return []
        complete = data[: data.rfind(b"\n") + 1]
        self._read_to += len(complete)
        return [Order(**json.loads(line)) for line in complete.splitlines()]


def answer(job: Path, number: int, replica: int, words: Mapping[str, Any]) -> None:
    """Say what has come of an order."""
    place = place_of(job, number, replica)
    place.mkdir(parents=True, exist_ok=True)
    replace_file(place / ANSWER, json.dumps(words).encode())


def answer_of(job: Path, number: int, replica: int) -> Optional[Dict[str, Any]]:
    """Return what a replica has said of an order; None where it is at work."""
    try:
        return dict(json.loads((place_of(job, number, replica) / ANSWER).read_bytes()))
    except (OSError, ValueError):
        return None


class Beats:
    """Hears by their heartbeats whether the replicas of a job are there."""

    def __init__(self, job: Path) -> None:
        self._job = job
        self._last: Dict[int, Tuple[bytes, float]] = {}  # the beat, and since when it is that

    def silent(self, replicas: Iterable[int], seconds: float) -> List[int]:
        """Return those that have been heard of, and not for so long."""
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
