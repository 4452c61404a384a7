"""Describes the damaged files of a run that can't be read."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, RunUnreadable
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import RECORD_FILE, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distrain_nb.run.store import Record

_DAMAGE = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
    OptionError,
)


@contextmanager
def readable(run: Record) -> Iterator[None]:
    """Raise RunUnreadable for errors of the block that come from a run's damaged files."""
    try:
        yield
    except _DAMAGE as error:
        raise RunUnreadable(
            f"run {run.id} ({run.name}) can't be read: {_why(run.folder, error)}; "
            f"`%distrain delete {run.id}`"
        ) from error


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
