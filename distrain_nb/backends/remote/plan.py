"""The plan of a job that runs elsewhere."""

from __future__ import annotations

from typing import Protocol, TypeVar

from distrain_nb.backends.job import Job
from distrain_nb.backends.plan import Plan
from distrain_nb.backends.remote.options import RemoteOptions
from distrain_nb.backends.remote.submission import Spec


class RemotePlan(Plan, Protocol):
    """A plan whose job runs elsewhere."""

    @property
    def job(self) -> Job[RemoteOptions]: ...

    def spec(self) -> Spec:
        """Return the facts of the run that the backend's `service` needs."""


RemotePlanT = TypeVar("RemotePlanT", bound=RemotePlan)
