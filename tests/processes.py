"""A backend of another package whose jobs are processes of this machine, in a shared folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from distrain_nb.backends.job import Job
from distrain_nb.backends.options import option
from distrain_nb.backends.remote.backend import RemoteBackend
from distrain_nb.backends.remote.options import RemoteOptions
from distrain_nb.backends.remote.service import Gone, Observed, Pace
from distrain_nb.backends.remote.shared_folder import SharedFolderService, SharedSpec
from distrain_nb.findings import Finding
from distrain_nb.types import JsonObject
from distrain_nb.worker.files.status import State


@dataclass(frozen=True)
class ProcessOptions(RemoteOptions):
    jobs: str = option("FOLDER", "folder of its jobs", "")


@dataclass(frozen=True)
class ProcessPlan:
    job: Job[ProcessOptions]
    ranks_per_replica: int = 1
    gpus: int = 0
    findings: tuple[Finding, ...] = ()

    def spec(self) -> SharedSpec:
        return SharedSpec.for_job(self.job, self.job.options.jobs, 1)

    def __str__(self) -> str:
        return json.dumps(self.spec().environment)


class ProcessBackend(RemoteBackend[ProcessOptions, ProcessPlan]):
    name, title, options, has_image = "processes", "other processes", ProcessOptions, False
    pace = Pace(look=0.1, quiet=0.0)

    def plan(self, job: Job[ProcessOptions]) -> ProcessPlan:
        return ProcessPlan(job)

    def service(
        self, spec: JsonObject, endpoints: Mapping[str, str], folder: Path
    ) -> ProcessService:
        return ProcessService(SharedSpec.of(spec))


@dataclass(frozen=True)
class ProcessService(SharedFolderService[SharedSpec]):
    """The file `pid` has the replica's process."""

    def create(self, request: JsonObject) -> str:
        process = subprocess.Popen(self.command(0, sys.executable), start_new_session=True)
        (self.folder / "pid").write_text(str(process.pid))
        return str(process.pid)

    def find(self, request: JsonObject) -> str:
        pid = self.folder / "pid"
        return pid.read_text() if pid.exists() else ""

    def observe(self, job: str) -> Observed:
        has_ended = self._has_ended(int(job))  # asked first: its last act is to write the outcome
        outcome = self.outcome()
        if outcome is None and has_ended:  # a signal came before it had a handler
            raise Gone("its process has ended")
        return outcome or Observed(State.RUNNING)

    def _has_ended(self, pid: int) -> bool:
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    def cancel(self, job: str) -> None:
        os.kill(int(job), 15)


class ForgetfulPlan(ProcessPlan):
    def spec(self) -> SharedSpec:
        return SharedSpec(folder=str(Path(self.job.options.jobs) / self.job.nonce))


class ForgetfulBackend(ProcessBackend):
    """Its plan leaves out what a job is told."""

    name = "forgetful"

    def plan(self, job: Any) -> ProcessPlan:
        return ForgetfulPlan(job)
