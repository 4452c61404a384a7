"""A trial becomes a run: what the study was started with, with the trial's number and values."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.local import begin
from distrain_nb.errors import RunNotFound
from distrain_nb.run import Run, Store
from distrain_nb.study.files import HYPERTUNE_FILE, TRIAL
from distrain_nb.tracking import begin_trial
from distrain_nb.worker.files.folder import PROGRAM_FOLDER, STATUS_FILE
from distrain_nb.worker.files.launch import RUN, Launch
from distrain_nb.worker.files.status import Owner, State, Status, request_cancel
from distrain_nb.worker.rank.program import ARGUMENTS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from distrain_nb.run.store import Record
    from distrain_nb.study.files import StudyFile, TrialFile
    from distrain_nb.types import Json

LINKED_FROM_BYTES = 1 << 20


class TrialRuns:
    """The runs of a study's trials on the list of runs."""

    def __init__(self, study: StudyFile) -> None:
        self._study = study
        self._store = Store()

    def added(self, trial: TrialFile) -> Record:
        """A run on the list for a trial's attempt, which is known by its handle."""
        study = self._study
        options = {**study.options, "param": [f"{n}={v}" for n, v in _texts(trial).items()]}
        handle: dict[str, Json] = {
            **study.handle,
            "study": study.key,
            "trial": trial.number,
            "attempt": trial.attempt,
        }
        name = f"{study.name}-{trial.number}"
        experiment = study.experiment or study.name
        return self._store.add(name, study.backend, experiment, study.line, options, handle)

    def find(self, trial: TrialFile) -> Record | None:
        """The run that was added for a trial's attempt; None if there is none."""
        for record in self._store.all():
            known = record.handle.get("study"), record.handle.get("trial")
            attempt = record.handle.get("attempt")
            if (*known, attempt) == (self._study.key, trial.number, trial.attempt):
                return record
        return None

    def get(self, trial: TrialFile) -> Record | None:
        """The run that a trial names; None if it has been deleted."""
        try:
            return self._store.get(str(trial.run)) if trial.run else None
        except RunNotFound:
            return None


class TrialLauncher(TrialRuns):
    """Starts the runs of a study's trials, each once."""

    def __init__(self, study: StudyFile, folder: Path) -> None:
        super().__init__(study)
        self._folder = folder
        self._launch = Launch.read(folder)

    def begin(self, trial: TrialFile, record: Record) -> None:
        """Start a run that was added. Raises DistrainError or OSError where it can't be."""
        target = record.folder / PROGRAM_FOLDER
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self._folder / PROGRAM_FOLDER, target, copy_function=_copy)
        begin_trial(record, self._folder, here=True)
        devices = self._study.devices[trial.slot] if self._study.devices else None
        begin(of_trial(self._launch, trial, devices), record.folder, self._study.idle)

    def discard(self, record: Record) -> None:
        """Forget a run that was never begun."""
        self._store.delete(record)


def has_begun(record: Record) -> bool:
    """Whether a fork server has a run that was added before this process was there.

    Where it may just be on its way to one, it is told not to begin.
    """
    status = Status.read(record.folder) if (record.folder / STATUS_FILE).exists() else None
    if status is None:
        return False
    owner = status.supervisor
    if status.state is not State.STARTING:
        return True
    if owner is not None and owner != Owner.of(os.getpid()) and owner.alive:  # not still ours
        return True
    request_cancel(record.folder)
    return Status.read(record.folder) != status  # it may have been taken, or have ended, since


def of_trial(launch: Launch, trial: TrialFile, devices: str | None) -> Launch:
    """What starts that trial: its number, its values as arguments, and its GPUs."""
    arguments = json.dumps([f"--{name}={text}" for name, text in _texts(trial).items()])
    own = {
        ARGUMENTS_VARIABLE: arguments,
        "CLOUD_ML_TRIAL_ID": str(trial.number),
        **({"CUDA_VISIBLE_DEVICES": devices} if devices is not None else {}),
    }
    processes = [
        replace(process, environment={**_numbered(process.environment, trial.number), **own})
        for process in launch.processes
    ]
    for index, process in enumerate(processes):
        process.environment["CLOUD_ML_HP_METRIC_FILE"] = f"{RUN}/{HYPERTUNE_FILE.format(index)}"
    return replace(launch, processes=tuple(processes))


def shares(gpus: Sequence[str], parallel: int) -> tuple[str, ...]:
    """Which GPUs each of the trials has that run at once; some share one where there are fewer."""
    if not gpus or parallel < 2:
        return ()
    each = max(1, len(gpus) // parallel)
    firsts = (number * each % len(gpus) for number in range(parallel))
    return tuple(",".join(gpus[first : first + each]) for first in firsts)


def run_of(trial: TrialFile) -> Run | None:
    """The handle on a trial's run; None before it has one. Raises RunNotFound once deleted."""
    return Run(Store().get(str(trial.run))) if trial.run else None


def _texts(trial: TrialFile) -> dict[str, str]:
    """The values as a command line has them."""
    return {name: str(value) for name, value in trial.parameters.items()}


def _numbered(environment: Mapping[str, str], number: int) -> dict[str, str]:
    return {name: text.replace(TRIAL, str(number)) for name, text in environment.items()}


def _copy(source: str, target: str) -> None:
    """Large files are shared, as far as the file system can."""
    if Path(source).stat().st_size >= LINKED_FROM_BYTES:
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copy2(source, target)
