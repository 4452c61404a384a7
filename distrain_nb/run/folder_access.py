"""Errors of a run or a study whose files can't be read, or whose folder can't be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distrain_nb.errors import OptionError, RunUnreadable, StoreError
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import FULL
from distrain_nb.worker.files.folder import RECORD_FILE, SCHEMA

# Errors of a reader for a damaged file.
_DAMAGE = (
    OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OptionError,
)  # fmt: skip


@contextmanager
def readable(title: str, folder: Path, way_out: str) -> Iterator[None]:
    """Raise RunUnreadable for errors of the block that come from damaged files of a folder.

    `way_out` is the command that deletes the run or study of the folder.
    """
    try:
        yield
    except _DAMAGE as error:
        why = _why(folder, error)
        raise RunUnreadable(f"{title} can't be read: {why}; `{way_out}`") from error


def _why(folder: Path, error: Exception) -> str:
    if not folder.exists():
        return f"its folder {folder} is gone"
    schema = _schema(folder)
    if schema > SCHEMA:
        return (
            f"a later version of distrain-nb has written {folder} "
            f"(schema {schema}; this one reads {SCHEMA})"
        )
    if isinstance(error, OSError | OptionError | fields.Damaged):
        return str(error)
    return f"{folder} is damaged ({type(error).__name__}: {error})"


def _schema(folder: Path) -> int:
    """Return the number of the rules by which the folder was written."""
    with suppress(OSError, fields.Damaged):
        number = fields.load(folder / RECORD_FILE).get("schema")
        return number if isinstance(number, int) else SCHEMA
    return SCHEMA


@contextmanager
def writable(title: str, folder: Path, then: str = "can't be changed") -> Iterator[None]:
    """Raise StoreError where the block can't write into that folder, RunUnreadable where it is
    gone; `then` says what that means for what the folder is of."""
    try:
        yield
    except OSError as error:
        if not folder.exists():
            raise RunUnreadable(f"{title} {then}: its folder {folder} is gone") from None
        why = f"{error.strerror or error}: {error.filename or folder}"
        way_out = "; `%distrain delete` makes room" if error.errno in FULL else ""
        raise StoreError(f"{title} {then}: {why}{way_out}") from None
