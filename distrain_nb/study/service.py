"""A study whose service suggests and runs the trials.

Its answers become files and runs here.

The order of writes keeps a trial from having two runs, even if this process is killed in between.
First comes the trial's file. Then its run is added to the list, with the trial's number in its
handle. Then the file is written with the run's number. The next process finds a run without that
last write by its handle.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.plugins import find
from distrain_nb.backends.tuning import StartsTrials, Tunes
from distrain_nb.errors import OptionError
from distrain_nb.study.cost import StudyCost
from distrain_nb.study.endings import TrialMetrics
from distrain_nb.study.files import StudyFile, TrialFile, TrialState, read_trials
from distrain_nb.study.launching import TrialRuns
from distrain_nb.tracking import begin_trial
from distrain_nb.tuning.reports import final_values
from distrain_nb.tuning.spec import Value
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.status import Status

if TYPE_CHECKING:
    from distrain_nb.backends.tuning import ServiceTrial
    from distrain_nb.run.store import Record


def tuning_service(name: str) -> Tunes:
    """Return the backend of that name. Raises OptionError if its service doesn't tune."""
    backend = find(name)
    if not isinstance(backend, Tunes):
        raise OptionError(f"--tune: {backend.title} has no studies; leave out --on {name}")
    return backend


def service_of(name: str) -> Tunes | None:
    """Return the backend of that name if its service tunes.

    None means that trials are suggested here and started as runs. Raises OptionError for a backend
    that can do neither.
    """
    backend = find(name)
    if isinstance(backend, StartsTrials) and not isinstance(backend, Tunes):
        return None
    return tuning_service(name)


def carry(folder: Path) -> None:
    """Carry the study of a folder to its end.

    A study that another process has ended meanwhile stays as it is. Raises OptionError if its
    backend is not installed any more.
    """
    if Status.read(folder).state.final:
        return
    study = StudyFile.read(folder)
    tuning_service(study.backend).carry_study(folder, ServiceTrials(study, folder))


class ServiceTrials:
    """Keeps the trials of a study in files and runs, see `backends.tuning.TrialKeeper`."""

    def __init__(self, study: StudyFile, folder: Path) -> None:
        self._folder = folder
        self._spec = study.parsed
        self._experiments = study.experiments
        self._runs = TrialRuns(study, folder)
        self._cost = StudyCost.read(folder, study.backend)
        self._trials = {trial.number: trial for trial in read_trials(folder)}
        self._records: dict[int, Record] = {}
        self._metrics: dict[int, TrialMetrics] = {}

    def keep(self, trials: Sequence[ServiceTrial]) -> dict[int, Path]:
        """Write what has changed. Add a run for each new trial that has a job."""
        if self._cost:
            self._cost = self._cost.keep(self._folder)
        for service_trial in trials:
            trial = self._file_of(service_trial)
            if trial.number not in self._trials:
                self._save(trial)
            if service_trial.job and trial.number not in self._records:
                trial = self._with_run(trial)
            self._save(self._with_paid(self._with_values(trial)))
        return {n: record.folder for n, record in self._records.items() if record.folder.exists()}

    def give_up(self, why: str) -> None:
        """Cancel the trials that have not ended, for the reason *why*."""
        for trial in self._trials.values():
            if not trial.state.final:
                ended = replace(trial, state=TrialState.CANCELLED, why=why, end=time.time())
                self._save(ended)

    def _file_of(self, trial: ServiceTrial) -> TrialFile:
        now, state = time.time(), TrialState(trial.state)
        file = self._trials.get(trial.number) or TrialFile(trial.number, {}, begin=now)
        return replace(
            file,
            parameters=self._native(trial),
            state=state,
            goals=dict(trial.goals),
            steps=trial.steps,
            begin=trial.begin or file.begin,
            end=trial.end or file.end or (now if state.final else 0.0),
            why=trial.why,
        )

    def _with_values(self, trial: TrialFile) -> TrialFile:
        """Add the values that the run has reported, if the service has none."""
        record = self._records.get(trial.number)
        if record is None or (trial.goals and trial.steps):
            return trial
        metrics = self._metrics.setdefault(trial.number, TrialMetrics(record.folder))
        metrics.read()
        steps = len(metrics.rows(self._spec.goals[0].metric))
        goals = {} if trial.state.final else final_values(self._spec, metrics.values)
        return replace(trial, goals=trial.goals or goals, steps=trial.steps or steps)

    def _with_paid(self, trial: TrialFile) -> TrialFile:
        """Add the time for which the run had machines, once the run has ended."""
        record = self._records.get(trial.number)
        if record is None or self._cost is None or trial.paid or not _has_ended(record.folder):
            return trial
        return replace(trial, paid=self._cost.paid(record.folder))

    def _native(self, trial: ServiceTrial) -> dict[str, Value]:
        """Return the trial's values in the spec's order, in the types that cells get."""
        texts = dict(trial.parameters)
        values = {p.name: p.native(texts[p.name]) for p in self._spec.parameters if p.name in texts}
        return {**values, **{name: item for name, item in texts.items() if name not in values}}

    def _save(self, trial: TrialFile) -> None:
        if trial != self._trials.get(trial.number):
            trial.write(self._folder)
            self._trials[trial.number] = trial

    def _with_run(self, trial: TrialFile) -> TrialFile:
        """Add the trial's run. A new run is added only once: a deleted one stays deleted."""
        if trial.run:
            record = self._runs.get(trial)
        else:
            record = self._runs.find(trial) or self._runs.added(trial)
            begin_trial(record, self._folder, here=False, experiments=self._experiments)
        if record is None:
            return trial
        self._records[trial.number] = record
        return replace(trial, run=record.id)


def _has_ended(run: Path) -> bool:
    try:
        return Status.read(run).state.final
    except (OSError, fields.Damaged):
        return False
