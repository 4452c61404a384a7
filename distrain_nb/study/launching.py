"""The start of a trial's run: the study's settings, with the trial's number and values."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast

from distrain_nb.backends.plugins import find
from distrain_nb.backends.tuning import TrialStart
from distrain_nb.errors import RunNotFound
from distrain_nb.run import Run, Store
from distrain_nb.study.cost import StudyCost
from distrain_nb.tracking import begin_trial
from distrain_nb.types import Json
from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.files.status import Status

if TYPE_CHECKING:
    from distrain_nb.backends.tuning import StartsTrials
    from distrain_nb.run.store import Record
    from distrain_nb.study.files import StudyFile, TrialFile

LINKED_FROM_BYTES = 1 << 20


class TrialRuns:
    """The runs of a study's trials, on the list of runs."""

    def __init__(self, study: StudyFile, folder: Path) -> None:
        """*folder* is the study's."""
        self._study = study
        self._folder = folder
        self._store = Store()

    def added(self, trial: TrialFile) -> Record:
        """Add a run for a trial's attempt to the list. The run's handle names the attempt."""
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
        record = self._store.add(name, study.backend, experiment, study.line, options, handle)
        cost = StudyCost.read(self._folder, study.backend)
        trial_cost = cost.of_trial() if cost else None
        if trial_cost:
            trial_cost.write(record.folder)
        return record

    def find(self, trial: TrialFile) -> Record | None:
        """Return the run that was added for a trial's attempt; None if there is none."""
        for record in self._store.newest_first():
            key = record.handle.get("study"), record.handle.get("trial")
            attempt = record.handle.get("attempt")
            if (*key, attempt) == (self._study.key, trial.number, trial.attempt):
                return record
        return None

    def get(self, trial: TrialFile) -> Record | None:
        """Return the run that a trial names; None if it has been deleted."""
        try:
            return self._store.get(str(trial.run)) if trial.run else None
        except RunNotFound:
            return None


class TrialLauncher(TrialRuns):
    """Starts the runs of a study's trials, each once.

    Raises OptionError if the backend is no longer installed.
    """

    def __init__(self, study: StudyFile, folder: Path) -> None:
        super().__init__(study, folder)
        self._backend = cast("StartsTrials", find(study.backend))

    def begin(self, trial: TrialFile, record: Record) -> None:
        """Start a run that was added. Raises DistrainError or OSError."""
        target = record.folder / PROGRAM_FOLDER
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self._folder / PROGRAM_FOLDER, target, copy_function=_copy)
        begin_trial(record, self._folder, here=self._backend.here)
        arguments = tuple(f"--{name}={text}" for name, text in _texts(trial).items())
        share = self._study.devices[trial.slot] if self._study.devices else None
        start = TrialStart(trial.number, arguments, share, self._study.idle)
        self._backend.begin_trial(self._folder, start, record.folder)

    def status(self, record: Record) -> Status:
        """Return the status of a run."""
        return self._backend.status(record.handle, record.folder)

    def has_begun(self, record: Record) -> bool:
        """Return whether an earlier process has started a run that it added."""
        return self._backend.has_begun(record.folder)

    def discard(self, record: Record) -> None:
        """Remove a run that was never started from the list."""
        self._store.delete(record)

    def end(self) -> None:
        """Record that the study has ended."""
        self._backend.end_trials(self._folder)


def trial_run(trial: TrialFile) -> Run | None:
    """Return the handle on a trial's run; None before the trial has one.

    Raises RunNotFound if the run has been deleted.
    """
    return Run(Store().get(str(trial.run))) if trial.run else None


def _texts(trial: TrialFile) -> dict[str, str]:
    """Return the values as texts of a command line."""
    return {name: str(value) for name, value in trial.parameters.items()}


def _copy(source: str, target: str) -> None:
    """Copy a file. A large file becomes a link, if the file system has links."""
    if Path(source).stat().st_size >= LINKED_FROM_BYTES:
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copy2(source, target)
