"""The instances of a job: how many there are, and which the service has chosen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.processes import processes_of
from distrain_nb.backends.remote.service import LogEntry
from distrain_nb.layout import Layout, Pool
from distrain_nb.worker.files.status import Process
from distrain_nb.worker.replica.rank_count import VARIABLE, per_replica

if TYPE_CHECKING:
    from distrain_nb.backends.remote.service import Cursor
    from distrain_nb.places.sagemaker.request import Machines, RequestParts

SERVICE = "service"  # the role under which SageMaker itself speaks
_TAKEN = "instances"  # the key of a log's cursor


@dataclass(frozen=True)
class Instances:
    """The instances of a job with that request; `ask` gives the type and number of those that the
    service has chosen for a job, None as long as it hasn't."""

    request: RequestParts
    ask: Callable[[str], tuple[str, int] | None]
    _types: dict[str, tuple[str, int]] = field(default_factory=dict)

    def count(self, job: str) -> int | None:
        """Return how many there are; None as long as the service hasn't decided it. Raises
        DistrainError."""
        if self._choices:
            taken = self._taken(job)
            return taken[1] if taken else None
        machines = self.request["ResourceConfig"]
        return sum(group["InstanceCount"] for group in machines.get("InstanceGroups", [machines]))

    def processes(self, job: str) -> tuple[Process, ...]:
        """Return the job's processes, once the service has decided on its instances; none where it
        had no choice. Raises DistrainError."""
        taken = self._taken(job)
        if taken is None:
            return ()
        name, count = taken
        ranks = per_replica(self.request["Environment"].get(VARIABLE, "1"), name)
        return tuple(processes_of(Layout("sagemaker", Pool(1), Pool(count - 1)), ranks))

    def report(self, job: str, cursor: Cursor) -> tuple[list[LogEntry], dict[str, object]]:
        """Return a line that says which were taken, unless the log has it, and what the cursor is
        to keep of it. Raises DistrainError."""
        taken = self._taken(job)
        if taken is None:
            return [], {}
        name, count = taken
        names = [choice["InstanceType"] for choice in self._choices]
        place = f"{names.index(name) + 1} of {len(names)}" if name in names else "none of ours"
        text = f"SageMaker has taken {count} x {name}: choice {place}"
        lines = [] if _TAKEN in cursor else [LogEntry(time.time(), SERVICE, 0, text)]
        return lines, {_TAKEN: name}

    @property
    def _choices(self) -> list[Machines]:
        machines: Machines = self.request.get("ResourceConfig", {})
        return machines.get("InstancePreferences", [])

    def _taken(self, job: str) -> tuple[str, int] | None:
        if self._choices and job not in self._types and (taken := self.ask(job)):
            self._types[job] = taken
        return self._types.get(job)
