"""Vertex AI, Cloud Logging and Cloud Storage as far as a custom job meets them, on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from distrain_nb.rehearsal.faults import Faults, FaultSyntax

SYNTAX = FaultSyntax(
    loss="preempt",
    replica=r"workerpool\d-\d+",
    permission=r".+",
    allowed="preempt=REPLICA@SECONDSs, preempt=REPLICA@TEXT, quota=METRIC, permission=NAME, "
    "late=SECONDSs, busy=EVERY, lost=COUNT",
)


def _lacks() -> Sequence[str]:
    from distrain_nb.rehearsal.needs import missing_requirements

    return missing_requirements({"gcp_storage_emulator": "gcp-storage-emulator"}, engine=False)


@contextmanager
def vertex(faults: str = "", buckets: Iterable[str] = ()) -> Iterator[Mapping[str, str]]:
    """Run Vertex AI on this machine; give `aiplatform`, `logging`, `storage` and `registry`, by
    address.

    Cloud Logging speaks gRPC without encryption, Cloud Storage http. `faults` is what `--rehearse`
    takes, such as `preempt=workerpool1-0@30s`; `buckets` are there from the start. Raises
    OptionError for faults that can't happen, DistrainError naming what this machine lacks.
    """
    from distrain_nb.program.progress import report

    report("loading Google's libraries")
    from distrain_nb.places.vertex.stand_in.services import stand_in

    with stand_in(Faults.parse(faults, SYNTAX), buckets) as running:
        yield running.endpoints


# `backends.plugins.lacks_for_rehearsal` asks it, before anything of the rehearsal is started.
setattr(vertex, "lacks", _lacks)  # noqa: B010
