"""What the processes that carry a run do and meet, in the run's folder: bounded, without secrets.

It has what is logged below `distrain_nb`, what libraries warn of, and what is printed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from distrain_nb.backends.remote import variables
from distrain_nb.errors import DistrainError
from distrain_nb.secrets import redacted
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import CARRIER_LOG, LINKS_FILE, LOCK_FILE, OLD_CARRIER_LOG

# What a file system says that has no locks; some network file systems have none.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


# One that is about to end may hold a lock a moment longer.
_TRIES, _TURN_S = 50, 0.1


class NoLock(DistrainError):
    """This folder has no locks, so two processes could carry the same run."""


@contextmanager
def carrier_lock(folder: Path, name: str = LOCK_FILE) -> Iterator[bool]:
    """Whether no other process carries the run of that folder, for as long as this one does.

    Another `name` is a lock of its own, for something else that one process may do at a time.

    Where the folder's file system has no locks, this machine's own temporary folder has to do.
    Raises NoLock if that has none either.
    """
    for path in _places(folder, name):
        # No link is followed, as the temporary folder is everybody's. No program that
        # is started gets the descriptor, as it would keep the lock after its parent's death.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            taken = _take(descriptor)
            if taken is not None:
                yield taken
                return
        finally:
            os.close(descriptor)
    raise NoLock(
        f"neither the file system of {folder} nor that of {tempfile.gettempdir()} has locks: "
        "set DISTRAIN_HOME or TMPDIR to a folder on a local disk"
    )


def run_as_owner(folder: Path, work: Callable[[], None]) -> None:
    """Do the work of a folder under its lock; return at once if another process does it."""
    for _ in range(_TRIES):
        with carrier_lock(folder) as mine:
            if mine:
                work()
                return
        time.sleep(_TURN_S)


def _places(folder: Path, name: str) -> Iterator[Path]:
    yield folder / name
    yield _elsewhere(folder if name == LOCK_FILE else folder / name)


def _take(descriptor: int) -> bool | None:
    """Return whether it could be locked; None where there are no locks."""
    try:
        # The kernel takes a lock of flock back when its process ends, in whatever way. A file with
        # a process id would outlive a SIGKILL.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return None
    return True


def _elsewhere(folder: Path) -> Path:
    """Return a file for the run in a folder of this machine that is the user's own."""
    locks = Path(tempfile.gettempdir()) / f"distrain-locks-{os.getuid()}"
    locks.mkdir(mode=0o700, exist_ok=True)
    if locks.is_symlink() or locks.stat().st_uid != os.getuid():
        raise NoLock(f"{locks} is somebody else's: set TMPDIR to a folder of your own")
    return locks / hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()


def write_links(links: Mapping[str, str], folder: Path) -> None:
    """Links by what they are called."""
    replace_file(folder / LINKS_FILE, json.dumps(dict(links)).encode())


def read_links(folder: Path) -> dict[str, str]:
    """Return the links that `write_links` wrote; none before it has. Raises `fields.Damaged`."""
    try:
        return fields.load_texts(folder / LINKS_FILE)
    except FileNotFoundError:
        return {}


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
