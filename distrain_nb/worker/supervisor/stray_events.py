"""Event files that ranks write elsewhere than they are told to are brought to the run's charts.

`SummaryWriter()` writes into `runs/…` below the working folder, Lightning and transformers into
folders of their own. As by TensorBoard, any file is taken for one whose name has `tfevents` in it.
Names tell mostly when and by which process a file was begun, so that those of other runs are left
alone: `events.out.tfevents.<seconds>.<host>.<process>.<number>`, and `.v2` or a suffix of the
writer's behind it. tensorboardX and others leave out the process, SageMaker's debugger
(`<step>_<worker>.tfevents`) the time, too, which is that of the file's first event then.
A file is brought by a hard link or, across file systems, as a copy that grows with it.
Folders of runs and of jobs (`DISTRAIN_HOME` and the folder of jobs may be below the working folder)
aren't searched: what is fetched into them would be brought, then fetched again, without an end.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import threading
import time
from collections import deque
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from distrain_nb.worker.files.folder import RECORD_FILE, STATUS_FILE, VARIABLES_FILE
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.machine.process_table import process_stat
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE
from distrain_nb.worker.supervisor.child import Child, Launcher

MARK = "tfevents"
UNFINISHED = ".tmp"  # of writers that rename a file when it is whole
FIRST_AFTER_S, EVERY_S = 0.5, 2.0
SHARE_OF_TIME = 0.004
LONGEST_LOOK_S = 0.2
COPIED_AT_ONCE = 1 << 20
SKIPPED = frozenset(["__pycache__", "node_modules", "site-packages"])
# What together tells the folder of a run, and that of a job (`replica/shared.py`).
_OF_RUNS = ({RECORD_FILE, STATUS_FILE}, {VARIABLES_FILE, "code", "replicas"})
_NAME = re.compile(r"tfevents\.(?P<seconds>\d{9,11})\.(?P<rest>.+)")
_BEGINNING = struct.Struct("<QIcd")  # length, its checksum, and the event's time with its tag
_TIME_TAG = b"\x09"


class StrayEvents:
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
        self._doubtful: Dict[Path, str] = {}
        self._is_cut = False
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

    def passed_over(self) -> str:
        """Return a sentence about what may be the run's and is not in its charts; empty for
        nothing."""
        remaining = {path: why for path, why in self._doubtful.items() if _links(path) == 1}
        if remaining:
            path, why = next(iter(remaining.items()))
            more = f", and {len(remaining) - 1} more" if len(remaining) > 1 else ""
            return f"not in the charts: {path.relative_to(self._working)} ({why}){more}"
        if self._is_cut:
            return "not all folders below the working folder were searched for event files"
        return ""

    def _look(self) -> None:
        files, self._is_cut = _event_files(self._working, self._target)
        for path in files:
            if path not in self._brought:
                self._doubtful.pop(path, None)
                series = self._series_of(path)
                if series is not None:
                    place = self._target / series / path.parent.relative_to(self._working)
                    self._brought[path] = place / path.name
        for path, place in self._brought.items():
            try:
                _bring(path, place)
            except OSError:  # gone, or no room: the charts lack it, the run goes on
                continue

    def _series_of(self, path: Path) -> Optional[str]:
        """Return the folder for a file; None if it isn't this run's."""
        began = _began(path)
        if began is None:
            self._doubtful[path] = "it doesn't begin as event files do"
            return None
        if began < self._since:
            return None
        numbers = _processes(path.name)
        owners = [self._owner(number) for number in numbers]
        pids = [owner for owner in owners if owner is not None]
        if pids or not numbers or self._any_process:
            return self._series[pids[0]] if pids else ""
        if not any(map(_is_alive, numbers)):
            self._doubtful[path] = f"process {numbers[0]} had ended before it was seen"
        return None

    def _owner(self, process: int) -> Optional[int]:
        """Return the rank that the process is, or below which it is."""
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


def stray_events(launch: Launch, children: Sequence[Child]) -> Optional[StrayEvents]:
    """Start to look for event files of these ranks; None where charts have no folder."""
    specs = [(child, spec) for child in children for spec in child.specs.values()]
    target = {**os.environ, **specs[0][1].environment}.get(FOLDER_VARIABLE, "")
    if not os.path.isabs(target):
        return None
    launched = any(isinstance(child, Launcher) for child in children)
    series = {
        child.pid: "" if spec.rank == 0 else spec.label.replace(" ", "-") for child, spec in specs
    }
    charts = StrayEvents(
        Path(launch.working_folder), Path(target), {} if launched else series, launched
    )
    charts.start()
    return charts


def _event_files(root: Path, target: Path) -> Tuple[List[Path], bool]:
    """Return the event files below the root but not in the target, from the top down, and whether
    there was no time for all."""
    end = time.monotonic() + LONGEST_LOOK_S
    folders, files = deque([root]), []
    while folders and time.monotonic() < end:
        try:
            entries = list(os.scandir(str(folders.popleft())))
        except OSError:
            continue
        names = {entry.name for entry in entries}
        if any(marks <= names for marks in _OF_RUNS):
            continue
        for entry in entries:
            if _is_searched(entry):
                if Path(entry.path) != target:
                    folders.append(Path(entry.path))
            elif MARK in entry.name and _is_whole(entry.path):
                files.append(Path(entry.path))
    return files, bool(folders)


def _is_whole(path: str) -> bool:
    return not path.endswith(UNFINISHED) and os.path.isfile(path)  # which never raises


def _began(path: Path) -> Optional[int]:
    """Return when a file was begun, in seconds since the epoch, by its name or its first event;
    None where neither tells."""
    match = _NAME.search(path.name)
    if match is not None:
        return int(match["seconds"])
    try:
        with path.open("rb") as file:
            _, _, tag, seconds = _BEGINNING.unpack(file.read(_BEGINNING.size))
    except (OSError, struct.error):
        return None
    return int(seconds) if tag == _TIME_TAG and 0 < seconds < 1 << 40 else None


def _processes(name: str) -> List[int]:
    """Return the numbers in a name that may be a process: what stands behind this machine's name,
    else each; none where a name has none."""
    match = _NAME.search(name)
    rest, host = match["rest"] if match else "", f"{socket.gethostname()}."
    is_here = f"{rest}.".startswith(host)
    words = rest[len(host) :].split(".")[:1] if is_here else rest.split(".")
    return [int(word) for word in words if word.isdecimal()]


def _is_alive(process: int) -> bool:
    try:
        return bool(process_stat(process))
    except OSError:
        return True


def _links(path: Path) -> int:
    """Return how many names a file has: those that another run has brought have several."""
    try:
        return path.stat().st_nlink
    except OSError:
        return 0


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
    copied = place.stat().st_size
    if copied < size and not place.samefile(path):
        with path.open("rb") as source, place.open("ab") as copy:
            source.seek(copied)
            shutil.copyfileobj(source, copy, COPIED_AT_ONCE)
