"""A file that other processes see whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distrain_nb.scratch import Scratch
from distrain_nb.worker.files.disk import replace


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Yield a file to write. It replaces *path* when the block ends without an error.

    The draft lies beside *path*: a file can only be renamed within its file system.
    """
    with Scratch("draft", path.parent) as folder:
        draft = folder / path.name
        yield draft
        replace(draft, path)
