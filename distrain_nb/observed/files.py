"""Files by which a statement that knows the world tells a later one."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_CODE = (".py", ".pyc", ".so")  # which imports read
_TICK_S = 0.01  # by which a file's time may be behind the clock
_MOST_FILES = 1000
_WRITES = os.O_WRONLY | os.O_RDWR
_ANYTHING = "what the statement gives"
_PATHS = {"open": 1, "os.rename": 2}  # how many a call has, by its event
_Place = tuple[str, int, int]
_EVENTS = frozenset([*_PATHS, "os.system"])  # of thousands while a package is imported


class FileRead(NamedTuple):
    """A file that a statement read, and the place of the one that had written it."""

    label: str
    line: int
    column: int
    file: str
    written_at: _Place


class Files:
    """The files that statements read and wrote. Those that the code of a package writes, or another
    process, are told by the time when they changed."""

    def __init__(self, starts: Callable[[object, FrameType], None]) -> None:
        self._starts = starts  # a command
        self.told: list[FileRead] = []
        self._opened: dict[str, str] = {}  # by the running statement, with what it may write there
        self._since = 0.0
        self._written: dict[str, _Place | None] = {}  # without a place: by what knows nothing
        self._knowing: list[tuple[float, float, _Place]] = []  # from when to when a statement ran

    def begin(self) -> None:
        """Note that a statement is about to run."""
        self._opened, self._since = {}, time.time()
        _current[:] = [self]

    def look(self, at: _Place, *, knows: bool) -> None:
        """Keep what the statement at that place has opened; it `knows` the world, or not."""
        _current.clear()
        if knows:
            self._knowing.append((self._since - _TICK_S, time.time(), at))
        for file, source in self._opened.items():
            if source:
                self._written[file] = at if knows else self._written.get(source)
            elif writer := self._writer(file):
                self.told.append(FileRead(*at, file, writer))
        del self.told[:-_MOST_FILES]
        for file in [*self._written][:-_MOST_FILES]:
            del self._written[file]

    def _writer(self, file: str) -> _Place | None:
        if file in self._written:
            return self._written[file]
        try:
            changed = Path(file).stat().st_mtime
        except OSError:
            return None
        return next((at for since, until, at in self._knowing if since < changed < until), None)

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        """Note a file that is opened, or that gets the place of another, and a command."""
        if event == "os.system":
            self._starts(args[0], sys._getframe(2))
            return
        is_code = type(args[0]) is str and args[0].endswith(_CODE)
        if is_code or len(self._opened) > _MOST_FILES or isinstance(args[0], int):
            return
        path, *others = (str(Path(os.fsdecode(name)).absolute()) for name in args[: _PATHS[event]])
        if others:
            self._opened[others[0]] = path
        else:
            writes = args[2] & _WRITES
            self._opened[path] = self._opened.get(path) or (_ANYTHING if writes else "")


_current: list[Files] = []  # while a statement runs
_hooks: list[object] = []  # Python has no way to remove one


def watch_files() -> None:
    """Hear of files from now on; nothing is done between statements."""

    def heard(event: str, args: tuple[Any, ...]) -> None:
        if event in _EVENTS and _current:
            try:
                _current[0].heard(event, args)
            except Exception:  # whatever is odd about a path: the user's code goes on
                return

    if not _hooks:
        _hooks.append(heard)
        sys.addaudithook(heard)
