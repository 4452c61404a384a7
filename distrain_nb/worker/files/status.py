"""The state of a run on disk: written by its supervisor, read by everybody."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Tuple

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.cause import ORPHANED, Cause
from distrain_nb.worker.files.folder import CANCEL_FILE, STATUS_FILE
from distrain_nb.worker.files.reserve import use_reserve
from distrain_nb.worker.machine.process_table import process_stat

TAKEN_UP_WITHIN_S = 30.0
LONGEST_TRAIL = 40
ROOM_BYTES = 32 << 10
# Why a study stops a run: it was given up as one that nobody had taken, and may yet be taken.
UNTAKEN = "untaken"
_GONE = "its supervisor process is gone: it was killed, or the machine was restarted"


class State(str, Enum):
    """The state of a run. The last three are final."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in (State.SUCCEEDED, State.FAILED, State.CANCELLED)

    def __str__(self) -> str:
        return str(self.value)


class Ending(NamedTuple):
    """The end of an attempt, as soon as it is decided: the state, the error, and the cause's kind.

    Error and kind are empty if the files of the ranks have them.
    """

    state: State
    error: str = ""
    kind: str = ""


_STATES = frozenset(str(state) for state in State)


@dataclass(frozen=True)
class Owner:
    """The process that answers for a run; its start time guards against a reused pid."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Owner:
        return cls(pid, _start_time(pid))

    @property
    def alive(self) -> bool:
        """False only where the system says that there is no such process any more."""
        try:
            return self.started != "" and _start_time(self.pid) == self.started
        except OSError:
            return _exists(self.pid)


@dataclass(frozen=True)
class Process:
    """One process of the run: `index` is its number in the log, `rank` its place in the world."""

    index: int
    label: str
    role: str
    replica: int
    rank: Optional[int] = None
    pid: Optional[int] = None
    outcome: str = ""


@dataclass(frozen=True)
class Progress:
    """Progress of a phase that takes long: `done` of `total` bytes.

    A `total` of 0 means that nobody knows it; `since` is in seconds since the epoch.
    """

    phase: str
    done: int = 0
    total: int = 0
    since: float = 0.0


@dataclass(frozen=True)
class Stretch:
    """A stretch of a run's life: its state, its phase in words, and when it began (seconds since
    the epoch)."""

    state: str
    phase: str
    begin: float


@dataclass(frozen=True)
class Status:
    """State, the phase in words, and when each state was last entered (seconds since the epoch).

    `error` says in words why it has failed, and `cause` as a fact; an earlier version of the
    package gave no cause. `note` is what there is to say beside the state: `hang` says why ranks
    make no progress, and is empty while they do; `warns` says that the note warns of a success that
    is none. `trail` has all stretches up to the end; of a run that starts again and again the first
    and the last.
    """

    state: State
    phase: str = ""
    times: Dict[str, float] = field(default_factory=dict)
    error: str = ""
    note: str = ""
    supervisor: Optional[Owner] = None
    processes: Tuple[Process, ...] = ()
    progress: Optional[Progress] = None
    cause: Optional[Cause] = None
    hang: str = ""
    warns: bool = False
    trail: Tuple[Stretch, ...] = ()

    def enter(self, state: State, phase: str = "", **changes: Any) -> Status:
        """Return the same run in another state, entered now; what was in progress is over."""
        now = time.time()
        times = {**self.times, str(state): now}
        over = {"progress": None, "cause": None, "hang": "", "warns": False}
        entered = replace(self, **{**over, **changes}, state=state, times=times)
        return entered.reach(phase, now)

    def reach(self, phase: str, now: Optional[float] = None) -> Status:
        """Return the same run in another phase of its state, from `now` on."""
        last = self.trail[-1] if self.trail else None
        is_same = last is not None and (last.state, last.phase) == (self.state, phase)
        if is_same or self.state.final:
            return replace(self, phase=phase)
        stretch = Stretch(str(self.state), phase, time.time() if now is None else now)
        trail = (*self.trail[:1], *self.trail[1:][-LONGEST_TRAIL:], stretch)
        return replace(self, phase=phase, trail=trail)

    def write(self, folder: Path) -> None:
        use_reserve(folder / STATUS_FILE, fields.encode(self, indent=1, ensure_ascii=False))

    @classmethod
    def read(cls, folder: Path) -> Status:
        """Return the status in a run's folder. A state that only a later version has counts as
        running for as long as somebody answers for the run, and then as failed.

        Raises FileNotFoundError where no run has been started; `fields.Damaged`.
        """
        path = folder / STATUS_FILE
        raw = fields.load(path)
        state = raw.get("state")
        is_known = not isinstance(state, str) or state in _STATES
        status = fields.decode(cls, raw if is_known else {**raw, "state": State.RUNNING}, path)
        return status if is_known else status._of_a_later_version(str(state))

    def _of_a_later_version(self, state: str) -> Status:
        """Return the same run, whose state has a name that this version doesn't know."""
        if self.answered_for:
            return replace(self, phase=self.phase or state)
        later = f"its state is {state!r}, which a later version of distrain-nb has written"
        return replace(self, state=State.FAILED, error="\n".join(filter(None, (later, self.error))))

    @classmethod
    def current(cls, folder: Path) -> Status:
        """Read the status from disk, corrected for what its writer could no longer write."""
        status = cls.read(folder)
        if status.state.final:
            return status
        if not status.answered_for:
            if cls.read(folder) != status:  # who answered for it has had the last word since
                return cls.current(folder)
            if status.state is State.STARTING and (folder / CANCEL_FILE).exists():
                return status.enter(State.CANCELLED, str(State.CANCELLED))
            error, cause = _GONE + _why_unsaid(folder), Cause(ORPHANED)
            return status.enter(State.FAILED, str(State.FAILED), error=error, cause=cause)
        return status

    @property
    def says_nothing_of_the_program(self) -> bool:
        """Whether it has failed by the end of its supervisor, or of a process that somebody
        killed."""
        cause = self.cause or Cause()
        return self.state is State.FAILED and (cause.is_of_supervisor or cause.was_killed)

    @property
    def lost_before_it_began(self) -> bool:
        """Say whether what took the run ended before any process of the run was started."""
        is_orphaned = self.cause is not None and self.cause.kind == ORPHANED
        return is_orphaned and str(State.RUNNING) not in self.times

    @property
    def answered_for(self) -> bool:
        """Whether the process is alive that answers for the run, or may still come."""
        if self.supervisor is not None:
            return self.supervisor.alive
        since = time.time() - max(self.times.values(), default=0)
        return abs(since) < TAKEN_UP_WITHIN_S  # the clock may have gone back


def request_cancel(folder: Path, why: str = "") -> None:
    """Ask whoever answers for the run to stop it. Who gives a reason leaves the request of others
    as it is."""
    file = folder / CANCEL_FILE
    if not (why and file.exists()):
        file.write_text(why, encoding="utf-8")
        os.utime(str(file))  # a carrier hears of a second request by its time


def is_cancelled_as_untaken(folder: Path) -> bool:
    """Return whether only a study asked the run to stop, lest it begins beside its next attempt."""
    try:
        return (folder / CANCEL_FILE).read_text("utf-8") == UNTAKEN
    except FileNotFoundError:
        return False


def _start_time(pid: int) -> str:
    """Return when the process started, in clock ticks since boot; empty when there is no such
    process.

    Raises OSError when that can't be read.
    """
    if not os.path.isdir("/proc/self"):
        return "running" if _exists(pid) else ""
    fields = process_stat(pid)
    return "" if not fields or fields[0] == "Z" else fields[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _why_unsaid(folder: Path) -> str:
    """Say what keeps a process from writing how a run ended; empty if nothing does."""
    if not os.access(str(folder), os.W_OK):
        return f"; {folder} can't be written"
    disk = os.statvfs(str(folder))
    if disk.f_bavail * disk.f_frsize < ROOM_BYTES:
        return f"; there is no space left on the disk of {folder}"
    return ""
