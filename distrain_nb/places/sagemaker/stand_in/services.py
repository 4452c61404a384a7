"""Everything that a training job on SageMaker meets, started and stopped together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.config import private_home
from distrain_nb.places.sagemaker.stand_in.attempt import TrainingJobContext
from distrain_nb.places.sagemaker.stand_in.aws import aws
from distrain_nb.places.sagemaker.stand_in.jobs import TrainingJobService
from distrain_nb.places.sagemaker.stand_in.protocol import serve
from distrain_nb.places.sagemaker.stand_in.store import DATA, KeptBucket, ObjectStore, client
from distrain_nb.places.sagemaker.stand_in.streams import LogStreams
from distrain_nb.places.sagemaker.stand_in.tuning_jobs import TuningJobService
from distrain_nb.program.progress import report
from distrain_nb.rehearsal import engine
from distrain_nb.rehearsal.registry import registry
from distrain_nb.scratch import Scratch

if TYPE_CHECKING:
    from distrain_nb.rehearsal.faults import Faults


@dataclass(frozen=True)
class SageMakerStandIn:
    """The services, by the addresses at which boto3 finds them, and what their jobs run on."""

    endpoints: Mapping[str, str]
    context: TrainingJobContext


@contextmanager
def stand_in(faults: Faults, buckets: Iterable[str] = ()) -> Iterator[SageMakerStandIn]:
    """Run services with these buckets, which have what is below `DATA` of our home.

    Raises DistrainError naming what is not installed.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(Scratch("rehearsal"))
        report("looking for what can run images here")
        chosen = engine.choose()
        report("starting the rehearsal's registry")
        images = stack.enter_context(registry(private_home() / "rehearsal" / "registry"))
        report("starting the rehearsal's S3")
        endpoint = stack.enter_context(aws(folder, faults))
        store = ObjectStore(client("s3", endpoint))
        folders = {name: private_home() / DATA / name for name in buckets}
        for name in folders:
            store.create(name)
        user_store = ObjectStore(client("s3", endpoint, key="rehearsal"))
        standing = [
            KeptBucket.fill(name, path, user_store)
            for name, path in folders.items()
            if path.is_dir()
        ]
        streams = LogStreams(endpoint, faults)
        stack.callback(streams.close)
        report("starting the rehearsal's SageMaker")
        context = TrainingJobContext(
            chosen,
            store,
            streams,
            faults,
            int(endpoint.rpartition(":")[2]),
            folder,
            standing_buckets=standing,
        )
        jobs = TrainingJobService(context)
        stack.callback(jobs.close)
        tuning = TuningJobService(jobs)
        stack.callback(tuning.close)
        url = stack.enter_context(serve({**jobs.operations(), **tuning.operations()}))
        endpoints = {
            "sagemaker": url,
            "s3": endpoint,
            "sts": endpoint,
            "logs": endpoint,
            "registry": images,
            "late": str(faults.late),
        }
        yield SageMakerStandIn(endpoints, context)
