"""SageMaker: hosts on managed instances of AWS, from a training job."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from distrain_nb.backends.checks import login, packages
from distrain_nb.backends.remote.sdk import SdkTuningBackend
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.places.sagemaker.channels import Channel
from distrain_nb.places.sagemaker.names import INPUT
from distrain_nb.places.sagemaker.options import SageMakerJob, SageMakerOptions
from distrain_nb.places.sagemaker.sdk import foreign, sdk_object
from distrain_nb.types import JsonObject, Value

if TYPE_CHECKING:
    from distrain_nb.backends.checks import Check
    from distrain_nb.backends.price import Price
    from distrain_nb.backends.settings import Settled
    from distrain_nb.layout.choices import Choice
    from distrain_nb.places.sagemaker.plan import SageMakerPlan, SageMakerSpec
    from distrain_nb.places.sagemaker.service import SageMakerService
    from distrain_nb.places.sagemaker.tuning_plan import SageMakerStudyPlan
    from distrain_nb.program.advice import RemoteFolder
    from distrain_nb.tuning.spec import StudySpec


class SageMakerBackend(SdkTuningBackend[SageMakerOptions, "SageMakerPlan"]):
    """Jobs in AWS, which a cell does not wait for."""

    name = "sagemaker"
    packages = ("boto3",)
    extra = "sagemaker"
    title = "SageMaker"
    options = SageMakerOptions
    example: ClassVar = {"workers": "ml.m5.xlarge"}
    mounted = ("/opt/ml/",)
    paid_phases = ("downloading",)
    stops_trials: ClassVar[bool] = True

    def data(self, name: str, uri: str) -> str:
        """Return the folder of the channel that brings the data. Raises OptionError.

        In Pipe mode, return the FIFO of the first pass: the channel's name with `_0`. Those of the
        next passes are `_1`, `_2`, …
        """
        if uri.startswith("/"):
            return uri
        channel = Channel.read(f"{name}={uri}", "data")
        return f"{INPUT}/{channel.name}{'_0' if channel.mode == 'Pipe' else ''}"

    def parts(self, text: str) -> tuple[str, str]:
        """Return the URI, and the channel's settings, which follow a comma."""
        path, comma, rest = text.partition(",")
        return path, comma + rest

    def brings(self, uri: str) -> bool:
        """Return whether a channel brings the data: for all but paths of the machine."""
        return not uri.startswith("/")

    def bucket(self, uri: str) -> str:
        """Return the bucket's URI, since only channels and checkpoints have folders.

        Raises OptionError for a bucket outside of S3.
        """
        if not uri.startswith("s3://"):
            raise OptionError(f"the role of a job on SageMaker opens S3, s3://…, not {uri}")
        return uri

    def staging(self, job: SageMakerJob) -> str:
        from distrain_nb.places.sagemaker.settings import settings_of

        return f"{settings_of(job).folder}/data"

    def remote_folders(self, job: SageMakerJob) -> Sequence[RemoteFolder]:
        """Return the folders of channels in FastFile mode."""
        from distrain_nb.places.sagemaker.options import channels
        from distrain_nb.program.advice import RemoteFolder

        uploads = {upload.uri: upload for upload in job.uploads}
        folders = []
        for channel in channels(job):
            if channel.mode != "FastFile":
                continue
            folder = RemoteFolder(
                f"{INPUT}/{channel.name}",
                channel.uri,
                variables=frozenset({f"SM_CHANNEL_{channel.name.upper()}"}),
            )
            uploaded = uploads.get(channel.uri)
            folders.append(
                folder.of(uploaded.source, uploaded.files, uploaded.size) if uploaded else folder
            )
        return folders

    def defaults(self, environ: Mapping[str, str]) -> Settled:
        from distrain_nb.places.sagemaker.settings import machine_settings

        return machine_settings(environ)

    def settings(self, job: SageMakerJob) -> Settled:
        from distrain_nb.places.sagemaker.settings import settings_with_origin

        return settings_with_origin(job)

    def machine(self, job: SageMakerJob) -> Mapping[str, str]:
        """Return what the named image says of itself."""
        from distrain_nb.backends.remote.equipment import registry_answer
        from distrain_nb.places.sagemaker.containers import stock_of
        from distrain_nb.places.sagemaker.settings import settings_of

        return registry_answer(job, stock_of(job, settings_of(job).region))

    def offers(self, layout: Layout, path: str) -> Iterator[Choice]:  # noqa: ARG002
        if path == "region":
            from distrain_nb.layout.choices import Choice
            from distrain_nb.places.sagemaker.regions import regions

            for name, title in sorted(regions().items()):
                yield Choice(name, f"{name} · {title}")

    def price(self, layout: Layout) -> Price:
        """Return the price from AWS's Price List. Raises NoPrice."""
        from distrain_nb.places.sagemaker.prices import price

        return price(layout)

    def plan(self, job: SageMakerJob) -> SageMakerPlan:
        """Return the request for a job. Raises OptionError for options that can't be read."""
        from distrain_nb.places.sagemaker.plan import plan

        return plan(job)

    def plan_study(self, plan: SageMakerPlan, spec: StudySpec) -> SageMakerStudyPlan:
        """Return the request for a study. Raises OptionError for a study without a goal."""
        from distrain_nb.places.sagemaker.tuning_plan import plan_study

        return plan_study(plan, spec)

    def checks(self) -> Iterator[Check]:
        from distrain_nb.places.sagemaker.settings import login_of

        yield packages("packages", self.packages, self.extra)
        yield login(
            login_of(os.environ), "run aws configure or aws sso login; in Studio its role serves"
        )

    def access(self, settled: Settled) -> Iterator[Check]:
        from distrain_nb.places.sagemaker.access import access

        return access(settled)

    def service(
        self,
        spec: JsonObject,
        endpoints: Mapping[str, str],
        folder: Path,  # noqa: ARG002
    ) -> SageMakerService:
        """Return a job, a study or one of its trials on SageMaker, or on the stand-in that listens
        at `endpoints`."""
        from distrain_nb.places.sagemaker.plan import SageMakerSpec
        from distrain_nb.places.sagemaker.service import ForeignService, SageMakerService

        sagemaker_spec = SageMakerSpec.of(spec)
        if sagemaker_spec.study or (sagemaker_spec.job and sagemaker_spec.run):
            from distrain_nb.places.sagemaker.study_service import StudyService, TrialService

            return (StudyService if sagemaker_spec.study else TrialService)(
                sagemaker_spec, endpoints
            )
        if not sagemaker_spec.job:
            return SageMakerService(sagemaker_spec, endpoints)
        return ForeignService(sagemaker_spec, endpoints)

    def foreign(self, job: object) -> SageMakerSpec | None:
        """Return the spec of the job that an object of the SDK, or its name, stands for."""
        return foreign(job)

    def _object(self, name: str, spec: JsonObject) -> Value:
        return sdk_object(name, str(spec["region"]))
