"""Training jobs as version 3 of SageMaker's SDK knows them (`sagemaker-core`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.sdk import sdk_required
from distrain_nb.types import Value

if TYPE_CHECKING:
    from distrain_nb.places.sagemaker.plan import SageMakerSpec

_TUNING = "hyper-parameter-tuning-job"
_ARN = re.compile(
    r"arn:aws[\w-]*:sagemaker:(?P<region>[a-z0-9-]+):\d*"
    rf":(?P<kind>training-job|{_TUNING})/(?P<name>[\w-]+)"
)


def foreign(job: object) -> SageMakerSpec | None:
    """Return the spec of a `TrainingJob` or a `HyperParameterTuningJob` of
    `sagemaker.core.resources`, of a `HyperparameterTuner` that has started one, or of an ARN of
    these."""
    job = getattr(job, "latest_tuning_job", None) or job
    match = _ARN.fullmatch(job if isinstance(job, str) else _arn(job))
    if match is None:
        return None
    from distrain_nb.places.sagemaker.plan import SageMakerSpec

    study = match["kind"] == _TUNING
    parameter = "hyper_parameter_tuning_job_name" if study else "training_job_name"
    name = _text(job, parameter) or match["name"]
    return SageMakerSpec(job=name, region=match["region"], study=study)


def sdk_object(name: str, region: str) -> Value:
    """Return the SDK's `TrainingJob` of that name. Raises DistrainError."""
    with sdk_required("sagemaker-sdk"):
        import boto3
        from sagemaker.core.resources import TrainingJob

        from distrain_nb.places.sagemaker.client import plain_words
    with plain_words("ask for the job"):
        return TrainingJob.get(name, session=boto3.Session(region_name=region), region=region)


def _arn(job: object) -> str:
    return _text(job, "training_job_arn") or _text(job, "hyper_parameter_tuning_job_arn")


def _text(job: object, name: str) -> str:
    value = getattr(job, name, "")
    return value if isinstance(value, str) else ""  # the SDK has `Unassigned` objects
