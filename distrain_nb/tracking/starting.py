"""The process that mirrors runs: started where none is there, and asked for the run that rank 0
goes on with."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.processes import start_detached
from distrain_nb.config import Config, home
from distrain_nb.errors import DistrainError
from distrain_nb.tracking.address import address, bare, without_password
from distrain_nb.tracking.kinds import MLFLOW, kind_of, kinds
from distrain_nb.tracking.request import TrackingRequest, key_of
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.status import Owner
from distrain_nb.worker.machine.environment import variables

if TYPE_CHECKING:
    from distrain_nb.tracking.kinds import Kind

PROCESS = "distrain_nb.tracking"
PROCESS_LOG = "tracking.log"  # text: what the process prints
OWNER_FILE = "owner"  # `status.Owner` of the process
ANSWER_WITHIN_S = 15.0
LOOK_EVERY_S = 0.02
START_AGAIN_AFTER_S = 10.0

# By this process, which is to reap them: for each list the last one, and when it was started.
_started: dict[Path, tuple[subprocess.Popen[bytes], float]] = {}


def begin(request: TrackingRequest, *, waits: bool) -> str:
    """Have a run mirrored from now on, which `request` names, if a tracker is set.

    With `waits` it returns when the tracker has a run for it, or is known to be out of reach, so
    that rank 0 can go on with that run. Gives what to tell whoever started it; empty if nothing.
    A tracker costs no run: whatever is wrong with it is told so.
    """
    uri, _ = bare(request.uri)
    if not uri:
        return ""
    kind = kind_of(uri)
    lacking = missing_package(kind, uri)
    if lacking:
        return lacking
    stored = replace(request, uri=uri, key=key_of(request.path, request.created))
    try:
        stored.write()
        _see_to_it(kind)
        return _answer(stored) if waits else ""
    except (OSError, DistrainError, fields.Damaged) as error:
        return f"{_nothing(kind, uri)}: {error}"


def missing_package(kind: Kind, uri: str) -> str:
    """Say what to install for a tracker at an address; empty if it is installed."""
    lacking = f"{_nothing(kind, uri)}: pip install 'distrain-nb[{kind.extra}]'"
    return "" if kind.installed else lacking


def _nothing(kind: Kind, uri: str) -> str:
    return without_password(f"not mirrored to {kind.title} at {uri}", uri)


def catch_up() -> None:
    """Start a process again that was killed before all was done. Never raises."""
    for kind in kinds().values():
        with suppress(OSError, DistrainError):
            folder = home() / kind.folder
            if folder.is_dir() and any(folder.glob("*.json")):
                _see_to_it(kind)


def owner(kind: Kind = MLFLOW) -> Owner | None:
    """Return the process that mirrors runs to a kind of tracker now; None if there is none."""
    try:
        process = fields.read(Owner, home() / kind.folder / OWNER_FILE)
    except (OSError, fields.Damaged):
        return None
    return process if process.alive else None


def _see_to_it(kind: Kind) -> None:
    folder = home() / kind.folder
    last, since = _started.get(folder, (None, 0.0))
    alive = last is not None and last.poll() is None
    if owner(kind) is not None or (alive and time.monotonic() < since + START_AGAIN_AFTER_S):
        return
    _, login = bare(address(Config.load(), os.environ))
    env = {**variables(), **login, "DISTRAIN_HOME": str(home())}
    arguments = ["-m", PROCESS, kind.folder]
    process = start_detached(arguments, folder / PROCESS_LOG, cwd="/", env=env)
    _started[folder] = process, time.monotonic()


def _answer(request: TrackingRequest) -> str:
    """Wait for the tracker's run; what keeps it from being there, empty if it is."""
    end = time.monotonic() + ANSWER_WITHIN_S
    while time.monotonic() < end:
        tracked = request.tracked
        if tracked is not None and (tracked.run or tracked.note):
            return "" if tracked.run else tracked.note
        _see_to_it(request.kind)
        time.sleep(LOOK_EVERY_S)
    late = f"has not answered within {ANSWER_WITHIN_S:g} s"
    return f"{request.kind.title} {late}: the run is mirrored once it does"
