"""The runs that there are: all of them, some side by side, one by its name or of a cloud's SDK."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from distrain_nb.backends.plugins import all_backends
from distrain_nb.errors import OptionError, RunNotFound, shown
from distrain_nb.run import Run, Store
from distrain_nb.tracking import catch_up

if TYPE_CHECKING:
    from distrain_nb.backends.remote.sdk import AnySdkBackend
    from distrain_nb.run.pages.compare import Comparison
    from distrain_nb.run.pages.run_list import RunList


def runs(experiment: str = "") -> RunList:
    """Return all runs, or those filed under an experiment, trials of studies among them; the newest
    first: a list with a DataFrame as its `frame`."""
    from distrain_nb.run.pages.run_list import RunList  # what reads metrics imports NumPy

    catch_up()
    return RunList(Run(record) for record in Store().all(experiment))


def compare(*runs: Run | str | int) -> Comparison:
    """Return runs side by side, by number or name, with a DataFrame as their `frame`.

    Raises RunNotFound, or OptionError for fewer than two.
    """
    from distrain_nb.run.pages.compare import compare as side_by_side

    return side_by_side(run if isinstance(run, Run) else attach(run) for run in runs)


def attach(run: object = "last") -> Run:
    """Return the run of that number or name, whoever started it; or of a job of a cloud's own SDK.

    Such a job is an `aiplatform.CustomJob`, a training job (pipeline), SageMaker's
    `sagemaker.core.resources.TrainingJob`, or its resource name or ARN. One that is on no list yet
    becomes a run: with the job's state, log and links, and `cancel`. Not there is what only our
    worker writes: `results`, `resources`, lines by rank, and metrics but for those that SageMaker's
    metric definitions find in the log.

    Raises RunNotFound for another name, OptionError for another object and for a job that tunes,
    which `study.attach` takes, StoreError.
    """
    catch_up()
    if isinstance(run, str | int):
        try:
            return Run(Store().get(str(run)))
        except RunNotFound:
            if "/" not in str(run):
                raise
    from distrain_nb.backends.remote.sdk import SdkRemoteBackend

    for backend in all_backends():
        if not isinstance(backend, SdkRemoteBackend):
            continue
        foreign = backend.foreign(run)
        if foreign is not None and foreign.study:
            raise OptionError(f"{foreign.job} tunes: `%distrain attach` makes it a study")
        if foreign is not None:
            return _followed(backend, run, foreign.job.rpartition("/")[2])
    if isinstance(run, str):
        raise RunNotFound(f"no run {run!r}, and no job of a cloud is called so")
    raise OptionError(f"{shown(run)} is neither a run's number or name nor a cloud's training job")


def _followed(backend: AnySdkBackend, job: object, title: str) -> Run:
    """Return the run that is that job; a new one if there is none."""
    store = Store()
    for record in store.newest_first():
        with suppress(OSError, ValueError, KeyError, TypeError):  # another's folder may be damaged
            if record.backend == backend.name and backend.stands_for(job, record.folder):
                return Run(record)
    title = f"job-{title}" if title.isdecimal() else title
    record = store.add(title, backend.name, "", f"--on {backend.name}")
    backend.follow(job, record.folder)
    return Run(record)
