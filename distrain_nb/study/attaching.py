"""What a name, a number or a job of a cloud SDK stands for: a run, or a study."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, overload

from distrain_nb import api
from distrain_nb.backends.plugins import all_backends
from distrain_nb.errors import DistrainError, RunUnreadable
from distrain_nb.run import Run, Store
from distrain_nb.study.files import StudyFile
from distrain_nb.study.listing import new_folder, new_key, studies
from distrain_nb.study.processes import start_process
from distrain_nb.study.study import Study
from distrain_nb.tuning import options

if TYPE_CHECKING:
    from distrain_nb.backends.remote.sdk import AnySdkTuningBackend


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
    from distrain_nb.backends.remote.sdk import SdkTuningBackend

    for backend in all_backends():
        if isinstance(backend, SdkTuningBackend):
            foreign = backend.foreign(run)
            if foreign is not None and foreign.study:
                return _followed(backend, run)
    return api.attach(run)


def _started_last() -> Run | Study | None:
    """Return the newest of all studies and of the runs that are no trials; None if there is none.

    A study's trials start after a run that the user has started meanwhile.
    """
    runs = (Run(record) for record in Store().newest_first() if not record.handle.get("study"))
    run = next(runs, None)
    for study in studies():
        with suppress(RunUnreadable):
            return study if study.file.created > (run.created if run else 0.0) else run
    return run


def _followed(backend: AnySdkTuningBackend, job: object) -> Study:
    """Return the study that is that job; a new one if there is none."""
    for study in studies():
        with suppress(DistrainError, OSError, ValueError, KeyError, TypeError):  # damaged
            if study.file.backend == backend.name and backend.stands_for(job, study.folder):
                return study
    description = backend.foreign_study(job)
    with new_folder() as (number, folder):
        backend.follow_study(job, folder)
        StudyFile(
            id=number,
            name=description.name,
            key=new_key(),
            created=description.created,
            spec=dict(options.texts(description.spec)),
            line=f"--on {backend.name}",
            backend=backend.name,
            python=sys.executable,
        ).write(folder)
    start_process(folder)
    return Study(folder)
