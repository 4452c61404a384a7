"""The process that mirrors runs: one for all of a user's, for as long as there are some.

The one door to trackers: what passes it has no secrets.

Trackers are read by others. `--allow-secret` is for the job alone, so it lets nothing pass here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from distrain_nb.scratch import Scratch
from distrain_nb.secrets import (
    Guard,
    redacted_source,
    secret_in_file,
)
from distrain_nb.tracking.kinds import MLFLOW, Kind
from distrain_nb.tracking.mirror import Mirror
from distrain_nb.tracking.request import TrackingRequest, pending, without_password
from distrain_nb.tracking.tracker import NotYet, Sample, TooLate, TrackedRun, Tracker
from distrain_nb.worker.files import fields
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


TURN_S = 0.05
LOOK_EVERY_S = 1.0  # at a run
AGAIN_AFTER_S = 5.0  # what a tracker had no answer for
LINGER_S = 10.0  # for the next run, which then begins at once
GIVE_UP_S = 120.0  # on a tracker that is down, when nothing goes on: whoever looks at runs, tries
TRIES = 20  # of what it refuses of a run that has ended

_log = logging.getLogger(__name__)


class TrackingProcess:
    """Whatever is on the list of what trackers of a kind are to have."""

    def __init__(self, kind: Kind = MLFLOW) -> None:
        self._kind = kind
        self._pending: dict[str, TrackingRequest] = {}
        self._trackers: dict[str, Tracker] = {}
        self._mirrors: dict[str, Mirror] = {}
        self._at: dict[str, float] = {}
        self._down: dict[str, tuple[float, str]] = {}  # until when, and why
        self._refused: dict[str, int] = {}
        self._useful_at = time.monotonic()

    def run(self) -> bool:
        """Mirror until there is nothing to do, or nothing that can be done; return whether all is
        done."""
        while True:
            self._pending = pending(self._kind, self._pending)
            for request in self._pending.values():
                if time.monotonic() >= self._at.get(request.key, 0.0):
                    self._at[request.key] = time.monotonic() + LOOK_EVERY_S
                    if request.goes_on:
                        self._useful_at = time.monotonic()
                    self._mirror(request)
            idle = time.monotonic() - self._useful_at
            if idle > (GIVE_UP_S if self._pending else LINGER_S):
                return not self._pending
            time.sleep(TURN_S)

    def _mirror(self, request: TrackingRequest) -> None:
        until, why = self._down.get(request.uri, (0.0, ""))
        if time.monotonic() < until:
            self._note(request, why)
            return
        try:
            self._do(request)
        except NotYet as missing:
            self._at[request.key] = time.monotonic() + TURN_S
            if str(missing):
                self._note(request, str(missing))
        except TooLate as over:
            self._note(request, str(over))
            self._forget(request)
        except Exception as error:
            self._failed(request, error)
        else:
            self._down.pop(request.uri, None)

    def _do(self, request: TrackingRequest) -> None:
        """Raise what the tracker's client does."""
        if not request.path.is_dir():
            self._tracker(request.uri).abandon(request)
            self._forget(request)
            return
        if request.key not in self._mirrors:
            self._mirrors[request.key] = Mirror(self._tracker(request.uri), request)
            self._useful_at = time.monotonic()
            self._at[request.key] = 0.0
            return  # somebody may be waiting for the run: others may be so too
        if self._mirrors[request.key].turn():
            self._forget(request)

    def _forget(self, request: TrackingRequest) -> None:
        request.strike()
        self._mirrors.pop(request.key, None)
        self._useful_at = time.monotonic()

    def _tracker(self, uri: str) -> Tracker:
        if uri not in self._trackers:
            self._trackers[uri] = GuardedTracker(self._kind.tracker(uri))
        return self._trackers[uri]

    def _failed(self, request: TrackingRequest, error: Exception) -> None:
        """Note why a run is not up to date. Its next mirror first asks the tracker what it has."""
        _log.warning("%s: %s: %s", request.folder, type(error).__name__, error, exc_info=True)
        self._mirrors.pop(request.key, None)
        message = f"{type(error).__name__}: {error}".partition("\n")[0]
        why = f"{self._kind.title} at {request.uri} is not up to date: {message:.300}"
        why = without_password(why, request.uri)
        self._note(request, why)
        tracker = self._trackers.get(request.uri)
        status = tracker.status(error) if tracker else 0
        if (tracker and tracker.out_of_reach(error)) or status in (401, 403):
            self._down[request.uri] = time.monotonic() + AGAIN_AFTER_S, why
            of_it = [key for key, waiting in self._pending.items() if waiting.uri == request.uri]
            for key in of_it:
                self._mirrors.pop(key, None)
            return
        self._at[request.key] = time.monotonic() + AGAIN_AFTER_S
        if 400 <= status < 500 and status not in (408, 429):
            self._refused[request.key] = self._refused.get(request.key, 0) + 1
            if self._refused[request.key] >= TRIES and _has_ended(request):
                self._forget(request)

    def _note(self, request: TrackingRequest, why: str) -> None:
        try:
            before = request.tracked or Tracked(request.uri)
            if before.note != why:
                replace(before, note=why).write(request.path)
        except (OSError, ValueError):
            return  # deleted, or on a full disk


def _has_ended(request: TrackingRequest) -> bool:
    """Tell whether nothing more can come of it: it was deleted, say, or can't be read."""
    try:
        return not request.path.is_dir() or request.has_ended
    except (OSError, fields.Damaged):
        return True
