"""Writing to disk so that a reader never sees half a file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)
RESERVE = "reserve-%d"


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path` in one step: readers see the old file or the new one."""
    draft = path.with_name("%s.%d.draft" % (path.name, os.getpid()))
    try:
        draft.write_bytes(data)
        os.replace(str(draft), str(path))
    except OSError:
        if draft.exists():
            draft.unlink()
        raise


def use_reserve(path: Path, data: bytes) -> None:
    """As `replace_file`; on a full disk, what was reserved in the folder makes room."""
    while True:
        try:
            return replace_file(path, data)
        except OSError as error:
            if error.errno not in FULL or not _give_up_one(path.parent):
                raise


def reserve(folder: Path, files: int, size: int) -> None:
    """Files of `size` bytes each that only take up room, as many as there is room for.

    Raises OSError where there is no room for one.
    """
    for number in range(files):
        path = folder / (RESERVE % number)
        try:
            path.write_bytes(bytes(size))
        except OSError:
            if path.exists():
                path.unlink()
            if number:
                return
            raise


def give_up_reserve(folder: Path) -> None:
    """The reserve is needed no more."""
    while _give_up_one(folder):
        pass


def _give_up_one(folder: Path) -> bool:
    for path in folder.glob(RESERVE.replace("%d", "*")):
        try:
            path.unlink()
        except FileNotFoundError:  # another process needed it too
            continue
        except OSError:
            return False
        return True
    return False
