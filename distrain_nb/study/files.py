"""The folder of a study: the name of every file in it, who writes it, and its format.

The rules of a run's folder hold (`worker/files/folder.py`): whoever wants to know about a study
reads its folder, files are replaced in one step, and later versions only add. What a run's folder
has too has the same name: `program/` and `launch.json`, which each trial gets with its number in
the place of `${TRIAL}`; `status.json`; `cancel`; the lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from distrain_nb.errors import OptionError
from distrain_nb.run import folder_access
from distrain_nb.run.numbered_folders import NumberedFolders
from distrain_nb.tuning import options
from distrain_nb.tuning.spec import StudySpec
from distrain_nb.types import Json
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.status import Owner

STUDIES_FOLDER = "studies"  # of DISTRAIN_HOME; in it a folder for each study, by its number

STUDY_FILE = "study.json"  # `StudyFile`, by whoever started it
TRIALS_FOLDER = "trials"  # `N.json`, a `TrialFile` each, by the study's process
STORAGE_FILE = "optuna.log"  # by the study's process: what optuna-dashboard opens
PROCESS_LOG = "study.log"  # text: what the study's process prints
TOLD_FILE = "told"  # text: when the end was that has been told, by `notices`

# By anybody.
WANTED_FILE = "wanted"  # text: how many trials there are to be in all
WANTED_LOCK = "wanted.lock"  # held by whoever changes that
STOP_FILE = "stop-{}"  # empty: that trial is to be stopped


@dataclass(frozen=True)
class StudyFile:
    """What was asked for.

    `key` tells it from any other study; `spec` has the options of a study as texts, `line` those of
    the layout, `options` those of its runs that took lists. `devices` are the GPUs of each of the
    trials that run at once, as `CUDA_VISIBLE_DEVICES` has them. `kernel` is the process that waits
    for it and that it must not outlive. `backend` is where its trials run, and `handle` what the
    list of runs has of each. `python` is the interpreter that its process is started with, whoever
    starts it; `experiments` is where its service keeps experiments, if it files trials there.
    `notify` are the channels by which its end is told. Times are in seconds, `created` since the
    epoch.
    """

    id: int
    name: str
    key: str
    created: float
    spec: dict[str, object]
    line: str = ""
    experiment: str = ""
    options: dict[str, list[str]] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    idle: float = 600.0
    kernel: Owner | None = None
    backend: str = "local"
    handle: dict[str, Json] = field(default_factory=dict)
    python: str = ""
    experiments: str = ""
    notify: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        replace_file(folder / STUDY_FILE, fields.encode(self, indent=1))

    @classmethod
    def read(cls, folder: Path) -> StudyFile:
        """Raise FileNotFoundError; `fields.Damaged`."""
        return fields.read(cls, folder / STUDY_FILE)

    @property
    def parsed(self) -> StudySpec:
        """Raises OptionError where a later version has written what this one doesn't know, and for
        a study without a goal, which nobody starts."""
        spec = options.study(self.spec)
        if not spec.goals:
            raise OptionError(f"study {self.id} is damaged: it names no goal")
        return spec


class TrialState(str, Enum):
    """Where a trial is in its life. The last four are final."""

    REQUESTED = "requested"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in _FINAL

    def __str__(self) -> str:
        return str(self.value)


_FINAL = frozenset(
    (TrialState.SUCCEEDED, TrialState.STOPPED, TrialState.FAILED, TrialState.CANCELLED)
)


@dataclass(frozen=True)
class TrialFile:
    """A trial: what it tries, and how it goes.

    `run` is the number of its run, of several the last, which is number `attempt`; `uncounted` of
    these were lost before the program began, or for lack of room. `slot` is its place among the
    trials that run at once, from 0. `goals` are its values by metric, `steps` is how many it has
    reported of the first, `why` says why it was stopped or failed. `paid` are the seconds for which
    those of its runs that have ended had machines of their own. `begin` and `end` are in seconds
    since the epoch, 0 where there was none.
    """

    number: int
    parameters: dict[str, Any]  # numbers and texts
    state: TrialState = TrialState.REQUESTED
    run: int | None = None
    attempt: int = 1
    uncounted: int = 0
    slot: int = 0
    goals: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    begin: float = 0.0
    end: float = 0.0
    why: str = ""
    paid: float = 0.0

    def __post_init__(self) -> None:
        for name, value in self.parameters.items():
            if not isinstance(value, (int, float, str)):
                raise ValueError(f"parameters.{name} is {value!r:.60}")

    def write(self, folder: Path) -> None:
        """`folder` is the study's."""
        data = fields.encode(self, indent=1, ensure_ascii=False)
        replace_file(folder / TRIALS_FOLDER / f"{self.number}.json", data)


def study_folders(home: Path) -> NumberedFolders:
    """Return the folders of the studies of a DISTRAIN_HOME."""
    return NumberedFolders(home / STUDIES_FOLDER, "study", STUDY_FILE)


def readable(folder: Path) -> AbstractContextManager[None]:
    """Raise RunUnreadable in the block for files of that study that are missing or damaged."""
    number = folder.name
    way_out = f"%distrain tune {number} --delete"
    return folder_access.readable(f"study {number}", folder, way_out)


def writable(folder: Path) -> AbstractContextManager[None]:
    """Raise StoreError in the block where a request to the study can't be written."""
    return folder_access.writable(f"study {folder.name}", folder)


def read_trials(folder: Path) -> list[TrialFile]:
    """Return all trials of the study in that folder, by number."""
    return sorted(_trials(folder), key=lambda trial: trial.number)


def _trials(folder: Path) -> Iterator[TrialFile]:
    for path in (folder / TRIALS_FOLDER).glob("*.json"):
        if re.fullmatch(r"[1-9][0-9]*", path.stem):
            yield fields.read(TrialFile, path)


def requested_trials(folder: Path, spec: StudySpec) -> int:
    """Return how many trials there are to be in all. Raises `fields.Damaged`."""
    path = folder / WANTED_FILE
    try:
        return int(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return spec.trials
    except ValueError as error:
        raise fields.Damaged(f"{path} is damaged: {error}") from None
