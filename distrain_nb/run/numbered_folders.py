"""Folders that are named by their numbers: those of the runs, and those of the studies.

No other list of them is kept. One file of each folder is written last. A folder without it is just
being made, or its maker was killed.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from distrain_nb.config import WAY_OUT
from distrain_nb.errors import StoreError
from distrain_nb.worker.files.log import TROUBLES
from distrain_nb.worker.files.private_folder import private_folder

NEWEST_FILE = "newest"  # beside the folders: the highest number that was given
MADE_WITHIN_S = 60.0
REMOVE_ATTEMPTS = 10
REMOVE_AGAIN_S = 0.05


@dataclass(frozen=True)
class NumberedFolders:
    """The folders of one kind below `above`; `last_file` is the one that is written last."""

    above: Path
    noun: str
    last_file: str

    def numbers(self) -> list[int]:
        """Return the numbers of the folders, the highest first. Raises StoreError."""
        try:
            names = os.listdir(self.above)  # noqa: PTH208
        except FileNotFoundError:
            return []
        except OSError as error:
            reason = f"{self.above} can't be read: {error.strerror}"
            raise StoreError(f"{reason}; {WAY_OUT}") from None
        return sorted((int(name) for name in names if is_number(name)), reverse=True)

    def complete(self) -> Iterator[Path]:
        """Yield the folders that nobody is just making, the newest first."""
        for number in self.numbers():
            folder = self.folder(number)
            if not self.is_being_made(folder):
                yield folder

    def folder(self, number: int) -> Path:
        """Return the folder of that number, whether or not it is there."""
        return self.above / str(number)

    def is_being_made(self, folder: Path) -> bool:
        """Return whether somebody is just making that folder, or has just deleted it."""
        with suppress(FileNotFoundError):
            status = folder.lstat()
            age = abs(time.time() - status.st_mtime)  # the clock may have gone back
            is_young = stat.S_ISDIR(status.st_mode) and age < MADE_WITHIN_S
            return is_young and not os.path.lexists(folder / self.last_file)
        return True

    @contextmanager
    def new(self) -> Iterator[Path]:
        """Have the block fill a folder with a number that none has had. If the block raises, the
        folder is removed. Raises StoreError where the disk refuses."""
        try:
            folder = self._claim()
        except OSError as error:
            raise self._not_added(error) from None
        try:
            yield folder
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError) and error.errno in TROUBLES:
                raise self._not_added(error) from None
            raise

    def _claim(self) -> Path:
        """Make the next folder. To make a folder is what takes its number, so no lock is needed:
        of several processes one succeeds, also on file systems without locks."""
        private_folder(self.above)
        number = (self._newest() or self._highest()) + 1
        while True:
            try:
                self.folder(number).mkdir()
            except FileExistsError:  # another process has just taken it, or `newest` is out of date
                number = max(number, self._highest()) + 1
            else:
                self._keep_newest(number)
                return self.folder(number)

    def _highest(self) -> int:
        """Return the highest number that a folder has."""
        return max(self.numbers(), default=0)

    def _newest(self) -> int:
        """Return the highest number that was given, as far as that is known; else 0."""
        with suppress(OSError, ValueError):
            return int((self.above / NEWEST_FILE).read_text(encoding="ascii"))
        return 0

    def _keep_newest(self, number: int) -> None:
        """Keep the number from being given again once its folder is deleted. It need not reach the
        disk: after a power cut the folders say it."""
        draft = self.above / f"{NEWEST_FILE}.{os.getpid()}.{number}.draft"
        try:
            draft.write_text(str(max(number, self._newest())), encoding="ascii")
            draft.replace(self.above / NEWEST_FILE)
        except OSError:  # on a full disk, where what follows fails too
            draft.unlink(missing_ok=True)

    def _not_added(self, error: OSError) -> StoreError:
        reason = f"{error.filename or self.above}: {error.strerror}" if error.strerror else error
        return StoreError(f"no {self.noun} can be added: {reason}; {WAY_OUT}")


def is_number(name: str) -> bool:
    """Return whether a name is a number as folders have it: nothing that could be part of a
    path."""
    return re.fullmatch(r"[1-9][0-9]{0,17}", name) is not None


def remove(folder: Path) -> None:
    """Remove a folder, or what stands in its place. Raises StoreError naming what can't be
    removed."""
    for attempt in range(REMOVE_ATTEMPTS, 0, -1):
        try:
            if folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder)
            else:
                folder.unlink(missing_ok=True)
        except (OSError, RecursionError) as error:
            # Somebody else removes it too, or writes a last file into it.
            changed = isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.ENOTEMPTY)
            if not changed or attempt == 1:
                raise StoreError(f"{folder} can't be removed: {error}; remove it by hand") from None
            time.sleep(REMOVE_AGAIN_S)
        else:
            return
