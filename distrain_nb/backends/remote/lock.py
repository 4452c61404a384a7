"""The lock of a run's folder: one process carries a run."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.folder import LOCK_FILE

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
