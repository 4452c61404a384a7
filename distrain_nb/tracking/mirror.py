"""Mirroring one run, or one study: what its folder has goes to its run on the tracker.

Nothing is kept but the identifier of that run. A mirror that takes over from another asks the
tracker what it has, so that each point is there once, whoever was killed when.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.run.annotation import Annotation
from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.run.pages.best_metric import final_metric_values
from distrain_nb.run.pages.media import agreed_hyperparameters
from distrain_nb.tracking.request import TrackingRequest
from distrain_nb.tracking.tracker import NotYet, Sample, TrackedRun, Tracker
from distrain_nb.worker.files.folder import EVENTS_FOLDER, PROGRAM_FOLDER, RESULTS_FOLDER
from distrain_nb.worker.files.status import Status
from distrain_nb.worker.files.tracked import Tracked

if TYPE_CHECKING:
    from distrain_nb.run.metrics.events import Key
    from distrain_nb.run.metrics.records import Points

NONE = "(none)"  # a tracker may keep no empty text
LARGEST_RESULTS = 256 << 20

_log = logging.getLogger(__name__)


class Mirror:
    """One run, from now on. What `turn` raises says that another mirror had better take over."""

    def __init__(self, tracker: Tracker, request: TrackingRequest) -> None:
        self._tracker = tracker
        self._request = request
        self._folder = request.path
        self._events = EventFolder(self._folder / EVENTS_FOLDER)
        self._takes_over = False
        self._described = False
        self._annotation = Annotation()  # as the tracker has it
        self._run = self._begin()

    def _begin(self) -> TrackedRun:
        before = self._request.tracked
        if before is not None and before.run:
            run, self._takes_over = self._tracker.existing(self._request, before), True
        else:
            run, self._takes_over = self._tracker.run(self._request, self._parent())
        replace(run.tracked, note="").write(self._folder)
        return run

    def _parent(self) -> str:
        """Return the run of its study; empty for one that has none."""
        if not (self._request.parent and self._request.kind.nests):
            return ""
        tracked = Tracked.read(Path(self._request.parent))
        if tracked is None or not tracked.run:
            raise NotYet(tracked.note if tracked else "")
        return tracked.run

    def turn(self) -> bool:
        """Send what is new; whether all is there, as the run has ended."""
        try:
            status = self._request.status
        except FileNotFoundError:  # on the list of runs, and about to be started
            return False
        if not self._described:
            self._run.describe(self._request.parameters, self._request.tags)
            self._keep_code()
            self._described = True
        self._annotate()
        self._send()
        if status.state.final:
            self._end(status)
        return status.state.final

    def _annotate(self) -> None:
        """Send note and tags, where they are others than before."""
        annotation = Annotation.read(self._folder)
        if annotation == self._annotation:
            return
        names = self._request.kind.note_tag, "distrain.tags"
        texts = annotation.note or NONE, annotation.tag_text or NONE
        before = self._annotation.note, self._annotation.tag_text
        news = zip(names, texts, before, strict=True)
        self._run.describe({}, {name: text for name, text, old in news if text != (old or NONE)})
        self._annotation = annotation

    def _send(self) -> None:
        """Send new samples; where this process takes over, first those that the tracker lacks."""
        samples = self._samples(self._events.read())
        self._run.log(self._run.missing(samples) if self._takes_over else samples)
        self._takes_over = False

    def _samples(self, news: dict[Key, Points]) -> Iterator[Sample]:
        for key, points in news.items():
            name = f"{key.series}/{key.tag}" if key.series else key.tag
            for step, time, value in points.tolist():
                yield Sample(name, step, round(time * 1000), value)

    def _keep_code(self) -> None:
        program = self._folder / PROGRAM_FOLDER
        for path in sorted(program.rglob("*.py")):
            self._keep(path, "/".join(("program", *path.parent.relative_to(program).parts)))

    def _end(self, status: Status) -> None:
        """End the run in the tracker, after its results: a run of MLflow that has ended is
        complete."""
        results = self._folder / RESULTS_FOLDER
        paths = [path for path in results.rglob("*") if path.is_file()] if results.is_dir() else []
        size = sum(path.stat().st_size for path in paths)
        tags = {"distrain.state": str(status.state), "distrain.error": status.error}
        if size > LARGEST_RESULTS:
            tags["distrain.results"] = f"not here: {size} bytes, in {results}"
        elif paths:
            self._keep(results, "results")
        written = agreed_hyperparameters(self._events.non_scalars)
        self._run.add_parameters({name: str(value) for name, value in written.items()})
        self._run.describe({}, tags)
        ended = status.times.get(str(status.state), self._request.created)
        self._run.end(status.state, ended, final_metric_values(self._folder).bests or {})
        self._run.drop_doubles(self._request.key)
        replace(self._run.tracked, note="", done=True).write(self._folder)

    def _keep(self, path: Path, below: str) -> None:
        """Store a file in the tracker. If that fails, log and note why: its store may need another
        package."""
        try:
            self._run.keep(path, below)
        except Exception as error:
            if self._tracker.out_of_reach(error):
                raise
            _log.warning("%s can't be kept by the tracker: %s", path, error)
            message = f"{path.name}: {type(error).__name__}: {error}"
            self._run.describe({}, {"distrain.not_kept": message})
