"""The one door to trackers: what passes it has no secrets.

Trackers are read by others. `--allow-secret` is for the job alone, so it lets nothing pass here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from distrain_nb.scratch import Scratch
from distrain_nb.secrets import Guard, redacted_source, secret_in_file
from distrain_nb.tracking.request import TrackingRequest
from distrain_nb.tracking.tracker import Sample, TrackedRun, Tracker
from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.files.status import State
from distrain_nb.worker.files.tracked import Tracked

NOT_KEPT = "distrain.not_kept"


class GuardedTracker:
    """A tracker that is sent no secrets."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def run(self, request: TrackingRequest, parent: str) -> tuple[TrackedRun, bool]:
        """See `Tracker.run`."""
        run, existed = self._tracker.run(_clean(request), parent)
        return GuardedRun(run, _guard(request)), existed

    def existing(self, request: TrackingRequest, tracked: Tracked) -> TrackedRun:
        """See `Tracker.existing`."""
        return GuardedRun(self._tracker.existing(_clean(request), tracked), _guard(request))

    def abandon(self, request: TrackingRequest) -> None:
        """See `Tracker.abandon`."""
        self._tracker.abandon(_clean(request))

    def status(self, error: Exception) -> int:
        """See `Tracker.status`."""
        return self._tracker.status(error)

    def out_of_reach(self, error: BaseException) -> bool:
        """See `Tracker.out_of_reach`."""
        return self._tracker.out_of_reach(error)


class GuardedRun:
    """A run on a tracker that is sent no secrets."""

    def __init__(self, run: TrackedRun, guard: Guard) -> None:
        self._run, self._guard = run, guard
        self._names: dict[str, str] = {}
        self.tracked = run.tracked

    def describe(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Send names and values with `***` in the place of secrets."""
        self._run.describe(self._guard.texts(parameters), self._guard.texts(tags))

    def add_parameters(self, parameters: Mapping[str, str]) -> None:
        """Send those of which it has none of that name yet, as `describe` does."""
        self._run.add_parameters(self._guard.texts(parameters))

    def log(self, samples: Iterable[Sample]) -> None:
        """Send samples; a metric's name may be made by the program."""
        self._run.log(_clean_samples(samples, self._names, self._guard))

    def missing(self, samples: Iterable[Sample]) -> Iterable[Sample]:
        """Yield those of the samples that the tracker lacks, by the names that it has."""
        return self._run.missing(_clean_samples(samples, self._names, self._guard))

    def keep(self, path: Path, below: str) -> None:
        """Send source files with `***` in the place of secrets, and other files if they hold
        none. A tag says which were not sent, and why."""
        if path.suffix == ".py":
            self._keep_source(path, below)
            return
        files = sorted(entry for entry in path.rglob("*") if entry.is_file()) or [path]
        withheld = {
            file: why for file in files if (why := secret_in_file(_below(file, path), file))
        }
        if not withheld:
            self._run.keep(path, below)
            return
        for file in files:
            if file not in withheld:
                self._run.keep(file, _folder_of(file, path, below))
        self._run.describe({}, {NOT_KEPT: "; ".join(withheld.values())})

    def end(self, state: State, time: float, bests: Mapping[str, float]) -> None:
        """See `TrackedRun.end`."""
        self._run.end(state, time, {self._guard.text(name): value for name, value in bests.items()})

    def drop_doubles(self, key: str) -> None:
        """See `TrackedRun.drop_doubles`."""
        self._run.drop_doubles(key)

    def _keep_source(self, path: Path, below: str) -> None:
        text = path.read_bytes().decode(errors="replace")
        shown = redacted_source(text)
        if shown == text:
            self._run.keep(path, below)
            return
        with Scratch("tracked") as folder:
            copy = folder / path.name
            copy.write_text(shown, encoding="utf-8", errors="replace", newline="")
            self._run.keep(copy, below)


def _guard(request: TrackingRequest) -> Guard:
    return Guard.of_run(Path(request.folder) / PROGRAM_FOLDER)


def _clean(request: TrackingRequest) -> TrackingRequest:
    guard = _guard(request)
    return replace(
        request,
        name=guard.text(request.name),
        experiment=guard.text(request.experiment),
        parameters=guard.texts(request.parameters),
        tags=guard.texts(request.tags),
    )


def _clean_samples(
    samples: Iterable[Sample], names: dict[str, str], guard: Guard
) -> Iterator[Sample]:
    """Yield samples under clean names; `names` keeps those that were cleaned before."""
    for sample in samples:
        if sample.metric not in names:
            names[sample.metric] = guard.text(sample.metric)
        yield sample._replace(metric=names[sample.metric])


def _below(file: Path, root: Path) -> str:
    return file.relative_to(root.parent).as_posix()


def _folder_of(file: Path, root: Path, below: str) -> str:
    parts = file.parent.relative_to(root).parts if file != root else ()
    return "/".join((below, *parts))
