"""Backends whose jobs can have the ranks of a session: the start of one, and cells for it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distrain_nb.backends.base import Handle
from distrain_nb.backends.job import Job
from distrain_nb.backends.remote.options import RemoteOptions, RemoteOptionsT
from distrain_nb.backends.remote.plan import RemotePlanT
from distrain_nb.backends.remote.processes import start_detached
from distrain_nb.backends.remote.resuming import ResumingBackend
from distrain_nb.backends.remote.shared_folder import SharedSpec
from distrain_nb.backends.sessions import submit_cell
from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding
from distrain_nb.worker.files.folder import CARRIER_LOG
from distrain_nb.worker.files.launch import Launch, ProcessSpec
from distrain_nb.worker.files.session import SessionFile
from distrain_nb.worker.files.status import TAKEN_UP_WITHIN_S, Owner, Process, Status
from distrain_nb.worker.files.tracked import TRACKED_VARIABLE
from distrain_nb.worker.replica import shared
from distrain_nb.worker.replica.replica import TRAINING_ROLES

SESSION = "distrain_nb.backends.remote.staying"
# Beside the idle time of the session, whose process ends it by then if it is there.
ENDS_LATER_S = 60.0
LOOK_S = 0.05


@dataclass(frozen=True, kw_only=True)
class CellSpec(SharedSpec):
    """What a cell is carried by: `folder` is that of its session."""

    ranks: tuple[int, ...]
    results: tuple[str, ...] = ()
    timeout: float | None = None
    grace: float = 1.5


@dataclass(frozen=True)
class CellPlan:
    """A cell for ranks of the session that has that folder."""

    job: Job[RemoteOptions]
    session: str
    processes: tuple[Process, ...]
    gpus: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def ranks_per_replica(self) -> int:
        return len(self.processes)

    def spec(self) -> CellSpec:
        return CellSpec(
            folder=self.session,
            ranks=tuple(p.rank for p in self.processes if p.rank is not None),
            results=self.job.results,
            timeout=self.job.layout.timeout,
            grace=self.job.config.grace,
        )

    @property
    def launch(self) -> Launch:
        """What this machine knows of its processes."""
        specs = (ProcessSpec(p.label, p.role, p.replica, p.rank, {}) for p in self.processes)
        kernel = Owner.of(os.getpid()) if self.job.waits else None
        return Launch(tuple(specs), str(self.job.folder), results=self.job.results, kernel=kernel)

    def __str__(self) -> str:
        labels = ", ".join(process.label for process in self.processes)
        return f"a cell for session {Path(self.session).name}: {labels}"


class StayingBackend(ResumingBackend[RemoteOptionsT, RemotePlanT]):
    """A backend whose service is a `SharedFolderService`, and whose ranks can stay."""

    asks = True

    def start_session(self, plan: RemotePlanT, folder: Path) -> None:
        """Have a process of its own send the job, and hand its replicas the cells."""
        spec = plan.spec()
        assert isinstance(spec, SharedSpec)
        roles = {role for role, _ in shared.replicas(spec.environment[shared.REPLICAS_VARIABLE])}
        launcher = spec.environment.get("DISTRAIN_LAUNCHER", "")
        if not roles <= set(TRAINING_ROLES) or launcher in ("mpi", "parameter-server"):
            raise OptionError(
                "a session has only ranks, which the worker forks: leave out --launcher mpi, "
                "--launcher parameter-server, --servers, --reducers and --evaluators"
            )
        idle = SessionFile.read(folder).idle + ENDS_LATER_S
        environment = {**spec.environment, shared.SESSION_VARIABLE: f"{idle:g}"}
        environment.pop(TRACKED_VARIABLE, None)  # cells are runs, the session is none
        spec = self.held(replace(spec, environment=environment, retries=0))
        self._write(plan, spec, folder, {})
        self._start_process(folder)

    def _start_process(self, folder: Path) -> None:
        start_detached(["-m", SESSION, str(folder)], folder / CARRIER_LOG)

    def session_status(self, folder: Path) -> Status:
        """Return the status in the folder. Start the session's process again if it is gone: its
        ranks are elsewhere."""
        status = Status.read(folder)
        if status.state.final or status.answered_for:
            return status
        self._start_process(folder)
        until = time.monotonic() + TAKEN_UP_WITHIN_S
        while not status.answered_for and time.monotonic() < until:
            time.sleep(LOOK_S)
            status = Status.read(folder)
        return Status.current(folder)

    def held(self, spec: SharedSpec) -> SharedSpec:
        """Return a spec whose job goes on with the replicas that are left."""
        return spec

    def session_plan(
        self, job: Job[RemoteOptionsT], folder: Path, ranks: Sequence[int]
    ) -> CellPlan:
        processes = (p for p in Status.read(folder).processes if p.rank in ranks)
        return CellPlan(job, str(folder), tuple(_numbered(processes)))

    def submit(self, plan: RemotePlanT | CellPlan, folder: Path) -> None:
        if not isinstance(plan, CellPlan):
            super().submit(plan, folder)
            return
        self._write(plan, plan.spec(), folder, {}, plan.processes)  # type: ignore[arg-type]
        plan.launch.write(folder)
        submit_cell(folder, Path(plan.session))

    def handle(self, plan: RemotePlanT | CellPlan) -> Handle:
        if isinstance(plan, CellPlan):
            return {"session": Path(plan.session).name}
        return super().handle(plan)

    def status(self, handle: Handle, folder: Path) -> Status:
        """Return the status in the folder. Only its session can go on with a cell."""
        return Status.current(folder) if "session" in handle else super().status(handle, folder)

    def fetch(self, handle: Handle, folder: Path) -> Mapping[str, str]:
        return {} if "session" in handle else super().fetch(handle, folder)


def _numbered(processes: Iterator[Process]) -> Iterator[Process]:
    for index, process in enumerate(processes):
        yield replace(process, index=index, outcome="")
