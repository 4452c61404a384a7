"""This machine: replicas and ranks are processes, started from a warm fork server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.base import Backend
from distrain_nb.backends.options import NoOptions
from distrain_nb.backends.sessions import submit_cell
from distrain_nb.config import Config, path_named
from distrain_nb.errors import OptionError
from distrain_nb.places.local import buckets
from distrain_nb.places.local.dry import dry_plan
from distrain_nb.places.local.machine import machine
from distrain_nb.places.local.plan import FOLDERS, LocalJob, LocalPlan, plan
from distrain_nb.places.local.trials import has_begun, job_of_trial, launch_of
from distrain_nb.places.local.warm import submit_run
from distrain_nb.worker.data.storage import in_bucket
from distrain_nb.worker.files.folder import CHECKPOINTS_FOLDER, LAUNCH_FILE, PROGRAM_FOLDER
from distrain_nb.worker.files.launch import RUN, Launch
from distrain_nb.worker.files.status import Owner, State, Status, request_cancel

if TYPE_CHECKING:
    from distrain_nb.backends.base import Handle
    from distrain_nb.backends.job import Job
    from distrain_nb.backends.tuning import TrialStart


def begin(launch: Launch, folder: Path, idle: float, session: str = "") -> None:
    """Start the run of a folder that has its program, perhaps in the ranks of a session, or start
    the session of a folder. Raises DistrainError where it can't be."""
    for name in FOLDERS.values():
        (folder / name).mkdir(exist_ok=True)
    launch.write(folder)
    if session:
        submit_cell(folder, Path(session))
        return
    asking = Status(State.STARTING, supervisor=Owner.of(os.getpid()))
    asking.enter(State.STARTING, "starting").write(folder)
    submit_run(folder, idle)


@lru_cache(maxsize=8)
def _launch_of_session(folder: Path, inode: int, mtime_ns: int) -> Launch:  # noqa: ARG001
    """Return the launch of a session, which each of its cells takes; read once a version."""
    return Launch.read(folder)


class LocalBackend(Backend[NoOptions, LocalPlan]):
    """The default backend. A cell waits for its run, and the run ends with it."""

    name = "local"
    title = "this machine"
    options = NoOptions
    here = asks = waits_by_default = True

    def data(self, name: str, uri: str) -> str:
        """Buckets are fetched into a cache when the run starts; a run that reads them has theirs
        there. Raises OptionError."""
        if in_bucket(uri):
            return buckets.place(uri)
        scheme, separator, rest = uri.partition("://")
        if separator and scheme != "file":
            raise OptionError(
                f"--data {name}={uri}: expected a path, or a URI that begins with gs://, s3:// or "
                "file://"
            )
        try:
            path = path_named(rest if separator else uri)
        except OptionError as error:
            raise OptionError(f"--data {name}={error}") from None
        if not path.exists():
            raise OptionError(f"--data {name}={uri}: there is no {path} on this machine")
        return str(path.resolve())

    def machine(self, job: Job[NoOptions]) -> Mapping[str, str]:
        return machine(job)

    def plan(self, job: Job[NoOptions]) -> LocalPlan:
        return dry_plan(job) if job.as_rank else plan(job)

    def submit(self, plan: LocalPlan, folder: Path) -> None:
        try:
            buckets.fetch_all(plan.job.data, plan.job.config.data_limit)
            plan.job.program.write(folder / PROGRAM_FOLDER)
        except KeyboardInterrupt:  # nobody else answers for it yet
            Status(State.STARTING).enter(State.CANCELLED, str(State.CANCELLED)).write(folder)
            raise
        waiting = Owner.of(os.getpid()) if plan.job.waits else None
        begin(replace(plan.launch, kernel=waiting), folder, plan.job.config.idle, plan.session)

    def handle(self, plan: LocalPlan) -> Handle:
        return {"session": Path(plan.session).name} if plan.session else {}

    def start_session(self, plan: LocalPlan, folder: Path) -> None:
        if plan.launch.mpirun or any(process.rank is None for process in plan.launch.processes):
            raise OptionError(
                "a session has only ranks, which the worker forks: leave out --launcher mpi, "
                "--servers, --reducers and --evaluators"
            )
        begin(plan.launch, folder, plan.job.config.idle)

    def session_status(self, folder: Path) -> Status:
        return Status.current(folder)

    def session_plan(self, job: LocalJob, folder: Path, ranks: Sequence[int]) -> LocalPlan:
        written = (folder / LAUNCH_FILE).stat()
        launch = _launch_of_session(folder, written.st_ino, written.st_mtime_ns)
        launch = replace(
            launch,
            processes=tuple(spec for spec in launch.processes if spec.rank in ranks),
            results=job.results,
            timeout=job.layout.timeout,
            working_folder=str(job.folder),
            distributes=False,  # a cell needn't train
            retries=0,  # its names are as the failed attempt left them
            signal_before=None,
            cost_limit=None,
        )
        return LocalPlan(job, "session", len(ranks), 0, launch, (), str(folder))

    def has_saved(self, folder: Path) -> bool:
        checkpoints = folder / CHECKPOINTS_FOLDER
        return checkpoints.is_dir() and any(checkpoints.iterdir())

    def resume(self, before: Path, folder: Path) -> None:
        """Copy the program and the checkpoints, and start it. It outlives this kernel."""
        launch = Launch.read(before)
        for process in launch.processes:  # `mpirun` needs the folder's name, others a placeholder
            environment = process.environment
            environment.update(
                {name: text.replace(str(before), RUN) for name, text in environment.items()}
            )
        for name in (PROGRAM_FOLDER, CHECKPOINTS_FOLDER):
            shutil.copytree(before / name, folder / name, symlinks=True)
        begin(replace(launch, kernel=None), folder, Config.load().idle)

    adds_trials = True

    def trial_job(self, job: LocalJob, parallel: int) -> tuple[LocalJob, tuple[str, ...]]:
        return job_of_trial(job, parallel)

    def write_trials(self, plan: LocalPlan, folder: Path) -> None:
        buckets.fetch_all(plan.job.data, plan.job.config.data_limit)
        plan.job.program.write(folder / PROGRAM_FOLDER)
        waiting = Owner.of(os.getpid()) if plan.job.waits else None
        replace(plan.launch, kernel=waiting).write(folder)
        Status(State.STARTING).enter(State.STARTING, "starting").write(folder)

    def begin_trial(self, study: Path, trial: TrialStart, folder: Path) -> None:
        begin(launch_of(Launch.read(study), trial), folder, trial.idle)

    def has_begun(self, folder: Path) -> bool:
        return has_begun(folder)

    def end_trials(self, study: Path) -> None:
        """More may be wanted yet."""

    def status(self, handle: Handle, folder: Path) -> Status:  # noqa: ARG002
        return Status.current(folder)

    def cancel(self, handle: Handle, folder: Path) -> None:  # noqa: ARG002
        request_cancel(folder)
