"""Folders for what a process needs only while it lives. A killed process can't remove its own, so
the next one that makes such a folder in the same place does."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType

PREFIX = "distrain-tmp-"
_OPENING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Scratch:
    """An empty folder, by default below the system's temporary folder, which `close` removes.

    Its process holds a shared lock on it, which the kernel gives back when the process dies,
    however it dies. Whoever gets an exclusive lock on such a folder may therefore remove it.
    """

    def __init__(self, purpose: str, within: Path | None = None) -> None:
        place = Path(tempfile.gettempdir()) if within is None else within
        _sweep_once(place)
        self.path, self._lock = _locked(purpose, place)

    def close(self) -> None:
        """Remove the folder, unless it has been renamed."""
        lock, self._lock = self._lock, None
        if lock is not None:
            _remove(self.path)
            os.close(lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _locked(purpose: str, place: Path) -> tuple[Path, int | None]:
    """Return a new folder with the descriptor that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-", dir=place))
        try:
            descriptor = os.open(path, _OPENING)
        except FileNotFoundError:  # swept before it was locked
            continue
        # Where the file system has no locks nobody gets an exclusive one either: nothing is swept.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)  # waits for whoever is just sweeping it
        if path.exists():
            return path, descriptor
        os.close(descriptor)


@cache
def _sweep_once(place: Path) -> None:
    sweep(place)


def sweep(place: Path) -> None:
    """Remove the folders in `place` that killed processes of this user have left."""
    with suppress(OSError):
        for path in place.glob(f"{PREFIX}*"):
            _remove_unowned(path)


def _remove_unowned(path: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(path, _OPENING)
        try:
            if os.fstat(descriptor).st_uid == os.getuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if its owner lives
                _remove(path)
        finally:
            os.close(descriptor)


def _remove(folder: Path) -> None:
    """Remove a folder, also where folders of an unpacked image refuse to be written."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for parent, names, _ in os.walk(folder):
            for name in names:
                inner = Path(parent, name)
                if not inner.is_symlink():
                    inner.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
