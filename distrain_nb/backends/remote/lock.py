"""One process carries a run."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.folder import LOCK_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

# What a file system says that has no locks; some network file systems have none.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class NoLock(DistrainError):
    """Nothing here keeps two processes from carrying the same run."""


@contextmanager
def alone(folder: Path, name: str = LOCK_FILE) -> Iterator[bool]:
    """Whether no other process carries the run of that folder, for as long as this one does.

    Another `name` is a lock of its own, for something else that one process may do at a time.

    Where the folder's file system has no locks, this machine's own temporary folder has to do.
    Raises NoLock if that has none either.
    """
    for place in _places(folder, name):
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
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


def _places(folder: Path, name: str) -> Iterator[Path]:
    yield folder / name
    yield _elsewhere(folder if name == LOCK_FILE else folder / name)


def _take(descriptor: int) -> bool | None:
    """Return whether it could be locked; None where there are no locks."""
    try:
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
    own = Path(tempfile.gettempdir()) / f"distrain-locks-{os.getuid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    if own.is_symlink() or own.stat().st_uid != os.getuid():
        raise NoLock(f"{own} is somebody else's: set TMPDIR to a folder of your own")
    return own / hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
