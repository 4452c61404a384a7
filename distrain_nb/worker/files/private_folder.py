"""Folders that only their user may enter."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_OTHERS = 0o077


class NotPrivate(OSError):
    """A folder belongs to another user, or can't be closed to others."""


def private_folder(folder: Path) -> Path:
    """Return the folder, made if it isn't there, which only this user can enter, from the first
    moment.

    Raises NotPrivate as `close_to_others` does, and OSError where it can't be made.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return private_folder(folder)
    close_to_others(folder)
    return folder


def close_to_others(folder: Path) -> None:
    """Let nobody but this user into a folder.

    Raises NotPrivate for one of somebody else's, for a link or a file, and where its file system
    keeps it open; FileNotFoundError.
    """
    status = folder.lstat()
    if status.st_uid != os.geteuid():
        raise NotPrivate(f"{folder} belongs to another user (uid {status.st_uid})")
    if not stat.S_ISDIR(status.st_mode):
        raise NotPrivate(f"{folder} is not a folder")
    if not status.st_mode & _OTHERS:
        return
    try:
        folder.chmod(0o700)
    except OSError as error:
        if error.errno == errno.EROFS:  # where nobody can change anything
            return
        raise
    if folder.lstat().st_mode & _OTHERS:
        raise NotPrivate(f"{folder} is open to others, and its file system keeps it so")
