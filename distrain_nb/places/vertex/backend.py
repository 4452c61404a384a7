"""Vertex AI: worker pools on managed machines, from a custom job or a training pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from distrain_nb.backends.checks import login, packages
from distrain_nb.backends.remote.sdk import SdkTuningBackend
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.places.vertex.options import VertexJob, VertexOptions
from distrain_nb.places.vertex.sdk import foreign, sdk_object
from distrain_nb.types import JsonObject, Value

if TYPE_CHECKING:
    from distrain_nb.backends.checks import Check
    from distrain_nb.backends.price import Price
    from distrain_nb.backends.settings import Settled
    from distrain_nb.places.vertex.plan import VertexPlan, VertexSpec
    from distrain_nb.places.vertex.service import VertexService
    from distrain_nb.places.vertex.tuning_plan import VertexStudyPlan
    from distrain_nb.program.advice import RemoteFolder
    from distrain_nb.tuning.spec import StudySpec


class VertexBackend(SdkTuningBackend[VertexOptions, "VertexPlan"]):
    """Jobs in Google Cloud, which a cell does not wait for."""

    name = "vertex"
    packages = ("google-cloud-aiplatform", "google-cloud-logging", "google-cloud-storage")
    extra = "vertex"
    title = "Vertex AI"
    options = VertexOptions
    example: ClassVar = {"primary": "n1-standard-4"}
    mounted = ("/gcs/", "/mnt/")
    paid_phases = ("preparing",)

    def data(self, name: str, uri: str) -> str:
        """Buckets are mounted below /gcs/, NFS shares below /mnt/nfs/. Raises OptionError."""
        if uri.startswith("gs://"):
            return f"/gcs/{uri.removeprefix('gs://')}"
        if uri.startswith("/"):
            return uri
        raise OptionError(
            f"--data {name}={uri}: write gs://BUCKET/PATH, or the path at which the replicas have "
            "it mounted, such as /mnt/nfs/data"
        )

    def bucket(self, uri: str) -> str:
        """Below /gcs/. Raises OptionError for a bucket that is not Cloud Storage's."""
        if not uri.startswith("gs://"):
            raise OptionError(f"jobs on Vertex AI have Cloud Storage mounted, gs://…, not {uri}")
        return self.data("bucket", uri)

    def staging(self, job: VertexJob) -> str:
        from distrain_nb.places.vertex.settings import settings_of

        return f"gs://{settings_of(job).bucket or 'BUCKET'}/distrain/data"

    def remote_folders(self, job: VertexJob) -> Sequence[RemoteFolder]:
        """Return all that is below /gcs/."""
        from distrain_nb.program.advice import BUCKETS, RemoteFolder

        uploads = (
            RemoteFolder(
                self.data(upload.name, upload.target), upload.source, upload.files, upload.size
            )
            for upload in job.uploads
        )
        return (BUCKETS, *uploads)

    def defaults(self, environ: Mapping[str, str]) -> Settled:
        from distrain_nb.places.vertex.settings import machine_settings

        return machine_settings(environ)

    def settings(self, job: VertexJob) -> Settled:
        from distrain_nb.places.vertex.settings import settings_with_origin

        return settings_with_origin(job)

    def machine(self, job: VertexJob) -> Mapping[str, str]:
        """Return the date: containers end at one; and what the image that is named says of
        itself."""
        from distrain_nb.backends.remote.equipment import TODAY, registry_answer
        from distrain_nb.places.vertex.containers import stock_of
        from distrain_nb.places.vertex.settings import settings_of

        today = datetime.now(timezone.utc).date().isoformat()
        return {TODAY: today, **registry_answer(job, stock_of(job, settings_of(job).region))}

    def price(self, layout: Layout) -> Price:
        """Return it by the SKUs of Cloud Billing. Raises NoPrice."""
        from distrain_nb.places.vertex.prices import price

        return price(layout)

    def plan(self, job: VertexJob) -> VertexPlan:
        """Raise OptionError for options that can't be read."""
        from distrain_nb.places.vertex.plan import plan

        return plan(job)

    def experiments(self, plan: VertexPlan) -> str:
        """Return those of the job's project and region."""
        from distrain_nb.places.vertex.experiments import ExperimentsPlace

        if not plan.job.experiment:
            return ""
        settings, rehearsed = plan.settings, bool(plan.job.options.rehearsed)
        return str(ExperimentsPlace(settings.project, settings.region, rehearsed=rehearsed))

    def plan_study(self, plan: VertexPlan, spec: StudySpec) -> VertexStudyPlan:
        from distrain_nb.places.vertex.tuning_plan import VertexStudyPlan

        return VertexStudyPlan(plan, spec)

    def checks(self) -> Iterator[Check]:
        from distrain_nb.places.vertex.settings import login_of

        yield packages("packages", self.packages, self.extra)
        yield login(
            login_of(os.environ),
            "run gcloud auth application-default login; on Workbench the machine's account serves",
        )

    def access(self, settled: Settled) -> Iterator[Check]:
        from distrain_nb.places.vertex.access import access

        return access(settled)

    def service(
        self,
        spec: JsonObject,
        endpoints: Mapping[str, str],
        folder: Path,  # noqa: ARG002
    ) -> VertexService:
        """Return a job on Vertex AI, or on the stand-in that listens at `endpoints`."""
        from distrain_nb.places.vertex.plan import VertexSpec
        from distrain_nb.places.vertex.service import ForeignService, VertexService

        vertex_spec = VertexSpec.of(spec)
        if vertex_spec.study:
            from distrain_nb.places.vertex.study_service import VertexStudy

            return VertexStudy(vertex_spec, endpoints)
        if vertex_spec.run or not vertex_spec.job:
            return VertexService(vertex_spec, endpoints)
        return ForeignService(vertex_spec, endpoints)

    def foreign(self, job: object) -> VertexSpec | None:
        """Return the spec of the job that an object of the SDK, or its name, stands for."""
        return foreign(job)

    def _object(self, name: str, spec: JsonObject) -> Value:  # noqa: ARG002
        return sdk_object(name)
