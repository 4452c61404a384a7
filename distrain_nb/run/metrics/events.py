"""The metrics of a run: what a folder of TensorBoard event files has, read as it grows.

By hand, as TensorBoard's own reader takes sixteen times as long (`benchmarks/README.md`).
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from distrain_nb.run.metrics.non_scalars import NonScalars
from distrain_nb.run.metrics.records import POINT, ParsedStretch, Points, read_stretch
from distrain_nb.worker.files.folder import DISPLAYS_FOLDER, STEP_TIMES_FOLDER

if TYPE_CHECKING:
    import pandas as pd

    from distrain_nb.run.metrics.slow_ranks import SlowRanks

STRETCH_BYTES = 4 << 20
_OTHER_FOLDERS = (STEP_TIMES_FOLDER, DISPLAYS_FOLDER)
_MOST_LINKS, _MOST_BEHIND_A_LINK = 100, 200
# An empty event file that the worker leaves when a run is started again (`supervisor/retries.py`).
_ATTEMPT = re.compile(r"events\.out\.tfevents\.(\d+\.\d+)\.attempt-\d+")


class Key(NamedTuple):
    """One line of a chart: `series` is the sub-folder of the event files, empty for none."""

    series: str
    tag: str


class EventFolder:
    """Scalars of all event files below a folder, from any writer; `non_scalars` knows of all else.

    A folder that does not exist yet is one without metrics. A last record that is not whole yet
    is read when it is; a corrupt record is left out, and said in `notes`; nothing raises.
    What an attempt of a run writes of a line replaces what is there from its first step on.
    """

    stacked = False  # whether the lines of a chart are parts of a whole

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[Path, _File] = {}
        self._lines: dict[Key, _Line] = {}
        self._attempts: list[float] = []  # when those after the first began
        self.non_scalars = NonScalars()
        self.changes = 0  # how often a read has found points, or has lost some

    def read(self) -> dict[Key, Points]:
        """Return what has been written since the last call, of dtype POINT, in order of arrival.

        Where a restarted writer took points back, or wrote a file anew, their key is there too, if
        only with an empty array: then `points` is shorter than what was read before.
        """
        paths = sorted(event_files(self.path))
        is_late = self._hear_of_attempts(paths)
        is_old = is_late or any(file.replaced for file in self._files.values())
        news = self._begin_anew() if is_old else {}
        for path in paths:
            file = self._files.setdefault(path, _File(path))
            series = path.parent.relative_to(self.path).as_posix().removeprefix(".")
            for base, stretch in file.read():
                self._take(series, stretch, news)
                self.non_scalars.add(series, path, base, stretch)
        self.changes += bool(news)
        return {
            key: pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
            for key, pieces in news.items()
        }

    @property
    def slow(self) -> SlowRanks | None:
        """Nothing: only step times tell of slow ranks."""
        return None

    def points(self, key: Key) -> Points:
        """Return all points of one line so far: a view, valid until the next `read`."""
        return self._lines[key].points

    @property
    def keys(self) -> tuple[Key, ...]:
        """Every line, in order of first appearance."""
        return tuple(self._lines)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be read, a sentence for each file."""
        return tuple(file.note for file in self._files.values() if file.note)

    def _hear_of_attempts(self, paths: Iterable[Path]) -> bool:
        """Return whether points of an attempt have come before the word of it."""
        earlier = self._attempts
        self._attempts = sorted(float(m[1]) for p in paths if (m := _ATTEMPT.fullmatch(p.name)))
        new = [began for began in self._attempts if began not in earlier]
        lines = self._lines.values() if new else ()
        return any((line.points["wall_time"] >= new[0]).any() for line in lines)

    def _begin_anew(self) -> dict[Key, list[Points]]:
        """Forget everything: nobody knows which points came from a file that is there no more."""
        forgotten = {key: [np.empty(0, dtype=POINT)] for key in self._lines}
        self._files, self._lines, self.non_scalars = {}, {}, NonScalars()
        return forgotten

    def _take(self, series: str, stretch: ParsedStretch, news: dict[Key, list[Points]]) -> None:
        for _, step in stretch.restarts:
            for key in self._lines:
                if key.series == series:
                    self._take_back(key, step, news)
        for tag, points in stretch.points.items():
            key = Key(series, tag)
            for attempt, part in self._by_attempt(points):
                if key not in self._lines:
                    self._lines[key] = _Line(part)
                else:
                    if attempt > self._lines[key].attempt:
                        self._take_back(key, part["step"][0], news)
                    self._lines[key].append(part)
                self._lines[key].attempt = max(attempt, self._lines[key].attempt)
                news.setdefault(key, []).append(part)

    def _take_back(self, key: Key, step: int, news: dict[Key, list[Points]]) -> None:
        """Forget the points of a line from that step on."""
        if self._lines[key].take_back(step):
            earlier = [piece[piece["step"] < step] for piece in news.get(key, [])]
            news[key] = earlier or [np.empty(0, dtype=POINT)]

    def _by_attempt(self, points: Points) -> Iterator[tuple[int, Points]]:
        """Yield points in order, those of one attempt together, behind its number."""
        if not self._attempts or not len(points):
            yield 0, points
            return
        numbers = np.searchsorted(self._attempts, points["wall_time"], side="right")
        edges = np.flatnonzero(np.diff(numbers)) + 1
        for edge, part in zip([0, *edges], np.split(points, edges), strict=True):
            yield int(numbers[edge]), part


def scalars(path: Path) -> Mapping[Key, Points]:
    """Return all scalars below a folder, by series and tag, in one go."""
    folder = EventFolder(path)
    folder.read()
    return {key: folder.points(key) for key in folder.keys}


def table(path: Path) -> pd.DataFrame:
    """Return all scalars below a folder: a row for each series and step, a column for each tag.

    Rows are sorted by series and step. The column `series` is there only where there is more
    than one. Of several values for one step the last counts.
    """
    import pandas as pd

    lines = scalars(path)
    tables = [_series_table(name, lines) for name in sorted({key.series for key in lines})]
    if not tables:
        none: pd.DataFrame = pd.DataFrame({"step": pd.Series(dtype="int64")})
        return none
    frame: pd.DataFrame = pd.concat(tables, ignore_index=True)
    if len(tables) == 1:
        del frame["series"]
    return frame


def _series_table(series: str, lines: Mapping[Key, Points]) -> pd.DataFrame:
    import pandas as pd

    columns = {
        key.tag: _last_of_each_step(pd.Series(points["value"], index=points["step"]))
        for key, points in lines.items()
        if key.series == series
    }
    rows: pd.DataFrame = pd.DataFrame(columns).rename_axis("step").reset_index()
    rows.insert(1, "series", series)
    return rows


def _last_of_each_step(values: pd.Series[float]) -> pd.Series[float]:
    return values[~values.index.duplicated(keep="last")].sort_index()


def event_files(path: Path) -> Iterator[Path]:
    """Yield the event files below a folder, but for those of step times. Each folder is looked into
    once, and by its own name where it has one there and links too.

    A link may lead to `/` or `/proc`, which have no end: behind each, so many folders are looked
    into, and nothing that the kernel makes up.
    """
    visited: set[tuple[int, int]] = set()
    folders, linked, budget, link_budget = [path], deque[Path](), -1, _MOST_LINKS
    while folders or (linked and link_budget):
        if not folders:
            link_budget, budget = link_budget - 1, _MOST_BEHIND_A_LINK
        folder = folders.pop() if folders else linked.popleft()
        if budget == 0:
            folders.clear()
            continue
        if budget > 0:
            budget -= 1
            if _is_of_kernel(folder):
                continue
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in visited:
                continue
            visited.add((status.st_dev, status.st_ino))
            entries = list(os.scandir(folder))
        except OSError:  # not there, or nothing to look into
            continue
        below = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        folders += [Path(entry.path) for entry in below if entry.name not in _OTHER_FOLDERS]
        links = [Path(entry.path) for entry in entries if entry.is_symlink()]
        linked += [link for link in links if os.path.isdir(link)]  # noqa: PTH112 - never raises
        named = (entry for entry in entries if "tfevents" in entry.name)
        files = (e for e in named if not os.path.isdir(e))  # noqa: PTH112
        yield from (
            Path(e.path) for e in files if not (e.is_symlink() and _is_of_kernel(Path(e.path)))
        )


def _is_of_kernel(path: Path) -> bool:
    real = os.path.realpath(path)
    return any(f"{real}/".startswith(root) for root in ("/proc/", "/sys/"))


class _Line:
    """A growing array; what is beyond `count` is room for more."""

    __slots__ = ("attempt", "count", "room")

    def __init__(self, points: Points) -> None:
        self.attempt = 0
        self.room = points
        self.count = len(points)

    @property
    def points(self) -> Points:
        return self.room[: self.count]

    def append(self, points: Points) -> None:
        needed = self.count + len(points)
        if needed > len(self.room):
            room = np.empty(max(needed, 2 * len(self.room)), dtype=POINT)
            room[: self.count] = self.points
            self.room = room
        self.room[self.count : needed] = points
        self.count = needed

    def take_back(self, step: int) -> bool:
        """Forget the points from that step on, and say whether there were any."""
        earlier = self.points[self.points["step"] < step]
        changed = len(earlier) < self.count
        self.room, self.count = earlier, len(earlier)
        return changed


class _File:
    """One file, and how far it has been read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._end = 0
        self._inode = 0
        self._corrupt = 0
        self._skipped = 0
        self._unreadable = ""

    @property
    def note(self) -> str:
        parts = [f"{self._corrupt} corrupt records budget out"] if self._corrupt else []
        parts += [f"{self._skipped:,} bytes that are not records"] if self._skipped else []
        parts += [self._unreadable] if self._unreadable else []
        return f"{self._path.name}: {', '.join(parts)}" if parts else ""

    @property
    def replaced(self) -> bool:
        """Whether there is another file now, or a part of it is gone."""
        size, inode = _size(self._path)
        return bool(size and self._inode) and (size < self._end or inode != self._inode)

    def read(self) -> Iterator[tuple[int, ParsedStretch]]:
        """Yield the whole records that have been added since the last call, a stretch at a time.

        Each comes with the place in the file at which it begins.
        """
        size, inode = _size(self._path)
        self._inode = inode or self._inode
        if size <= self._end:
            return
        try:
            with self._path.open("rb") as file:
                yield from self._stretches(file.fileno())
        except OSError as error:
            self._unreadable = f"can't be read: {error.strerror}"

    def _stretches(self, descriptor: int) -> Iterator[tuple[int, ParsedStretch]]:
        length = STRETCH_BYTES
        while True:
            buffer = os.pread(descriptor, length, self._offset)
            stretch = read_stretch(buffer)
            self._offset += stretch.consumed
            self._end = self._offset - stretch.consumed + len(buffer)
            self._corrupt += stretch.corrupt
            self._skipped += stretch.skipped
            no_more = f"nothing to read from byte {self._offset} on"
            self._unreadable = no_more if stretch.unreadable else ""
            if stretch.consumed:
                yield self._offset - stretch.consumed, stretch
            if len(buffer) < length:
                return
            length = STRETCH_BYTES if stretch.consumed else 2 * length


def file_size(path: Path) -> int:
    """Return the file's size in bytes; 0 where there is no file."""
    return _size(path)[0]


def _size(path: Path) -> tuple[int, int]:
    """Return the (bytes, inode) of the file; zeros where there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_ino
