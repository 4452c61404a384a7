"""Files by which a statement that knows the world tells a later one."""

from __future__ import annotations

import os
import re
import stat
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.observed.frames import run_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import CodeType

_TICK_S = 0.01  # by which a file's time may be behind the clock
_MOST = 1000
_MOST_NAMED = 50  # by one statement: one in a mounted bucket may take a tenth of a second
_LONGEST = 1024
_WORD = r"[^\s'\"<>|;&()$]+"
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
        self._written: set[Path] = set()  # then

    def begin(self) -> None:
        """Note that a statement is about to run."""
        self._since = time.time()

    def look(self, code: CodeType, at: _Place, *, knows: bool) -> None:
        """Note a statement that has run at that place; it `knows` the world, or not."""
        if not (knows or self._written):
            return
        named = {*islice(_files_named(code, self._namespace), _MOST_NAMED)}
        if knows:
            self._knowing.append((self._since - _TICK_S, time.time(), at))
        elif self._written.isdisjoint(named):
            return
        writers = {file: writer for file in named if (writer := self._writer(file))}
        self._written |= writers.keys()
        if not knows:
            self.told += [FileRead(*at, str(file), writer) for file, writer in writers.items()]
        del self.told[:-_MOST], self._knowing[:-_MOST]

    def _writer(self, file: Path) -> _Place | None:
        try:
            status = file.stat()
        except (OSError, ValueError):
            return None
        changed = status.st_mtime if stat.S_ISREG(status.st_mode) else 0.0
        intervals = reversed(self._knowing)
        return next((at for since, until, at in intervals if since < changed < until), None)


def _files_named(code: CodeType, namespace: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the paths that a statement, or a function that it runs, has as a text or by a name; the
    texts also below the folders that are named."""
    texts, paths = dict[str, None](), dict[Path, None]()
    for part, names in run_by(code, namespace):
        values = [namespace.get(name) for name in names]
        texts |= dict.fromkeys(_words([*part.co_consts, *values]))
        paths |= {Path(value): None for value in values if isinstance(value, os.PathLike)}
    yield from paths
    for path in (Path(), *paths):
        yield from (path / text for text in texts)


def _words(values: Iterable[object]) -> Iterator[str]:
    """Yield the texts, and the words of commands."""
    for value in values:
        if type(value) is str and len(value) < _LONGEST:
            yield from re.findall(_WORD, value)
