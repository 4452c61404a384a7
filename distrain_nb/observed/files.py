"""Files by which a statement that knows the world tells a later one."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.observed.frames import run_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import CodeType

_TICK_S = 0.01  # by which a file's time may be behind the clock
_MOST = 1000
_LONGEST = 1024
_Place = tuple[str, int, int]


class FileRead(NamedTuple):
    """A file that a statement named, and the place of the one that had written it."""

    label: str
    line: int
    column: int
    file: str
    written_at: _Place


class Files:
    """The files that statements name, and those that changed while a statement knew the world.

    They are told by their times. An audit hook would hear of each that is opened, and make `id()`
    six times slower and copies twice, for as long as the process lives.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self.told: list[FileRead] = []
        self._since = 0.0
        self._knowing: list[tuple[float, float, _Place]] = []  # from when to when a statement ran

    def begin(self) -> None:
        """Note that a statement is about to run."""
        self._since = time.time()

    def look(self, code: CodeType, at: _Place, *, knows: bool) -> None:
        """Note a statement that has run at that place; it `knows` the world, or not."""
        if knows:
            self._knowing.append((self._since - _TICK_S, time.time(), at))
        elif self._knowing:
            for file in _files_named(code, self._namespace):
                if writer := self._writer(file):
                    self.told.append(FileRead(*at, str(file), writer))
        del self.told[:-_MOST], self._knowing[:-_MOST]

    def _writer(self, file: Path) -> _Place | None:
        try:
            status = file.stat()
        except (OSError, ValueError):
            return None
        changed = status.st_mtime if stat.S_ISREG(status.st_mode) else 0.0
        return next(
            (at for since, until, at in reversed(self._knowing) if since < changed < until), None
        )


def _files_named(code: CodeType, namespace: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the paths that a statement, or a function that it runs, has as a text or by a name; the
    texts also below the folders that are named."""
    texts, paths = set[str](), {Path()}
    for part, names in run_by(code, namespace):
        texts |= {*_texts(part.co_consts)}
        values = [namespace.get(name) for name in names]
        texts |= {*_texts(values)}
        paths |= {Path(value) for value in values if isinstance(value, os.PathLike)}
    for path in [*paths][:_MOST]:
        yield path
        yield from (path / text for text in [*texts][:_MOST])


def _texts(values: Iterable[object]) -> Iterator[str]:
    return (v for v in values if type(v) is str and 0 < len(v) < _LONGEST and "\n" not in v)
