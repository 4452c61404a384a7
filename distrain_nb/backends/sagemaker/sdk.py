"""Training jobs as version 3 of SageMaker's SDK knows them (`sagemaker-core`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.sdk import needing

if TYPE_CHECKING:
    from distrain_nb.backends.sagemaker.plan import SageMakerSpec
    from distrain_nb.types import Value

_ARN = re.compile(
    r"arn:aws[\w-]*:sagemaker:(?P<region>[a-z0-9-]+):\d*:training-job/(?P<name>[\w-]+)"
)


def foreign(job: object) -> SageMakerSpec | None:
    """The spec of a `sagemaker.core.resources.TrainingJob`, or its ARN."""
    found = _ARN.fullmatch(job if isinstance(job, str) else _text(job, "training_job_arn"))
    if found is None:
        return None
    from distrain_nb.backends.sagemaker.plan import SageMakerSpec

    name = _text(job, "training_job_name") or found["name"]
    return SageMakerSpec(job=name, region=found["region"])


def sdk_object(name: str, region: str) -> Value:
    """The SDK's `TrainingJob` of that name. Raises DistrainError."""
    with needing("sagemaker-sdk"):
        import boto3
        from sagemaker.core.resources import TrainingJob

        from distrain_nb.backends.sagemaker.client import plain_words
    with plain_words("ask for the job"):
        return TrainingJob.get(name, session=boto3.Session(region_name=region), region=region)


def _text(job: object, name: str) -> str:
    value = getattr(job, name, "")
    return value if isinstance(value, str) else ""  # the SDK has `Unassigned` objects
