"""Jobs of a cloud's own SDK: those of our runs for it, and those that it has started for us."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias, cast

from distrain_nb.backends.base import Handle
from distrain_nb.backends.remote.backend import RemoteBackend
from distrain_nb.backends.remote.carrier_start import start_carrier
from distrain_nb.backends.remote.options import RemoteOptionsT
from distrain_nb.backends.remote.plan import RemotePlanT
from distrain_nb.backends.remote.service import Stored, TuningService
from distrain_nb.backends.remote.studies import TuningBackend
from distrain_nb.backends.remote.submission import Journal, Spec, Submission, follow
from distrain_nb.backends.tuning import ServiceStudy
from distrain_nb.errors import DistrainError, RunNotReady
from distrain_nb.types import JsonObject, Unknown, Value


class NoOutput:
    """The output folder of a job that our worker doesn't write for."""

    def objects(self, below: str) -> Sequence[Stored]:  # noqa: ARG002
        """None."""
        return ()

    def read(self, name: str, start: int, end: int) -> bytes:
        """Raise DistrainError: there are no objects."""
        raise DistrainError(f"no object {name!r} ({start} to {end}): the job is not one of ours")


class SdkRemoteBackend(RemoteBackend[RemoteOptionsT, RemotePlanT]):
    """A remote backend whose cloud has an SDK with objects for jobs."""

    @abstractmethod
    def foreign(self, job: object) -> Spec | None:
        """Return the spec of the job that an object of the SDK, or a resource's name, stands for;
        None for others."""

    @abstractmethod
    def _object(self, name: str, spec: JsonObject) -> Value:
        """Return the SDK's object for the job of that name. Raises DistrainError."""

    def sdk_job(self, handle: Handle, folder: Path) -> Value:
        """Raise RunNotReady before the service has named the job and for a rehearsal, whose
        service has gone; DistrainError where the SDK isn't installed, or the service says no."""
        if handle.get("rehearsal"):
            raise RunNotReady("it was a rehearsal: the cloud has no job of it")
        name = Journal.read(folder).job
        if not name:
            raise RunNotReady("the service has no job of it yet")
        return self._object(name, Submission.read(folder).spec)

    def stands_for(self, job: object, folder: Path) -> bool:
        """Return whether the run in that folder is that job."""
        foreign = self.foreign(job)
        if foreign is None or Journal.read(folder).job.lower() != foreign.job.lower():
            return False  # names in ARNs are in lower case
        return Submission.read(folder).spec["region"] == foreign.region

    def follow(self, job: object, folder: Path) -> None:
        """Bring the log and state of a job that the SDK has started into a run's folder."""
        foreign = self.foreign(job)
        if foreign is None:
            raise DistrainError(f"{job!r} is not a job of {self.name}")
        follow(Submission(self.name, asdict(foreign), ()), folder)
        start_carrier(folder)


@contextmanager
def sdk_required(extra: str) -> Iterator[None]:
    """Turn the missing import of an SDK into a DistrainError that says how to install it."""
    try:
        yield
    except ImportError as error:
        raise DistrainError(f"{error}: pip install 'distrain-nb[{extra}]'") from error


class SdkTuningBackend(
    SdkRemoteBackend[RemoteOptionsT, RemotePlanT], TuningBackend[RemoteOptionsT, RemotePlanT]
):
    """A remote backend whose service tunes, and whose cloud has an SDK with objects for jobs."""

    def foreign_study(self, job: object) -> ServiceStudy:
        """Return the study as the service describes it. Raises DistrainError."""
        spec = self._foreign_spec(job)
        raw = json.loads(json.dumps(asdict(spec)))
        service = cast("TuningService", self.service(raw, {}, Path()))
        return service.study(spec.job)

    def follow_study(self, job: object, folder: Path) -> None:
        """Have its folder as if it had been submitted from here."""
        follow(Submission(self.name, asdict(self._foreign_spec(job)), ()), folder)

    def _foreign_spec(self, job: object) -> Spec:
        job_ = self.foreign(job)
        if job_ is None or not job_.study:
            raise DistrainError(f"{job!r} is not a tuning job of {self.name}")
        return job_


AnySdkBackend: TypeAlias = "SdkRemoteBackend[Unknown, Unknown]"
AnySdkTuningBackend: TypeAlias = "SdkTuningBackend[Unknown, Unknown]"
