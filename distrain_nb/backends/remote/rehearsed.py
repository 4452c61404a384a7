"""A stand-in for a service on this machine, for as long as something is carried to it."""

from __future__ import annotations

import logging
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from distrain_nb.backends.plugins import rehearsal_of
from distrain_nb.backends.remote.carried import CarriedRun
from distrain_nb.backends.remote.carrier import give_up
from distrain_nb.backends.remote.rehearsal_services import publish_services
from distrain_nb.backends.remote.rehearsal_step import RehearsalStep
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.program.progress import report, report_to
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.files.folder import PROGRAM_FOLDER, VERTEX_FILE, VERTEX_REQUEST_FILE
from distrain_nb.worker.files.tracked import Tracked

_log = logging.getLogger("distrain_nb.backends.remote")
TRACKED_WITHIN_S, LOOK_EVERY_S = 300.0, 0.1
_BUCKET = re.compile(r"(?:gs|s3)://([^/]+)")
_IN_CODE = re.compile(r"\bs3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])\b")


def rehearse(
    folder: Path, submission: Submission, carry: Callable[[Mapping[str, str], RehearsalStep], None]
) -> None:
    """Start the services that the submission of a folder is for, carry it to their addresses, stop
    them. Where they don't start, the folder says why."""
    # By default these end the process at once, and the services would go on.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    doing = RehearsalStep(folder)
    with ExitStack() as stack:
        stack.enter_context(report_to(doing.hear))
        report("loading the rehearsal")
        try:
            stand_in = rehearsal_of(submission.backend)
            named = _buckets(submission.spec) | _in_code(folder / PROGRAM_FOLDER)
            services = stand_in(submission.rehearse or "", named)
            endpoints = stack.enter_context(services)
        except Exception as error:
            give_up(CarriedRun(folder), error, ends_with_us=True)
            return
        _log.info("the services of the rehearsal: %s", endpoints)
        stack.enter_context(publish_services(folder, endpoints))
        doing.hand_over()
        carry(endpoints, doing)
        wait_for_tracker([folder])


def wait_for_tracker(folders: Iterable[Path]) -> None:
    """Wait until the rehearsed experiments have all of these runs."""
    end = time.monotonic() + TRACKED_WITHIN_S
    while any(map(_is_awaited, folders)) and time.monotonic() < end:
        time.sleep(LOOK_EVERY_S)


def _is_awaited(folder: Path) -> bool:
    """Return whether experiments are to have its run, and have not all of it yet."""
    if not (folder / VERTEX_REQUEST_FILE).exists():
        return False
    tracked = Tracked.read(folder, VERTEX_FILE)
    return tracked is None or not tracked.done


def _buckets(request: JsonObject) -> set[str]:
    """Return the buckets that a submission names."""
    named = {str(request["bucket"])} if request.get("bucket") else set()
    names = (match[1] for text in _texts(request) for match in _BUCKET.finditer(text))
    return {name.rpartition("://")[2].strip("/") for name in named} | set(names)


def _in_code(program: Path) -> set[str]:
    """Return the buckets of S3 that a program's own text names, which it reads and writes itself.
    Those of Cloud Storage are mounted, named or not."""
    texts = (path.read_text("utf-8", "replace") for path in program.glob("*.py"))
    return {match[1] for text in texts for match in _IN_CODE.finditer(text)}


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _end(number: int, _: FrameType | None) -> None:
    _log.warning("ended by %s", signal.Signals(number).name)
    sys.exit(128 + number)
