"""Rows of a list that is read again and again, such as runs or studies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from distrain_nb.worker.files.folder import ANNOTATION_FILE, STATUS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Set
    from pathlib import Path

_Version = tuple[int, ...] | None


class HasFolder(Protocol):
    """A run or a study: its folder has its state."""

    @property
    def folder(self) -> Path: ...


class HasEnd(Protocol):
    """A row of a list. A final row changes only with the files of its folder."""

    @property
    def final(self) -> bool: ...


Listed = TypeVar("Listed", bound=HasFolder)
Row = TypeVar("Row", bound=HasEnd)


class Rows(ABC, Generic[Listed, Row]):
    """Reads rows again and again, and keeps final rows.

    A final row is read again only when the files of its folder change: a run may be fetched again,
    or get a note. A row whose folder is deleted is forgotten. Threads may share one object.
    """

    def __init__(self) -> None:
        self._ended: dict[Path, tuple[_Version, Row]] = {}
        # The threads of a server answer several pages at once, and readers of event files keep
        # their positions.
        self._reading = Lock()

    def read(self, listed: Iterable[Listed]) -> tuple[Row, ...]:
        """Return the present rows, in the order of *listed*."""
        listed = tuple(listed)
        with self._reading:
            rows = tuple(map(self._now, listed))
            self.forget_deleted({entry.folder for entry in listed})
            return rows

    def forget_deleted(self, listed: Set[Path]) -> None:
        """Forget what is kept of folders that are neither *listed* nor on the disk."""
        for folder in self._ended.keys() - listed:
            if not folder.exists():
                del self._ended[folder]

    def _now(self, listed: Listed) -> Row:
        try:
            version = _version(listed.folder)
            before, row = self._ended.get(listed.folder, (None, None))
            if row is None or before != version:
                row = self.row(listed)
            if row.final:
                self._ended[listed.folder] = version, row
            return row
        except Exception as error:  # the other rows are shown all the same
            return self.unreadable(listed, error)

    @abstractmethod
    def row(self, listed: Listed) -> Row:
        """Read the row of one run or study."""

    @abstractmethod
    def unreadable(self, listed: Listed, error: Exception) -> Row:
        """Return the row of a run or study that can't be read."""


def _version(folder: Path) -> _Version:
    """Return a value that changes with the state and the note in a folder.

    Each change replaces the file, so its inode changes even within the clock's resolution.
    """
    try:
        status = (folder / STATUS_FILE).stat()
    except OSError:  # the reader of the row says what is wrong
        return None
    version = status.st_ino, status.st_mtime_ns
    with suppress(OSError):
        annotation = (folder / ANNOTATION_FILE).stat()
        return *version, annotation.st_ino, annotation.st_mtime_ns
    return version
