"""Which process runs which tests, and when.

What failed last and what uncommitted changes concern comes first; then the longest, by durations of
an earlier run. (pytest-testmon would choose by coverage, and sees none of the kernels, supervisors
and ranks that most tests start. By imports, as grimp lists them, 94 % of the test files depend
on nearly each module: with imports in functions, which rooms have for what they may need.)

`tests/durations.json` has the seconds of each file, and of each test of a file that takes long.
`make durations` writes it anew from the report of the last whole run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from zlib import crc32

from xdist.scheduler import LoadScopeScheduling

from scripts.cache import cache as folder_in_cache

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest
    from xdist.workermanage import WorkerController

TESTS = Path(__file__).parent
ROOT = TESTS.parent
DURATIONS = TESTS / "durations.json"
REPORT = ROOT / "out" / "tests.xml"

# Folders whose tests share engines, registries, browsers or TensorFlow: a process that has started
# these goes on with them.
SHARING = (
    ("sagemaker", "vertex"),
    ("image", "rehearsal", "remote"),
    ("browser",),
    ("embedding",),
    ("run",),
    ("slurm",),
)
WHOLE = ("ray",)  # folders whose files share a cluster that takes long to start: never split
PROGRAMS = "tests/programs/test_programs.py"  # tests of a program share a run by its own command
TOGETHER_S = 20.0  # a file that takes longer may be split over processes, test by test
APART_S = 2.0  # a test of such a file that takes longer is one of those
UNKNOWN_S = 1.0  # for a test that no run has recorded

# A variable with the time (seconds of Unix) at which a run has to have ended, if it must. Units
# that would take longer are left out, and the next such run on this machine begins with them.
# Groups come in an order drawn by the commit: if the shortest were always last, some would never
# run where no cache outlives a run.
UNTIL = "SUITE_UNTIL"

Durations = dict[str, "float | dict[str, float]"]


class LongestFirst(LoadScopeScheduling):
    """Gives a process more of what it has started, else what takes longest of all that is left."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)
        self._started: dict[WorkerController, list[str]] = defaultdict(list)
        cache = getattr(config, "cache", None)  # `-p no:cacheprovider` leaves none
        failed = cache.get("cache/lastfailed", {}) if cache else {}
        self._failed = {unit(nodeid) for nodeid in failed}
        self._changed = changed_folders(ROOT)
        self._until = float(os.environ.get(UNTIL, "inf"))
        self._left = left() if UNTIL in os.environ else set[str]()
        self._chance = _commit(ROOT) if UNTIL in os.environ else ""
        self._left_out: list[str] = []

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self._leave_out()
        if not self.workqueue:
            return
        started = self._started[node]
        waiting = {name: seconds(name, len(tests)) for name, tests in self.workqueue.items()}
        first = self._failed & waiting.keys() or self._left & waiting.keys()
        urgent = first or self._of_changes(waiting)
        chosen = choose(
            {name: duration for name, duration in waiting.items() if name in urgent} or waiting,
            started,
            {group for groups in self._started.values() for group in groups},
            self._chance,
        )
        for group in groups_of(chosen):
            if group not in started:
                started.append(group)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)

    def schedule(self) -> None:
        if UNTIL in os.environ and self.collection is None:
            keep_left([])
        super().schedule()

    def _reschedule(self, node: WorkerController) -> None:
        self._leave_out()  # a process is told to end where nothing waits any more
        super()._reschedule(node)

    def _leave_out(self) -> None:
        now = time.time()
        for name, tests in list(self.workqueue.items()):
            if now + seconds(name, len(tests)) > self._until:
                del self.workqueue[name]
                self._left_out.append(name)
                keep_left(self._left_out)

    def _of_changes(self, waiting: Mapping[str, float]) -> set[str]:
        return {name for name in waiting if self._changed.intersection(name.split("/")[1:])}


def left_file() -> Path:
    """Name the file of what an earlier run had no time for: the next clone finds it too."""
    return folder_in_cache("suite") / "left.json"


def left() -> set[str]:
    """Read the units for which an earlier run had no time."""
    return set(json.loads(left_file().read_text("utf-8"))) if left_file().exists() else set()


def keep_left(units: list[str]) -> None:
    """Write down the units for which this run has no time."""
    left_file().parent.mkdir(parents=True, exist_ok=True)
    left_file().write_text(json.dumps(units), "utf-8")


def _commit(root: Path) -> str:
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "no commit"


def changed_folders(root: Path) -> set[str]:
    """List folders and test files with uncommitted changes: `tests/ui` is about `…/ui/form`."""
    command = ["git", "-C", str(root), "status", "--porcelain", "--no-renames"]
    status = subprocess.run(command, capture_output=True, text=True)
    names = set[str]()
    for line in status.stdout.splitlines():
        first, *inner = line[3:].split("/")
        names.update(
            inner[:-1] if first == "distrain_nb" else inner[-1:] if first == "tests" else []
        )
    return names


def choose(
    waiting: Mapping[str, float], started: list[str], taken: set[str], chance: str = ""
) -> str:
    """Choose the unit that a process runs next: of a file, the first that waits.

    Args:
        waiting: Units that nobody runs yet, with their seconds.
        started: Groups of which this process has run units.
        taken: Groups of which any process has.
        chance: A text by which groups are drawn. Without one, those that take longest come first.
    """
    left: dict[str, float] = defaultdict(float)
    for name, duration in waiting.items():
        for group in set(groups_of(name)):
            left[group] += duration
    if chance:
        left = {group: crc32(f"{chance} {group}".encode()) for group in left}

    def rank(name: str) -> tuple[int, float, float]:
        file, shared = groups_of(name)
        if file in started:
            return 0, 0.0, 0.0
        if shared in started:
            return 1, 0.0, -left[file]
        return (3 if shared in taken else 2), -left[shared], -left[file]

    return min(waiting, key=rank)


@cache
def groups_of(name: str) -> tuple[str, str]:
    """Name what a unit shares fixtures with: its file, and its folders."""
    if name.startswith("["):
        return name, name
    file = name.split("::")[0]
    folder = file.split("/")[1]
    return file, next((group[0] for group in SHARING if folder in group), file)


@cache
def unit(nodeid: str) -> str:
    """Name what runs in one process: a program, a file, or a test of a file that takes long."""
    file = nodeid.split("::")[0]
    if file == PROGRAMS:
        return nodeid[nodeid.index("[") :]
    known = None if file.split("/")[1] in WHOLE else recorded().get(file)
    return nodeid if isinstance(known, dict) and nodeid.partition("::")[2] in known else file


def seconds(name: str, tests: int) -> float:
    """Give the recorded seconds of a unit that has so many tests."""
    file, _, test = name.partition("::")
    known = recorded().get(file, UNKNOWN_S * tests)
    if not isinstance(known, dict):
        return known
    if file.split("/")[1] in WHOLE:
        return sum(known.values())
    return known.get(test, UNKNOWN_S * tests)


@cache
def recorded() -> Durations:
    """Read the durations of an earlier run; none where there is no record."""
    return dict(json.loads(DURATIONS.read_text("utf-8"))) if DURATIONS.exists() else {}


def durations(report: Path) -> Durations:
    """Sum up a report in JUnit's form, as `--junitxml` writes it."""
    files: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.attrib["classname"].replace(".", "/") + ".py"
        test, duration = case.attrib["name"], float(case.attrib["time"])
        if file == PROGRAMS:
            files[test[test.index("[") :]][""] += duration
        else:
            files[file][test] += duration
    return {file: _durations_of(tests) for file, tests in sorted(files.items())}


def _durations_of(tests: Mapping[str, float]) -> float | dict[str, float]:
    """Sum up a file; if it takes long, its long tests are apart, and "" has what the rest takes."""
    total = sum(tests.values())
    if total <= TOGETHER_S or len(tests) == 1:
        return round(total, 1)
    # A test that is named by a path of this machine has another name elsewhere.
    named = {test: duration for test, duration in sorted(tests.items()) if "[/" not in test}
    long = {test: duration for test, duration in named.items() if duration >= APART_S}
    rest = {"": total - sum(long.values())} if len(long) < len(tests) else {}
    return {test: round(duration, 1) for test, duration in (*rest.items(), *long.items())}


if __name__ == "__main__":
    report = Path(sys.argv[1]) if sys.argv[1:] else REPORT
    DURATIONS.write_text(json.dumps(durations(report), indent=1) + "\n", "utf-8")
