"""How far a run has come, from what its program reports (`report`) and from what it prints.

Who reports beats what is printed.

Whoever keeps a run's log writes `progress.json`, with when the run was how far: readers make an
estimate of the end from that (`run/progress.py`).
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, Iterator, Optional, Tuple

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import PROGRESS_FILE, RECORD_FILE, REPORTED_FILE
from distrain_nb.worker.files.log import parse
from distrain_nb.worker.metrics.bars import OUR_LINE, SOURCES, PrintedProgress, ProgressReading

VARIABLE = "DISTRAIN_PROGRESS"  # the file to which rank 0 reports
REPORTERS = SOURCES[:5]
SLOT_BYTES = 80
REPORT_EVERY_S, LOOK_EVERY_S = 0.1, 0.5
READ_BYTES = 16 << 10  # of the log, at each look
MOST_SAMPLES = 64
SAY_EVERY_S, SAY_EVERY_SHARE = 10.0, 0.05

_due: Dict[str, float] = {}


def report(reporter: str, done: float, total: float, unit: str = "steps") -> None:
    """Tell the supervisor how far the run is; does nothing outside of rank 0 of a run."""
    path, now = os.environ.get(VARIABLE), time.monotonic()
    if not path or total <= 0 or (now < _due.get(reporter, 0.0) and done < total):
        return
    _due[reporter] = now + REPORT_EVERY_S
    line = f"{done!r} {total!r} {unit}".encode("ascii", "replace")[: SLOT_BYTES - 1]
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            place = SLOT_BYTES * REPORTERS.index(reporter)
            os.pwrite(descriptor, line.ljust(SLOT_BYTES - 1) + b"\n", place)
        finally:
            os.close(descriptor)
    except OSError:  # a full disk: the program goes on
        pass


def reported(folder: Path) -> Iterator[ProgressReading]:
    """Yield what rank 0 has reported last, by each reporter."""
    try:
        data = (folder / REPORTED_FILE).read_bytes()
    except OSError:
        return
    for number, reporter in enumerate(REPORTERS):
        words = data[SLOT_BYTES * number : SLOT_BYTES * (number + 1)].decode("ascii", "replace")
        try:
            done, total, unit = words.strip("\0 \n").split(" ", 2)
            yield ProgressReading(reporter, float(done), float(total), unit)
        except ValueError:
            continue


@dataclass(frozen=True)
class KeptProgress:
    """The content of `progress.json`: `times` (since the epoch) are when it was that far."""

    done: float
    total: float
    unit: str = "steps"
    source: str = ""
    label: str = ""
    times: Tuple[float, ...] = ()
    dones: Tuple[float, ...] = ()
    left: Optional[float] = None  # seconds from the last of `times`, as the program says

    def after(self, now: float, reading: ProgressReading) -> KeptProgress:
        """Return what is kept after that reading."""
        same = (self.source, self.label, self.unit, self.total) == (
            reading.source,
            reading.label,
            reading.unit,
            reading.total,
        )
        times, dones = (self.times, self.dones) if same and reading.done >= self.done else ((), ())
        if not dones or reading.done > dones[-1]:
            times, dones = thinned((*times, now), (*dones, reading.done))
        return KeptProgress(
            reading.done, reading.total, reading.unit, reading.source, reading.label, times, dones,
            reading.seconds_left,
        )  # fmt: skip


def thinned(
    times: Tuple[float, ...], dones: Tuple[float, ...]
) -> Tuple[Tuple[float, ...], Tuple[float, ...]]:
    """Return every other sample once there are too many, but for the first two: what lies between
    them is the slow beginning."""
    if len(times) <= MOST_SAMPLES:
        return times, dones
    return times[:2] + times[3:-1:2] + times[-1:], dones[:2] + dones[3:-1:2] + dones[-1:]


@dataclass
class ProgressTracker:
    """Keeps the progress of one run for readers of its folder. Nothing that it does raises.

    In a container, whose folder nobody reads, it has it in the log, by `say`.
    """

    folder: Path
    say: Optional[Callable[[str], None]] = None
    _recent: bytes = b""
    _printed: PrintedProgress = field(default_factory=PrintedProgress)
    _look_at: float = 0.0
    _last_line: Tuple[float, float] = (0.0, 0.0)  # when, and which share
    _sent: Optional[Tuple[float, ProgressReading]] = None

    def __post_init__(self) -> None:
        self._kept = read(self.folder)
        self._written = self._kept
        self._is_read = (self.folder / RECORD_FILE).exists()

    def hear(self, records: bytes) -> None:
        """Take records of the log; of many the last ones."""
        self._recent = (self._recent + records[-READ_BYTES:])[-READ_BYTES:]

    def take_sent(self, reading: ProgressReading) -> None:
        """Keep, at the next look, what another thread has received."""
        self._sent = time.time(), reading

    def take(self, reading: ProgressReading, now: float) -> bool:
        """Keep a reading unless a better source is known; say whether it is kept."""
        before = self._kept or KeptProgress(0, 0, source=reading.source)
        if before.total and SOURCES.index(reading.source) > SOURCES.index(before.source):
            return False
        self._kept = before.after(now, reading)
        return True

    def look(self, at_once: bool = False) -> None:
        """Read what is new, twice a second at most, and write it down."""
        now = time.monotonic()
        if now < self._look_at and not at_once:
            return
        self._look_at = now + LOOK_EVERY_S
        recent, self._recent = self._recent, b""
        in_log = False
        for record in recent.split(b"\n"):
            in_log = self._hear_line(record) or in_log
        before = self._kept
        for reading in reported(self.folder):
            state = self._kept
            if state is None or (reading.source, reading.done) != (state.source, state.done):
                self.take(reading, time.time())
        sent, self._sent = self._sent, None
        if sent:
            self.take(sent[1], sent[0])
        if self._kept != self._written:
            self._write()
            if not in_log or self._kept is not before:
                self._tell(now)

    def _hear_line(self, record: bytes) -> bool:
        """Return whether a whole line of the log says how far the run is."""
        try:
            at, process, kind, text = parse(record)
        except ValueError:  # the rest of a long one
            return False
        if self.say is not None and OUR_LINE.match(text):  # heard, it would beat what it is from
            return False
        reading = self._printed.hear(process, text)
        return reading is not None and self.take(reading, at) and kind.islower()

    def _write(self) -> None:
        self._written = self._kept
        draft = self.folder / f"{PROGRESS_FILE}.new"
        try:
            draft.write_bytes(fields.encode(self._kept))
            os.replace(str(draft), str(self.folder / PROGRESS_FILE))
        except OSError:
            pass

    def _tell(self, now: float) -> None:
        state, (when, share) = self._kept, self._last_line
        if self.say is None or self._is_read or state is None or state.total <= 0:
            return
        new = state.done / state.total
        if new < share:
            share = 0.0
        if now >= when + SAY_EVERY_S and new >= share + SAY_EVERY_SHARE:
            self._last_line = now, new
            self.say(f"distrain: {state.done:.0f} of {state.total:.0f} {state.unit}")


def read(folder: Path) -> Optional[KeptProgress]:
    """Return the progress of a run that somebody keeps; None where there is none."""
    try:
        return fields.read(KeptProgress, folder / PROGRESS_FILE)
    except (OSError, fields.Damaged, ValueError):
        return None


def forget(folder: Path) -> None:
    """Forget what an earlier attempt has reported."""
    for name in (PROGRESS_FILE, REPORTED_FILE):
        try:
            os.unlink(str(folder / name))
        except OSError:
            pass
