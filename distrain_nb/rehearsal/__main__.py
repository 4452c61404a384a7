"""Rehearses the submission in a run's folder: `python -m distrain_nb.rehearsal FOLDER`."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote.carrier import carry
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.rehearsal import sagemaker, vertex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

_STAND_INS = {"sagemaker": sagemaker, "vertex": vertex}
_BUCKET = re.compile(r"(?:gs|s3)://([^/]+)")


def main(folder: Path) -> None:
    """Start the services that the submission is for, carry its run, stop them."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    submission = Submission.read(folder)
    stand_in = _STAND_INS[submission.backend]
    with stand_in(submission.rehearse or "", _buckets(submission.told)) as endpoints:
        carry(folder, endpoints)


def _buckets(request: Mapping[str, Any]) -> set[str]:
    """The buckets that a submission names."""
    named = {request["bucket"]} if request.get("bucket") else set()
    found = (match[1] for text in _texts(request) for match in _BUCKET.finditer(text))
    return {name.rpartition("://")[2].strip("/") for name in named} | set(found)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
