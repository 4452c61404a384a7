"""Tuning jobs that a cloud's own SDK has started, followed as studies."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from typing import overload

from distrain_nb import api
from distrain_nb.backends.plugins import all_backends
from distrain_nb.backends.tuning import TunesForSDK
from distrain_nb.errors import DistrainError, RunUnreadable
from distrain_nb.run import Run, Store
from distrain_nb.study.files import StudyFile
from distrain_nb.study.listing import new_folder, new_key, studies
from distrain_nb.study.spawn import start_process
from distrain_nb.study.study import Study
from distrain_nb.tuning import options


@overload
def attach(run: int) -> Run: ...
@overload
def attach(run: object = "last") -> Run | Study: ...
def attach(run: object = "last") -> Run | Study:
    """Return the run of that number or name, whoever started it; or of a job of a cloud's own SDK,
    and the study of one that tunes. Without a name it is what was started last, run or study.

    A job is an object of the SDK, or its resource name or ARN. An
    `aiplatform.CustomJob`, a training job (pipeline) and SageMaker's
    `sagemaker.core.resources.TrainingJob` become runs, with state, log and links, and `cancel`. Not
    there is what only our worker writes: `results`, `resources`, lines by rank, and metrics but for
    those that SageMaker's metric definitions find in the log. An
    `aiplatform.HyperparameterTuningJob`, SageMaker's `HyperParameterTuningJob`, and a
    `HyperparameterTuner` that has started one become studies, with the trials that the service
    lists, each such a run. Each job is taken once.

    Raises RunNotFound for another name, OptionError for another object, or a tuning job that can't
    be a study, DistrainError where the service doesn't say what a tuning job tries, StoreError.
    """
    if run == "last":
        return _started_last() or api.attach(run)
    if isinstance(run, int) or (isinstance(run, str) and "/" not in run):
        return api.attach(run)
    for backend in all_backends():
        if isinstance(backend, TunesForSDK):
            foreign = backend.foreign(run)
            if foreign is not None and foreign.study:
                return _followed(backend, run)
    return api.attach(run)


def _started_last() -> Run | Study | None:
    """Return the newest of all studies and of the runs that are no trials; None if there is none.

    A study's trials start after a run that the user has started meanwhile.
    """
    runs = (Run(record) for record in Store().all() if not record.handle.get("study"))
    run = next(runs, None)
    for study in studies():
        with suppress(RunUnreadable):
            return study if study.file.created > (run.created if run else 0.0) else run
    return run


def _followed(backend: TunesForSDK, job: object) -> Study:
    """Return the study that is that job; a new one if there is none."""
    for known in studies():
        with suppress(DistrainError, OSError, ValueError, KeyError, TypeError):  # damaged
            if known.file.backend == backend.name and backend.stands_for(job, known.folder):
                return known
    said = backend.foreign_study(job)
    number, folder = new_folder()
    try:
        backend.follow_study(job, folder)
        StudyFile(
            id=number,
            name=said.name,
            key=new_key(),
            created=said.created,
            spec=dict(options.texts(said.spec)),
            line=f"--on {backend.name}",
            backend=backend.name,
            python=sys.executable,
        ).write(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    start_process(folder)
    return Study(folder)
