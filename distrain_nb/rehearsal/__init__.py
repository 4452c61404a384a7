"""Stand-ins that speak the clouds' protocols and run a job's replicas here, from its image.

    with distrain_nb.rehearsal.vertex(buckets=["my-bucket"]) as endpoints:
        ...

gives tests of your own the addresses of Vertex AI, Cloud Logging (gRPC without encryption), Cloud
Storage (http) and a container registry on this machine.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["vertex"]


@contextmanager
def vertex(faults: str = "", buckets: Iterable[str] = ()) -> Iterator[Mapping[str, str]]:
    """Vertex AI on this machine: `aiplatform`, `logging`, `storage` and `registry`, by address.

    `faults` is what `--rehearse` takes, such as `preempt=workerpool1-0@30s`; `buckets` are there
    from the start. Raises OptionError for faults that can't happen, DistrainError naming what this
    machine lacks.
    """
    from distrain_nb.rehearsal.faults import Faults
    from distrain_nb.rehearsal.vertex_ai.stand_in import stand_in

    with stand_in(Faults.parse(faults), buckets) as running:
        yield running.endpoints
