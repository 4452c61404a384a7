"""What the processes that carry a run do and meet, in the run's folder: bounded, without secrets.

It has what is logged below `distrain_nb`, what libraries warn of, and what is printed.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from distrain_nb.backends.remote import variables
from distrain_nb.secrets import redacted
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import CARRIER_LOG, OLD_CARRIER_LOG

LOGGER = "distrain_nb"
MOST_BYTES = 512 << 10  # of each of the two files


def start(folder: Path) -> None:
    """Have this process, whose output goes to the log already, write there what it logs, and what
    ends it."""
    logging.getLogger().addHandler(_handler(folder, takes_output=True))
    _start()


@contextmanager
def in_thread(folder: Path) -> Iterator[None]:
    """Have what this thread logs in the log of that run, of several that this process carries."""
    handler, thread = _handler(folder, takes_output=False), threading.get_ident()
    handler.addFilter(lambda record: record.thread == thread)
    logging.getLogger().addHandler(handler)
    _start()
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _handler(folder: Path, *, takes_output: bool) -> _File:
    handler = _File(folder / CARRIER_LOG, maxBytes=MOST_BYTES, backupCount=1, encoding="utf-8",
                    errors="backslashreplace")  # fmt: skip
    handler.takes_output = takes_output
    handler.setFormatter(_Formatter(_secrets(folder)))
    return handler


def _start() -> None:
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    sys.excepthook = _ended_by
    threading.excepthook = lambda args: _ended_by(
        args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback
    )


def read(folder: Path) -> str:
    """Return the log of the run of that folder, as far back as it is kept; empty where there is
    none."""
    files = (folder / name for name in (OLD_CARRIER_LOG, CARRIER_LOG))
    return "".join(
        file.read_text(encoding="utf-8", errors="replace") for file in files if file.exists()
    )


class _File(RotatingFileHandler):
    """Takes along what the process prints when it begins the next file, if that goes there."""

    takes_output = True

    def doRollover(self) -> None:  # noqa: N802
        super().doRollover()
        if self.stream and self.takes_output:
            # These two are what `print`, libraries in C and tracebacks of threads write to. They
            # would go on in the file that was renamed.
            for descriptor in (1, 2):
                os.dup2(self.stream.fileno(), descriptor)


class _Formatter(logging.Formatter):
    """`TIME LEVEL PROCESS LOGGER: MESSAGE`, in UTC, and a traceback on lines of its own."""

    converter = staticmethod(time.gmtime)
    default_time_format, default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"

    def __init__(self, secrets: Collection[str]) -> None:
        super().__init__("%(message)s")
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        head = f"{self.formatTime(record)} {record.levelname} {record.process} {record.name}:"
        return f"{head} {redacted(super().format(record), self._secrets)}"


def _secrets(folder: Path) -> Collection[str]:
    """Return the values of `--env`, for as long as the run's folder has them."""
    try:
        return variables.stored_variables(folder).values()
    except (OSError, fields.Damaged):
        return ()


def _ended_by(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    logging.getLogger(LOGGER).critical("ended by an error", exc_info=(kind, error, where))
