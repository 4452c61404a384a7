"""Everything that a custom job on Vertex AI meets, started and stopped together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.config import private_home
from distrain_nb.places.vertex.stand_in.buckets import buckets
from distrain_nb.places.vertex.stand_in.entries import Entries
from distrain_nb.places.vertex.stand_in.execution import CustomJobContext
from distrain_nb.places.vertex.stand_in.experiment_servers import (
    metadata_service,
    tensorboard_service,
)
from distrain_nb.places.vertex.stand_in.jobs import JobService
from distrain_nb.places.vertex.stand_in.metadata import MetadataService
from distrain_nb.places.vertex.stand_in.pipelines import PipelineService
from distrain_nb.places.vertex.stand_in.resources import Resources
from distrain_nb.places.vertex.stand_in.servers import (
    job_service,
    logging_service,
    pipeline_service,
    serve,
)
from distrain_nb.places.vertex.stand_in.tensorboards import TensorboardService
from distrain_nb.places.vertex.stand_in.tuning_jobs import HyperparameterTuningService
from distrain_nb.program.progress import report
from distrain_nb.rehearsal import engine
from distrain_nb.rehearsal.registry import registry
from distrain_nb.scratch import Scratch

if TYPE_CHECKING:
    from distrain_nb.rehearsal.faults import Faults


@dataclass(frozen=True)
class VertexStandIn:
    """The services, by the addresses at which the real client libraries find them."""

    endpoints: dict[str, str]
    entries: Entries
    jobs: JobService
    folder: Path


@contextmanager
def stand_in(faults: Faults, names: Iterable[str] = ()) -> Iterator[VertexStandIn]:
    """Run services with these buckets. Raises DistrainError naming what is not installed."""
    home = private_home() / "rehearsal"
    with ExitStack() as stack:
        folder = stack.enter_context(Scratch("rehearsal"))
        report("looking for what can run images here")
        chosen = engine.choose(bare=True)
        report("starting the rehearsal's registry")
        images = stack.enter_context(registry(home / "registry"))
        report("starting the rehearsal's Cloud Storage")
        stored = stack.enter_context(buckets(folder))
        for name in names:
            stored.create(name)
        report("starting the rehearsal's Vertex AI")
        entries = Entries(faults)
        jobs = JobService(CustomJobContext(chosen, stored, entries, faults))
        tuning = HyperparameterTuningService(jobs, folder / "metrics")
        resources = stack.enter_context(closing(Resources(home / "experiments.db")))
        services = (
            job_service(jobs, tuning),
            pipeline_service(PipelineService(jobs)),
            metadata_service(MetadataService(resources)),
            tensorboard_service(TensorboardService(resources)),
        )
        endpoints = {
            "aiplatform": stack.enter_context(serve(*services)),
            "logging": stack.enter_context(serve(logging_service(entries))),
            "storage": stored.endpoint,
            "registry": images,
            "late": str(faults.late),
        }
        stack.callback(jobs.close)
        stack.callback(tuning.close)
        yield VertexStandIn(endpoints, entries, jobs, folder)
