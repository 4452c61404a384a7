"""The process that mirrors runs: one for all of a user's, for as long as there are some."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from distrain_nb.tracking.address import without_password
from distrain_nb.tracking.guarded import GuardedTracker
from distrain_nb.tracking.kinds import MLFLOW, Kind
from distrain_nb.tracking.mirror import Mirror
from distrain_nb.tracking.request import TrackingRequest, pending
from distrain_nb.tracking.tracker import NotYet, TooLate, Tracker
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.tracked import Tracked

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
