"""Event files that ranks write elsewhere than they are told to are brought to the run's charts.

`SummaryWriter()` writes into `runs/…` below the working folder, Lightning and transformers into
folders of their own. They are found there by their names, which tell when and by which process they
were begun, so that files of other runs are left alone:
`events.out.tfevents.<seconds>.<host>.<process>.<number>`; tensorboardX leaves out the last two.
A file is brought by a hard link or, across file systems, as a copy that grows with it.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections import deque
from pathlib import Path
from typing import Dict, Iterator, Mapping, Optional, Sequence

from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.machine.system import process_stat
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE
from distrain_nb.worker.supervisor.start import Child, Launcher

MARK = "tfevents"
FIRST_AFTER_S, EVERY_S = 0.5, 2.0
SHARE_OF_TIME = 0.004
LONGEST_LOOK_S = 0.2
COPIED_AT_ONCE = 1 << 20
SKIPPED = frozenset(["__pycache__", "node_modules", "site-packages"])
_NAME = re.compile(r"tfevents\.(?P<seconds>\d{9,11})\.(?P<rest>.+)")


class StrayCharts:
    """Looks from a thread of its own, every two seconds, or less often where that is dear.

    `series` has, by the process that a rank is, the folder for what it and all below it write;
    what comes from another process is not the run's. With `any_process` a file counts by its time
    alone: `mpirun` starts ranks whose processes are not known here.
    """

    def __init__(
        self, working: Path, target: Path, series: Mapping[int, str], any_process: bool = False
    ) -> None:
        self._working = Path(os.path.realpath(str(working)))
        self._target = Path(os.path.realpath(str(target)))
        self._series = dict(series)
        self._any_process = any_process
        self._since = int(time.time())
        self._brought: Dict[Path, Path] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="charts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Bring what is there at the end; returns soon."""
        self._over.set()
        self._thread.join(2 * LONGEST_LOOK_S)
        if not self._thread.is_alive():
            self._look()

    def _run(self) -> None:
        wait = FIRST_AFTER_S
        while not self._over.wait(wait):
            began = time.monotonic()
            self._look()
            wait = max(EVERY_S, (time.monotonic() - began) / SHARE_OF_TIME)

    def _look(self) -> None:
        for path in _event_files(self._working, self._target):
            if path not in self._brought:
                series = self._series_of(path.name)
                if series is not None:
                    place = self._target / series / path.parent.relative_to(self._working)
                    self._brought[path] = place / path.name
        for path, place in self._brought.items():
            try:
                _bring(path, place)
            except OSError:  # gone, or no room: the charts lack it, the run goes on
                continue

    def _series_of(self, name: str) -> Optional[str]:
        """The folder for a file of that name; None if it isn't this run's."""
        found = _NAME.search(name)
        if found is None or int(found["seconds"]) < self._since:
            return None
        numbers = [int(word) for word in found["rest"].split(".") if word.isdigit()]
        owners = [self._owner(number) for number in numbers]
        known = [owner for owner in owners if owner is not None]
        if known or not (numbers and not self._any_process):
            return self._series[known[0]] if known else ""
        return None

    def _owner(self, process: int) -> Optional[int]:
        """The rank that the process is, or below which it is."""
        while process > 1:
            if process in self._series:
                return process
            try:
                stat = process_stat(process)
            except OSError:
                return None
            if not stat:
                return None
            process = int(stat[1])
        return None


def stray_charts(launch: Launch, children: Sequence[Child]) -> Optional[StrayCharts]:
    """What looks for event files of these ranks, started; None where charts have no folder."""
    specs = [(child, spec) for child in children for spec in child.specs.values()]
    target = {**os.environ, **specs[0][1].environment}.get(FOLDER_VARIABLE, "")
    if not os.path.isabs(target):
        return None
    launched = any(isinstance(child, Launcher) for child in children)
    series = {
        child.pid: "" if spec.rank == 0 else spec.label.replace(" ", "-") for child, spec in specs
    }
    charts = StrayCharts(
        Path(launch.working_folder), Path(target), {} if launched else series, launched
    )
    charts.start()
    return charts


def _event_files(root: Path, target: Path) -> Iterator[Path]:
    """Those below the root but not in the target, from the top down, as far as time allows."""
    end = time.monotonic() + LONGEST_LOOK_S
    folders = deque([root])
    while folders and time.monotonic() < end:
        try:
            entries = list(os.scandir(str(folders.popleft())))
        except OSError:
            continue
        for entry in entries:
            if MARK in entry.name:
                yield Path(entry.path)
            elif _is_searched(entry) and Path(entry.path) != target:
                folders.append(Path(entry.path))


def _is_searched(entry: os.DirEntry[str]) -> bool:
    hidden = entry.name.startswith(".") or entry.name in SKIPPED
    return not hidden and entry.is_dir(follow_symlinks=False)


def _bring(path: Path, place: Path) -> None:
    """Have all that the file has by now at that place. Raises OSError."""
    size = path.stat().st_size
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(str(path), str(place))
            return
        except OSError:
            place.touch()
    there = place.stat().st_size
    if there < size and not place.samefile(path):
        with path.open("rb") as source, place.open("ab") as copy:
            source.seek(there)
            shutil.copyfileobj(source, copy, COPIED_AT_ONCE)
