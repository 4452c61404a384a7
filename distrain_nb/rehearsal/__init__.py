"""Stand-ins that speak the clouds' protocols and run a job's replicas here, from its image.

    with distrain_nb.rehearsal.vertex(buckets=["my-bucket"]) as endpoints:
        ...

gives tests of your own the addresses of Vertex AI, Cloud Logging (gRPC without encryption), Cloud
Storage (http) and a container registry on this machine; `sagemaker` in the place of `vertex` those
of SageMaker, S3, STS, CloudWatch Logs and a container registry.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["sagemaker", "vertex"]


@contextmanager
def vertex(faults: str = "", buckets: Iterable[str] = ()) -> Iterator[Mapping[str, str]]:
    """Run Vertex AI on this machine; give `aiplatform`, `logging`, `storage` and `registry`, by
    address.

    `faults` is what `--rehearse` takes, such as `preempt=workerpool1-0@30s`; `buckets` are there
    from the start. Raises OptionError for faults that can't happen, DistrainError naming what this
    machine lacks.
    """
    from distrain_nb.program.progress import report
    from distrain_nb.rehearsal.faults import Faults

    report("loading Google's libraries")
    from distrain_nb.rehearsal.vertex_ai.stand_in import stand_in

    with stand_in(Faults.parse(faults), buckets) as running:
        yield running.endpoints


@contextmanager
def sagemaker(faults: str = "", buckets: Iterable[str] = ()) -> Iterator[Mapping[str, str]]:
    """Run SageMaker on this machine; give URLs of `sagemaker`, `s3`, `sts` and `logs`, and the
    address of the `registry`. Any credentials will do.

    `faults` is what `--rehearse` takes, such as `spot=algo-2@30s`; `buckets` are there from the
    start, with the files below `rehearsal/s3/BUCKET` of `DISTRAIN_HOME` as objects. Raises
    OptionError for faults that can't happen, DistrainError naming what this machine lacks.
    """
    from distrain_nb.program.progress import report
    from distrain_nb.rehearsal.faults import SAGEMAKER, Faults

    report("loading AWS's libraries")
    chosen = Faults.parse(faults, SAGEMAKER)
    try:
        from distrain_nb.rehearsal.sagemaker_ai.stand_in import stand_in
    except ModuleNotFoundError as missing:
        from distrain_nb.errors import DistrainError

        raise DistrainError(
            f"A rehearsal for SageMaker needs {missing.name}: "
            "`pip install 'distrain-nb[rehearsal]'`."
        ) from None
    with stand_in(chosen, buckets) as running:
        yield running.endpoints
