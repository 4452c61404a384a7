"""The studies that there are: a folder for each, by its number."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, overload

from distrain_nb import api
from distrain_nb.backends.plugins import all_backends
from distrain_nb.config import home, private_home
from distrain_nb.errors import (
    DistrainError,
    RunNotReady,
    RunUnreadable,
    StudyNotFound,
)
from distrain_nb.run import Run, Store
from distrain_nb.run.disk_usage import Reclaimable, size_of
from distrain_nb.run.numbered_folders import remove
from distrain_nb.run.store import not_found
from distrain_nb.study.files import (
    TRIALS_FOLDER,
    StudyFile,
    start_process,
    study_folders,
)
from distrain_nb.study.study import Study
from distrain_nb.tracking import catch_up
from distrain_nb.tuning import options

if TYPE_CHECKING:
    from distrain_nb.backends.remote.sdk import AnySdkTuningBackend


def studies() -> list[Study]:
    """Return all studies, the newest first, with those that can't be read. Raises StoreError."""
    return [Study(folder) for folder in study_folders(home()).complete()]


def find_study(study: object = "last") -> Study:
    """Find a study by number, by name (the newest of that name), or `last`.

    Raises StudyNotFound naming those that there are; StoreError.
    """
    catch_up()
    all_studies, name = studies(), str(study)
    for item in all_studies:
        if name in ("last", str(item.id), item.name):
            return item
    none_yet = "none yet: start one with --tune"
    raise StudyNotFound(not_found("study", name, all_studies, none_yet))


def delete(study: Study) -> None:
    """Remove a study that has ended, or that can't be read, with its trials' runs as far as its
    file tells them. What was removed when this was interrupted is gone, and the rest can be deleted
    again.

    Raises RunNotReady if something of it goes on, StoreError.
    """
    if not study.may_be_deleted:
        raise RunNotReady(f"study {study.id} is {study.state}: stop it first")
    store, runs = Store(), list[Run]()
    with suppress(RunUnreadable):  # its file has the key by which its runs are known
        key = study.file.key
        runs = [Run(record) for record in store.all() if record.handle.get("study") == key]
    for run in runs:
        if not run.may_be_deleted:
            raise RunNotReady(f"run {run.id} of study {study.id} is {run.state}: cancel it first")
    for run in runs:
        store.delete(run.record)
    remove(study.folder)


def studies_ended_before(moment: float) -> Iterator[Reclaimable]:
    """Yield the folders of studies that ended before that, without the runs of their trials."""
    for study in studies():
        if study.ended_before(moment):
            yield Reclaimable(study.title, study.folder, size_of(study.folder))


def keys_of_unended() -> set[str]:
    """Return the keys of the studies that go on, which their trials' runs have."""
    keys = set()
    for study in studies():
        with suppress(RunUnreadable):
            if not study.may_be_deleted:
                keys.add(study.file.key)
    return keys


@contextmanager
def new_folder() -> Iterator[tuple[int, Path]]:
    """Have the block fill a folder for a study, by its number, `StudyFile` last. If the block
    raises, the folder is removed. Raises StoreError."""
    with study_folders(private_home()).new() as folder:
        (folder / TRIALS_FOLDER).mkdir()
        yield int(folder.name), folder


def new_key() -> str:
    return secrets.token_hex(8)


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
