"""The view of a run. Pages, tables, texts and documents are made of it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from distrain_nb import escapes
from distrain_nb.backends.cost import RunCost
from distrain_nb.backends.plugins import title_of
from distrain_nb.run.annotation import Annotation
from distrain_nb.run.metrics import finite
from distrain_nb.run.progress import RunProgress, expected_end, progress_of
from distrain_nb.types import Json
from distrain_nb.worker.files.disk import readable_size
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.folder import EVENTS_FOLDER, STEP_TIMES_FOLDER
from distrain_nb.worker.files.status import Progress, State, Status, Stretch
from distrain_nb.worker.files.tracked import FILES, Tracked

if TYPE_CHECKING:
    from distrain_nb.run.charts.lines import Metrics
    from distrain_nb.run.log.reader import Line
    from distrain_nb.run.run import Run

SHORTEST_STEP_S = 0.1
MOST_STEPS = 10
UNREADABLE = "unreadable"  # in the place of a state
LONGEST_CAUSE = 60
# As in page/src/run/head.js, by state.
SIGNS = {
    "starting": "◐",
    "running": "●",
    "stopping": "◑",
    "succeeded": "✓",
    "failed": "✕",
    "cancelled": "■",
    UNREADABLE: "?",
}


@dataclass(frozen=True)
class Step:
    """A stretch of a run's life, in seconds since the epoch. `end` is None while it lasts."""

    label: str
    begin: float | None
    end: float | None


@dataclass(frozen=True, kw_only=True)
class Overview:
    """A run or a study at one time, and the words that show it.

    `begin` and `end` are in seconds since the epoch. `cost` is the cost in words, if it is known.
    `cost_note` says what the cost leaves out.
    """

    noun: ClassVar[str]
    if TYPE_CHECKING:

        @property
        def where(self) -> str:
            """Where it runs, or how far it is."""
            ...

        @property
        def size(self) -> str:
            """How many ranks it has, or how many trials run."""
            ...

    id: int
    name: str
    state: str
    final: bool
    phase: str = ""
    steps: tuple[Step, ...] = ()
    begin: float
    end: float | None
    note: str = ""
    hang: str = ""
    error: str = ""
    progress: Progress | None = None
    cost: str = ""
    cost_note: str = ""

    @property
    def title(self) -> str:
        """Its kind, number and name: `run 7 (digits)`."""
        return f"{self.noun} {self.id} ({self.name})"

    @property
    def state_text(self) -> str:
        """State and phase: `running`, `starting (building the image)`."""
        return self.state + ("" if self.phase in ("", self.state) else f" ({self.phase})")

    @property
    def cost_text(self) -> str:
        """What it has cost, and what that leaves out: `0.42 USD (storage is not counted)`."""
        return f"{self.cost} ({self.cost_note})" if self.cost and self.cost_note else self.cost

    @property
    def cause(self) -> str:
        """Why it failed or stopped, in a line; empty if nothing is known."""
        return self.error.strip().partition("\n")[0]

    def elapsed(self, now: float) -> float:
        """Return the seconds from the submission to the end, or until now."""
        return max(0.0, (self.end or now) - self.begin)

    def doing(self, now: float) -> str:
        """Describe the present long work; empty if there is none."""
        return progress_text(self.progress, now) if self.progress else ""

    def dated(self, line: str, now: float) -> str:
        """Write a line for a document. While the line may still change, it has a date."""
        return line if self.final else f"{line}, as of {clock(now)}"


@dataclass(frozen=True, kw_only=True)
class RunSummary(Overview):
    """A run at a glance.

    `labels` and `pools` name its processes, by their index in the log. A `resumable` run can be
    started again from what it has saved. `annotation` has the user's notes about it.
    """

    noun = "run"

    where: str
    size: str = ""
    labels: Mapping[int, str] = field(default_factory=dict)
    pools: Mapping[int, str] = field(default_factory=dict)
    resumable: bool = False
    annotation: Annotation = field(default_factory=Annotation)

    @property
    def cause(self) -> str:
        """Why the run failed or can't be read, in a line; empty for other runs."""
        return super().cause if self.state in (State.FAILED.value, UNREADABLE) else ""

    def as_json(self) -> dict[str, Json]:
        """Return JSON values, with None for a time that is not finite."""
        return finite.without_nan(asdict(self))

    def saved_line(self, now: float) -> str:
        """Write the line for a document."""
        return self.dated(self.line(now), now)

    def line(self, now: float) -> str:
        """Write the summary in one line of text."""
        size = f", {self.size}" if self.size else ""
        time = ("after " if self.final else "for ") + duration(self.elapsed(now))
        doing = f"; {self.doing(now)}" if self.progress else ""
        cost = f", {self.cost_text}" if self.cost else ""
        return f"{self.title}: {self.state_text} {time} on {self.where}{size}{cost}{doing}"


def summary_of(run: Run) -> RunSummary:
    """Return the present view of a run."""
    status = run.status
    state = status.state
    end = status.times.get(str(state), run.created) if state.final else None
    cost = RunCost.read(run.folder)
    return RunSummary(
        id=run.id,
        name=run.name,
        state=str(state),
        final=state.final,
        phase=status.phase,
        where=title_of(run.backend) + (" (rehearsal)" if run.rehearsed else ""),
        size=_size(status),
        steps=steps_of(run.created, status, end),
        labels=labels_of(status),
        pools={process.index: process.role for process in status.processes},
        begin=run.created,
        end=end,
        note=escapes.plain(_note(run.folder, status)),
        hang=escapes.plain(status.hang),
        error=escapes.plain(status.error),
        progress=progress_of(run.folder, status, time.time()),
        resumable=run.resumable,
        cost=_cost(cost, run.folder, status) if cost else "",
        cost_note=cost.note if cost else "",
        annotation=Annotation.read(run.folder),
    )


def unreadable(run: Run, why: str) -> RunSummary:
    """Return the summary of a run whose files can't be read, from the list of runs alone."""
    return RunSummary(
        id=run.id,
        name=run.name,
        state=UNREADABLE,
        final=True,
        where=title_of(run.backend),
        begin=run.created,
        end=run.created,
        error=why,
        annotation=Annotation.read(run.folder),
    )


def _cost(cost: RunCost, folder: Path, status: Status) -> str:
    """Return the cost of a run in words, with the estimate for its end."""
    now = time.time()
    return cost.text(status, now, expected_end(folder, status, now))


def _note(folder: Path, status: Status) -> str:
    """Return a note for the reader of a run; for one that has ended, where its time went."""
    notes = [status.note or _note_of_tracker(folder)]
    if status.state.final and (folder / EVENTS_FOLDER / STEP_TIMES_FOLDER).exists():
        from distrain_nb.run.metrics.step_findings import findings_of
        from distrain_nb.run.metrics.step_times import step_times

        notes += [finding.message for finding in findings_of(step_times(folder))]
    return "; ".join(filter(None, notes))


def _note_of_tracker(folder: Path) -> str:
    """Return why experiment trackers are not up to date; empty if they are."""
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
    """Return the steps of a run: the capture, each phase that lasted, and the end.

    Times are in seconds since the epoch.
    """
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
    """Return whether a stretch is a step: it lasted, or the ranks ran in it."""
    return stretch.state == State.RUNNING or until is None or until - begin >= SHORTEST_STEP_S


def _label(stretch: Stretch) -> str:
    if stretch.state == State.STOPPING:
        return stretch.state
    if stretch.phase in ("", stretch.state):
        return "start" if stretch.state == State.STARTING else stretch.state
    return stretch.phase


def _steps_of_states(created: float, status: Status, end: float | None) -> tuple[Step, ...]:
    """Return the steps of a run from a version that recorded no trail."""
    running = status.times.get(str(State.RUNNING))
    started = running or end
    steps = [Step("captured", None, created), Step("start", created, started)]
    if running is not None:
        steps.append(Step("running", running, end))
    if end is not None:
        steps.append(Step(str(status.state), end, end))
    return tuple(steps)


def labels_of(status: Status) -> dict[int, str]:
    """Return the label of each process, by its index in the log."""
    return {process.index: process.label for process in status.processes}


def tagged(labels: Mapping[int, str], line: Line, text: str | None = None) -> str:
    """Write a line of the log after its process's label: `[rank 3] …`."""
    return f"[{label_of(labels, line)}] {line.text if text is None else text}"


def label_of(labels: Mapping[int, str], line: Line) -> str:
    """Return the label of the process that wrote a line, or else its number."""
    return labels.get(line.process, str(line.process))


def newest(metrics: Metrics) -> Iterable[str]:
    """Return the newest value of each metric: `loss 0.0312`."""
    return (f"{tag} {short_number(value)}" for tag, value in metrics.last().items())


def state_text_of(state: str, words: str, cause: str = "") -> str:
    """Write a state for a table: its sign, its words, and the beginning of the cause."""
    cut = f"{cause[:LONGEST_CAUSE]}…" if len(cause) > LONGEST_CAUSE else cause
    return ": ".join(filter(None, (f"{SIGNS.get(state, '◌')} {words}", cut)))


def progress_text(progress: Progress, now: float) -> str:
    """Describe progress as far as it is known: `sending the image: 12 MiB of 40 MiB, 3.1 s`."""
    if isinstance(progress, RunProgress):
        return progress.text
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


def short_number(value: float) -> str:
    """Return a number in about four digits: `0.0312`, `99.5`, `12,345`, `1.2e-05`."""
    size = abs(value)
    if not 1e-4 <= size < 1e7:
        return f"{value:.4g}"
    text = f"{value:,.{max(0, 3 - math.floor(math.log10(size)))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
