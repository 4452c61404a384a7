"""Writing to disk so that a reader never sees half a file; which files a folder has."""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import FrozenSet, Iterator, List, Optional, Tuple

FULL = (errno.ENOSPC, errno.EDQUOT)
# What some file systems say of a folder: that it can't be synced.
_NOT_SYNCED = (errno.EINVAL, errno.EBADF, errno.EACCES, errno.ENOTSUP)
_waits_for_disk: ContextVar[bool] = ContextVar("waits_for_disk", default=True)


def files_below(root: Path, passed_over: Optional[List[str]] = None) -> Iterator[Tuple[str, Path]]:
    """Yield every file by its name from `root`, with `/` between folders, in no order.

    `passed_over` gets the names of what is neither a file nor a folder: links that lead nowhere,
    pipes, sockets and devices.

    Links are followed, each to all that it leads to, be it elsewhere in `root` too; only one to a
    folder that it is itself in leads nowhere. Raises OSError for a folder that can't be read.
    """
    waiting: List[Tuple[str, Path, FrozenSet[Tuple[int, int]]]] = [("", root, frozenset())]
    while waiting:
        above, folder, ancestors = waiting.pop()
        stat = folder.stat()
        if (itself := (stat.st_dev, stat.st_ino)) in ancestors:
            continue
        with os.scandir(str(folder)) as entries:
            for entry in entries:
                name, path = above + entry.name, Path(entry.path)
                if path.is_dir():
                    waiting.append((f"{name}/", path, ancestors | {itself}))
                elif path.is_file():
                    yield name, path
                elif passed_over is not None:
                    passed_over.append(name)


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path` in one step: readers see the old file or the new one, and so does
    whoever reads after a power cut."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        draft.write_bytes(data)
        replace(draft, path)
    except OSError:
        if draft.exists():
            draft.unlink()
        raise


@contextmanager
def without_waiting() -> Iterator[None]:
    """Don't wait for the disk in the block: a cell of a session would begin 0.1 s later. After a
    power cut its ranks are gone, and `sync_folder` has made safe the runs that have ended."""
    token = _waits_for_disk.set(False)
    try:
        yield
    finally:
        _waits_for_disk.reset(token)


def sync_folder(folder: Path) -> None:
    """Have the files of a folder on disk before this returns, as far as they are still there."""
    for path in (*folder.iterdir(), folder):
        if path.is_file() or path == folder:
            with suppress(FileNotFoundError):
                _sync(path)


def replace(draft: Path, path: Path) -> None:
    """Put a file, or a folder of files, in the place of `path`, on disk before this returns."""
    if draft.is_dir():
        for inner in draft.iterdir():
            _sync(inner)
    # The data before the name: else the disk may have the new name first, and of what it names
    # nothing after a power cut.
    _sync(draft)
    os.replace(str(draft), str(path))
    _sync(path.parent)


def _sync(path: Path) -> None:
    if not _waits_for_disk.get():
        return
    descriptor = os.open(str(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not (error.errno in _NOT_SYNCED and path.is_dir()):
            raise
    finally:
        os.close(descriptor)


class DeletableFolder:
    """A folder that somebody may delete, though others go on writing there and make one anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor = os.open(str(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._has_links = os.fstat(self._descriptor).st_nlink > 0  # not every file system counts
        self._there_at = time.monotonic()

    @property
    def is_there(self) -> bool:
        """Whether it is where it was, as far as can be told."""
        try:
            os.stat(str(self._folder))
            return not self._has_links or os.fstat(self._descriptor).st_nlink > 0
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def away(self) -> float:
        """Return for how many seconds looks have not seen it."""
        now = time.monotonic()
        if self.is_there:
            self._there_at = now
        return now - self._there_at


def readable_size(size: int) -> str:
    """Return a size in bytes for people: `12 B`, `3.4 KiB`, `64 MiB`."""
    if size < 1024:
        return f"{size} B"
    amount, unit = size / 1024, "KiB"
    for larger in ("MiB", "GiB"):
        if amount >= 1024:
            amount, unit = amount / 1024, larger
    return f"{amount:.4g} {unit}"
