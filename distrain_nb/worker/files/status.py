"""The state of a run on disk: written by its supervisor, read by everybody."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import use_reserve
from distrain_nb.worker.files.folder import CANCEL_FILE, STATUS_FILE
from distrain_nb.worker.machine.system import process_stat

TAKEN_UP_WITHIN_S = 30.0
LONGEST_TRAIL = 40
ROOM_BYTES = 32 << 10
MADE_NO_PROGRESS = "it had made no progress"  # of one that was stopped for it
NO_PROGRESS = "it has made no progress"  # how the note of a run that hangs begins
OF_SUPERVISOR = "the run's supervisor"
ORPHANED = "its supervisor process is gone: it was killed, or the machine was restarted"


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

    Where the times are, each stretch has one too, as `NUMBER TAB STATE TAB PHASE`: version 0.1.0
    refuses fields that it doesn't know.
    """

    state: State
    phase: str = ""
    times: Dict[str, float] = field(default_factory=dict)
    error: str = ""
    note: str = ""
    supervisor: Optional[Owner] = None
    processes: Tuple[Process, ...] = ()
    progress: Optional[Progress] = None

    @property
    def trail(self) -> Tuple[Stretch, ...]:
        """All stretches up to the end; of a run that starts again and again the first and last."""
        entries = [(name.split("\t", 2), begin) for name, begin in self.times.items()]
        return tuple(
            Stretch(parts[1], parts[2], begin) for parts, begin in entries if len(parts) == 3
        )

    def enter(self, state: State, phase: str = "", **changes: Any) -> Status:
        """Return the same run in another state, entered now; what was in progress is over."""
        now = time.time()
        times = {**self.times, str(state): now}
        entered = replace(self, **{"progress": None, **changes}, state=state, times=times)
        return entered.reach(phase, now)

    def reach(self, phase: str, now: Optional[float] = None) -> Status:
        """Return the same run in another phase of its state, from `now` on."""
        stretches = [name for name in self.times if "\t" in name]
        number, _, last = stretches[-1].partition("\t") if stretches else ("0", "", "")
        stretch = f"{self.state}\t{phase}"
        if last == stretch or self.state.final:
            return replace(self, phase=phase)
        dropped = stretches[1:-LONGEST_TRAIL]
        times = {name: begin for name, begin in self.times.items() if name not in dropped}
        times[f"{int(number) + 1}\t{stretch}"] = time.time() if now is None else now
        return replace(self, phase=phase, times=times)

    def write(self, folder: Path) -> None:
        use_reserve(folder / STATUS_FILE, fields.encode(self, indent=1, ensure_ascii=False))

    @classmethod
    def read(cls, folder: Path) -> Status:
        """Return a state that only a later version has counts as running for as long as somebody
        answers for the run, and then as failed.

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
            return status.enter(
                State.FAILED, str(State.FAILED), error=ORPHANED + _why_unsaid(folder)
            )
        return status

    @property
    def lost(self) -> bool:
        """Whether what has ended it is the end of its supervisor, not anything that it did."""
        return self.state is State.FAILED and self.error.startswith((OF_SUPERVISOR, ORPHANED))

    @property
    def lost_before_it_began(self) -> bool:
        """Say whether what took the run ended before any process of the run was started."""
        orphaned = self.state is State.FAILED and self.error.startswith(ORPHANED)
        return orphaned and str(State.RUNNING) not in self.times

    @property
    def answered_for(self) -> bool:
        """Whether the process is alive that answers for the run, or may still come."""
        if self.supervisor is not None:
            return self.supervisor.alive
        since = time.time() - max(self.times.values(), default=0)
        return abs(since) < TAKEN_UP_WITHIN_S  # the clock may have gone back


def request_cancel(folder: Path) -> None:
    """Ask whoever answers for the run to stop it."""
    (folder / CANCEL_FILE).touch()


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
