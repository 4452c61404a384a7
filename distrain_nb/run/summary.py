"""A summary of a run for any monitor: a pure function of the run's status."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Protocol

from distrain_nb import escapes
from distrain_nb.backends.plugins import title_of
from distrain_nb.run.metrics import finite
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.sizes import readable_size
from distrain_nb.worker.files.status import State
from distrain_nb.worker.files.tracked import FILES, Tracked

if TYPE_CHECKING:
    from pathlib import Path

    from distrain_nb.types import Json
    from distrain_nb.worker.files.status import Progress, Status, Stretch

SHORTEST_STEP_S = 0.1
MOST_STEPS = 10
UNREADABLE = "unreadable"  # what stands where other runs have their state


class MonitoredRun(Protocol):
    """The part of a run that a monitor needs."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def rehearsed(self) -> bool: ...
    @property
    def created(self) -> float: ...
    @property
    def folder(self) -> Path: ...
    @property
    def status(self) -> Status: ...
    @property
    def resumable(self) -> bool: ...
    def cancel(self) -> None: ...


@dataclass(frozen=True)
class Step:
    """One stretch of a run's life, in seconds since the epoch; `end` is None while it lasts."""

    label: str
    begin: float | None
    end: float | None


@dataclass(frozen=True)
class RunSummary:
    """A run at a glance. `labels` and `pools` name its processes, by their index in the log. One
    that is `resumable` can be started again from what it has saved."""

    id: int
    name: str
    state: str
    final: bool
    phase: str
    where: str
    size: str
    steps: tuple[Step, ...]
    labels: dict[int, str]
    pools: dict[int, str]
    begin: float
    end: float | None
    note: str
    error: str
    progress: Progress | None = None
    resumable: bool = False

    def elapsed(self, now: float) -> float:
        """Return seconds since it was submitted, until it ended."""
        return max(0.0, (self.end or now) - self.begin)

    def as_json(self) -> dict[str, Json]:
        """Return JSON values; a time that is not finite is None."""
        return finite.without_nan(asdict(self))

    def saved_line(self, now: float) -> str:
        """Write the line for a document, which says when a run was so that may still change."""
        return self.line(now) if self.final else f"{self.line(now)}, as of {clock(now)}"

    def line(self, now: float) -> str:
        """Write the summary in one line of text."""
        size = f", {self.size}" if self.size else ""
        time = ("after " if self.final else "for ") + duration(self.elapsed(now))
        phase = "" if self.phase in ("", self.state) else f" ({self.phase})"
        doing = f"; {progress_text(self.progress, now)}" if self.progress else ""
        return (
            f"run {self.id} ({self.name}): {self.state}{phase} {time} on {self.where}{size}{doing}"
        )


def summary_of(run: MonitoredRun) -> RunSummary:
    """Return the run as it is now."""
    status = run.status
    state = status.state
    end = status.times.get(str(state), run.created) if state.final else None
    return RunSummary(
        id=run.id,
        name=run.name,
        state=str(state),
        final=state.final,
        phase=status.phase,
        where=title_of(run.backend) + (" (rehearsal)" if run.rehearsed else ""),
        size=_size(status),
        steps=steps_of(run.created, status, end),
        labels={process.index: process.label for process in status.processes},
        pools={process.index: process.role for process in status.processes},
        begin=run.created,
        end=end,
        note=escapes.plain(status.note or _note_of_tracker(run.folder)),
        error=escapes.plain(status.error),
        progress=None if state.final else status.progress,
        resumable=run.resumable,
    )


def unreadable(run: MonitoredRun, why: str) -> RunSummary:
    """Return the summary of a run whose files can't be read, from the list alone."""
    return RunSummary(
        id=run.id,
        name=run.name,
        state=UNREADABLE,
        final=True,
        phase="",
        where=title_of(run.backend),
        size="",
        steps=(),
        labels={},
        pools={},
        begin=run.created,
        end=run.created,
        note="",
        error=why,
    )


def _note_of_tracker(folder: Path) -> str:
    """Say what keeps experiment trackers from being up to date; empty if nothing does."""
    notes = []
    for file in FILES.values():
        with suppress(OSError, Damaged):
            tracked = Tracked.read(folder, file)
            notes.append(tracked.note if tracked else "")
    return "; ".join(filter(None, notes))


def _size(status: Status) -> str:
    ranks = [process for process in status.processes if process.rank is not None]
    if ranks:
        return plural(len(ranks), "rank")
    return plural(len(status.processes), "process") if status.processes else ""


def steps_of(created: float, status: Status, end: float | None) -> tuple[Step, ...]:
    """Return the steps of a run: the capture, each phase that lasted, and the end; times in seconds
    since the epoch."""
    if not status.trail:
        return _steps_of_states(created, status, end)
    stretches = status.trail
    begins = [created, *(stretch.begin for stretch in stretches[1:])]
    steps = [Step("captured", None, created)]
    for stretch, begin, until in zip(stretches, begins, [*begins[1:], end], strict=True):
        label = _label(stretch)
        if label == steps[-1].label:
            steps[-1] = replace(steps[-1], end=until)
        elif _counts(stretch, begin, until) or stretch is stretches[0]:
            steps.append(Step(label, begin, until))
    if len(steps) > MOST_STEPS:
        steps = [*steps[:3], Step("…", None, None), *steps[4 - MOST_STEPS :]]
    if end is not None:
        steps.append(Step(str(status.state), end, end))
    return tuple(steps)


def _counts(stretch: Stretch, begin: float, until: float | None) -> bool:
    """Tell whether a stretch is a step: it lasted, or the ranks ran."""
    return stretch.state == State.RUNNING or until is None or until - begin >= SHORTEST_STEP_S


def _label(stretch: Stretch) -> str:
    if stretch.state == State.STOPPING:
        return stretch.state
    if stretch.phase in ("", stretch.state):
        return "start" if stretch.state == State.STARTING else stretch.state
    return stretch.phase


def _steps_of_states(created: float, status: Status, end: float | None) -> tuple[Step, ...]:
    """Return the steps of a run from a version that kept no trail."""
    running = status.times.get(str(State.RUNNING))
    started = running or end
    steps = [Step("captured", None, created), Step("start", created, started)]
    if running is not None:
        steps.append(Step("running", running, end))
    if end is not None:
        steps.append(Step(str(status.state), end, end))
    return tuple(steps)


def progress_text(progress: Progress, now: float) -> str:
    """Describe progress with what is known: `sending the image: 12 MiB of 40 MiB, 3.1 s`."""
    parts = []
    if progress.total:
        parts.append(f"{readable_size(progress.done)} of {readable_size(progress.total)}")
    elif progress.done:
        parts.append(readable_size(progress.done))
    if progress.since:
        parts.append(duration(max(0.0, now - progress.since)))
    return f"{progress.phase}: {', '.join(parts)}" if parts else progress.phase


def plural(count: int, noun: str) -> str:
    """Write a count with its noun: `1 rank`, `2 ranks`, `3 processes`, `2 studies`."""
    if count == 1:
        return f"{count:,} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'es' if noun.endswith(('s', 'x', 'z', 'ch', 'sh')) else 's'}"


def duration(seconds: float) -> str:
    """Write a number of seconds: `0.4 s`, `42 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{int(seconds)} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60:02d} min"


def clock(seconds: float) -> str:
    """Write a time since the epoch on this machine's clock: `2026-11-26 14:05 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(seconds))


def brief(value: float) -> str:
    """Return a number in about four digits: `0.0312`, `99.5`, `12,345`, `1.2e-05`."""
    size = abs(value)
    if not 1e-4 <= size < 1e7:
        return f"{value:.4g}"
    text = f"{value:,.{max(0, 3 - math.floor(math.log10(size)))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
