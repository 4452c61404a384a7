"""When a failed run is started again, as its next attempt, and when that is of no more use.

A cause is the name of a signal (`SIGKILL`), an exit status (`75`), `preemption`, `lost` (a machine)
or `time-limit` (the program has saved ahead of it); empty for an error of the program's own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import struct
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, FrozenSet, Iterable, Iterator, Sequence

from distrain_nb.worker.files.failure import Failure, cause_of, decisive, headline
from distrain_nb.worker.files.folder import (
    ALONE_FILE,
    BEGUN_FILE,
    FAILURE_FILE,
    PIPE,
    RESULTS_FOLDER,
    SUCCEEDED_FILE,
)
from distrain_nb.worker.files.launch import Launch, fill
from distrain_nb.worker.files.status import Process
from distrain_nb.worker.metrics.event_format import first_event, record

NO_RETRY = "own"  # an end that is never one to start again after, whatever else is known of it
SIGNALS, PREEMPTION, LOST, TIME_LIMIT = "signals", "preemption", "lost", "time-limit"
# EX_TEMPFAIL of sysexits.h: whoever exits with it asks to be tried again.
RETRIED = (SIGNALS, PREEMPTION, LOST, TIME_LIMIT, "75")
SAVED_AHEAD = "it had saved ahead of its time limit"
MOST_WITHOUT_PROGRESS = 3
FIRST_PAUSE_S = 0.5

ATTEMPT_VARIABLE, RETRIES_VARIABLE = "DISTRAIN_ATTEMPT", "DISTRAIN_RETRIES"
MARK = "events.out.tfevents.{:.3f}.attempt-{}"  # when an attempt began, for readers of charts

FOLDERS = ("AIP_TENSORBOARD_LOG_DIR", "AIP_CHECKPOINT_DIR")
_OF_AN_ATTEMPT = [
    name.format(*"**") for name in (FAILURE_FILE, ALONE_FILE, BEGUN_FILE, SUCCEEDED_FILE, PIPE)
]

_HEAD, _STEP = struct.Struct("<QI"), 9  # of a record; where an event has its step
_LONGEST_STEP = 11


@dataclass(frozen=True)
class Headway:
    """How far a run has come: the highest step that it has reported, -1 for none, and a digest of
    what its checkpoint folder has."""

    step: int = -1
    checkpoints: str = ""


@dataclass(frozen=True)
class RunAttempt:
    """One attempt of a run: its number from 1 on, where it began, when (seconds since the epoch),
    and how many before it in turn have made no progress."""

    number: int = 1
    fruitless: int = 0
    began: float = 0.0
    standing: Headway = Headway()

    @property
    def pause(self) -> float:
        """Seconds to wait before it."""
        return float(FIRST_PAUSE_S * 2**self.fruitless)

    def next(self, standing: Headway) -> RunAttempt:
        """Return the attempt that goes on from there."""
        came_on = standing.step > self.standing.step
        came_on |= standing.checkpoints not in ("", self.standing.checkpoints)
        farthest = replace(standing, step=max(standing.step, self.standing.step))
        fruitless = 0 if came_on else self.fruitless + 1
        return RunAttempt(self.number + 1, fruitless, time.time(), farthest)

    @property
    def is_of_use(self) -> bool:
        """Whether those before it haven't shown that it would get no further either."""
        return self.fruitless < MOST_WITHOUT_PROGRESS

    def words(self, retries: int) -> str:
        """Return `attempt 2 of 4`."""
        return f"attempt {self.number} of {retries + 1}"

    @property
    def no_retry_reason(self) -> str:
        """Return why no further attempt is made."""
        return (
            f"not started again: {self.fruitless} attempts in turn have saved no newer checkpoint "
            "and reported no higher step"
        )


class Retries:
    """The attempts of a run on this machine. `attempt` is the present one."""

    def __init__(self, folder: Path, launch: Launch) -> None:
        self.attempt = RunAttempt()
        self._folder = folder
        self._launch = launch
        self._events, self._checkpoints = (
            fill(launch.processes[0].environment, folder, ()).get(name, "") for name in FOLDERS
        )
        self._no_retry_reason = ""

    @property
    def which(self) -> str:
        """Return which attempt it is, behind a comma; empty for the first."""
        number = self.attempt.number
        return f", {self.attempt.words(self._launch.retries)}" if number > 1 else ""

    def launch(self) -> Launch:
        """Return what starts the present attempt; charts know then that it begins."""
        number, retries = self.attempt.number, self._launch.retries
        if not retries:
            return self._launch
        if number > 1:
            mark(self._events, number)
        environment = variables(number, retries)
        processes = [
            replace(process, environment={**process.environment, **environment})
            for process in self._launch.processes
        ]
        return replace(self._launch, processes=tuple(processes))

    def go_on(self, failures: Sequence[Failure], *, has_saved: bool) -> bool:
        """Go on to the next attempt, if there is one after such failures, or after the program has
        saved ahead of its time limit; say whether."""
        if self.attempt.number > self._launch.retries:
            return False
        saved = TIME_LIMIT if has_saved else ""
        cause = cause_of(decisive(failures).status) if failures else saved
        if not is_retried(cause, self._launch.retried or RETRIED):
            return False
        reached = headway(self._events, self._checkpoints, self.attempt.began)
        attempt = self.attempt.next(reached)
        if not attempt.is_of_use:
            self._no_retry_reason = attempt.no_retry_reason
            return False
        self.attempt = attempt
        return True

    def after(self, failures: Sequence[Failure], processes: Sequence[Process]) -> str:
        """Return `attempt 2 of 4, after rank 1 was killed by SIGKILL`."""
        why = headline(decisive(failures), processes) if failures else SAVED_AHEAD
        return f"{self.attempt.words(self._launch.retries)}, after {why}"

    def with_no_retry_reason(self, report: str) -> str:
        """Return the report of a failure with why there is no other attempt, where it is the
        lack of progress."""
        return "\n".join(filter(None, (report, self._no_retry_reason)))

    def forget(self) -> None:
        """Leave nothing of a failed attempt but its log, its charts and what the program saved."""
        for names in _OF_AN_ATTEMPT:
            for path in self._folder.glob(names):
                path.unlink()
        shutil.rmtree(str(self._folder / RESULTS_FOLDER), ignore_errors=True)


def is_retried(cause: str, retried: Iterable[str]) -> bool:
    """Return whether an end of that cause is one to start again after."""
    kinds = {cause, SIGNALS} if cause.startswith("SIG") else {cause}
    return bool(cause) and not kinds.isdisjoint(retried)


def read_causes(text: str) -> FrozenSet[str]:
    """Return the causes in `75,SIGKILL,preemption`. Raises ValueError for what is none."""
    names = {name.strip() for name in text.split(",")}
    allowed = {SIGNALS, PREEMPTION, LOST, TIME_LIMIT, *signal.Signals.__members__}
    for name in names - allowed:
        if not (name.isdecimal() and 0 < int(name) < 256):
            raise ValueError(name)
    return frozenset(names)


def variables(attempt: int, retries: int) -> Dict[str, str]:
    """Return the variables that describe an attempt to a rank: torchrun's and ours."""
    return {
        ATTEMPT_VARIABLE: str(attempt),
        RETRIES_VARIABLE: str(retries),
        "TORCHELASTIC_RESTART_COUNT": str(attempt - 1),
        "TORCHELASTIC_MAX_RESTARTS": str(retries),
    }


def mark(events: str, attempt: int) -> None:
    """Note beside the event files that an attempt begins: steps that are done again replace those
    before. Without a folder, or room, charts have both."""
    if not os.path.isabs(events):
        return
    now = time.time()
    try:
        os.makedirs(events, exist_ok=True)
        with open(os.path.join(events, MARK.format(now, attempt)), "wb") as file:
            file.write(record(first_event(now)))
    except OSError:
        pass


def headway(events: str, checkpoints: str, since: float = 0.0) -> Headway:
    """Return how far a program has come by what is in these folders; steps are those of event
    files that have grown since then."""
    return Headway(
        highest_step(Path(events), since) if os.path.isabs(events) else -1,
        digest(_files(Path(checkpoints))) if os.path.isabs(checkpoints) else "",
    )


def digest(files: Iterable[str]) -> str:
    """Return a short text for what a checkpoint folder has; empty for nothing."""
    named = sorted(files)
    return hashlib.sha256("\0".join(named).encode("utf-8", "replace")).hexdigest() if named else ""


def highest_step(events: Path, since: float = 0.0) -> int:
    """Return the highest step in the event files below a folder that have grown since then; -1
    for none."""
    highest = -1
    for path in events.rglob("*tfevents*"):
        try:
            if path.stat().st_mtime >= since:
                highest = max(highest, max(_steps(path), default=-1))
        except OSError:  # gone meanwhile
            continue
    return highest


def _steps(path: Path) -> Iterator[int]:
    with path.open("rb") as file:
        while True:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                return
            length = _HEAD.unpack(head)[0]
            begin = file.read(min(length, _STEP + _LONGEST_STEP))
            yield _step(begin)
            file.seek(length - len(begin) + 4, 1)


def _step(event: bytes) -> int:
    """Return the step of an event, which stands behind its time; -1 without one."""
    if event[_STEP : _STEP + 1] != b"\x10":
        return -1
    value = 0
    for place, byte in enumerate(event[_STEP + 1 :]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value if value < 1 << 62 else -1
    return -1


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield f"{path} {path.stat().st_mtime_ns}"
        except OSError:
            continue
