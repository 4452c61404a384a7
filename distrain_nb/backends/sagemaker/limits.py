"""The API's limits, which boto3 leaves to the service to find."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.sagemaker.names import ACCOUNT, IMAGE, RUN, filled
from distrain_nb.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class Limit:
    """The least and the most of a number, of a text's characters, or of a list's members; and the
    form that a text has to have."""

    least: int | None = None
    most: int | None = None
    form: str = ""


_S3 = Limit(0, 1024, r"(https|s3)://([^/]+)/?(.*)")
_KMS = Limit(0, 2048, r"[a-zA-Z0-9:/_-]*")
_VPC_ID = Limit(0, 32, r"[-0-9a-zA-Z]+")
_CHANNEL = "InputDataConfig[]"
_SOURCE = f"{_CHANNEL}.DataSource"

# By place: `[]` is a member of a list, `{}` a key and `{}=` a value of a mapping.
LIMITS: Mapping[str, Limit] = {
    "TrainingJobName": Limit(1, 63, r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"),
    "HyperParameters": Limit(0, 100),
    "HyperParameters{}": Limit(0, 256, r".*"),
    "HyperParameters{}=": Limit(0, 2500, r".*"),
    "AlgorithmSpecification.TrainingImage": Limit(0, 255, r".*"),
    "AlgorithmSpecification.MetricDefinitions": Limit(0, 40),
    "AlgorithmSpecification.MetricDefinitions[].Name": Limit(1, 255, r".+"),
    "AlgorithmSpecification.MetricDefinitions[].Regex": Limit(1, 500, r".+"),
    "AlgorithmSpecification.ContainerEntrypoint": Limit(1, 100),
    "AlgorithmSpecification.ContainerEntrypoint[]": Limit(0, 256, r".*"),
    "RoleArn": Limit(20, 2048, r"arn:aws[a-z\-]*:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+"),
    "InputDataConfig": Limit(1, 20),
    f"{_CHANNEL}.ChannelName": Limit(1, 64, r"[A-Za-z0-9\.\-_]+"),
    f"{_CHANNEL}.ContentType": Limit(0, 256, r".*"),
    f"{_SOURCE}.S3DataSource.S3Uri": _S3,
    f"{_SOURCE}.S3DataSource.AttributeNames": Limit(0, 16),
    f"{_SOURCE}.S3DataSource.AttributeNames[]": Limit(1, 256, r".+"),
    f"{_SOURCE}.FileSystemDataSource.FileSystemId": Limit(11, 21, r"(fs-[0-9a-f]{8,})"),
    f"{_SOURCE}.FileSystemDataSource.DirectoryPath": Limit(0, 4096, r".*"),
    "OutputDataConfig.KmsKeyId": _KMS,
    "OutputDataConfig.S3OutputPath": _S3,
    "ResourceConfig.VolumeKmsKeyId": _KMS,
    "ResourceConfig.KeepAlivePeriodInSeconds": Limit(0, 21600),
    "ResourceConfig.TrainingPlanArn": Limit(
        50, 2048, r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:training-plan/.*"
    ),
    "VpcConfig.SecurityGroupIds": Limit(1, 5),
    "VpcConfig.SecurityGroupIds[]": _VPC_ID,
    "VpcConfig.Subnets": Limit(1, 16),
    "VpcConfig.Subnets[]": _VPC_ID,
    "StoppingCondition.MaxRuntimeInSeconds": Limit(1),
    "StoppingCondition.MaxWaitTimeInSeconds": Limit(1),
    "Tags": Limit(0, 50),
    "Tags[].Key": Limit(1, 128, r"[\w\s.:/=+\-@]*"),
    "Tags[].Value": Limit(0, 256, r"[\w\s.:/=+\-@]*"),
    "CheckpointConfig.S3Uri": _S3,
    "CheckpointConfig.LocalPath": Limit(0, 4096, r".*"),
    "TensorBoardOutputConfig.LocalPath": Limit(0, 4096, r".*"),
    "TensorBoardOutputConfig.S3OutputPath": _S3,
    "Environment": Limit(0, 100),
    "Environment{}": Limit(0, 512, r"[a-zA-Z_][a-zA-Z0-9_]*"),
    "Environment{}=": Limit(0, 512, r"[\S\s]*"),
    "RetryStrategy.MaximumRetryAttempts": Limit(1, 30),
}

# The options that fill a place, for those who look for what to change.
_OPTIONS = {
    "TrainingJobName": "name",
    "HyperParameters": "hyperparameter",
    "AlgorithmSpecification.TrainingImage": "image",
    "AlgorithmSpecification.MetricDefinitions": "metric",
    "RoleArn": "role",
    "InputDataConfig": "channel",
    "OutputDataConfig.KmsKeyId": "kms_key",
    "OutputDataConfig.S3OutputPath": "bucket",
    "ResourceConfig.KeepAlivePeriodInSeconds": "keep_alive",
    "ResourceConfig.TrainingPlanArn": "reservation",
    "VpcConfig.SecurityGroupIds": "security_group",
    "VpcConfig.Subnets": "subnet",
    "StoppingCondition": "timeout",
    "Tags": "label",
    "CheckpointConfig": "checkpoint",
    "Environment": "env",
    "RetryStrategy": "attempts",
}

# As long as the real values are, where the service has yet to give them.
_LIKELY = {RUN: "r" * 49, ACCOUNT: "1" * 12, IMAGE: "image"}
_SHOWN = 60


def beyond(request: Mapping[str, Any]) -> Iterator[Finding]:
    """An error for each part of a request that the service would refuse for its size or form."""
    seen = set()
    for place, value in parts(filled(request, _LIKELY)):
        limit = LIMITS.get(place)
        problem = limit and _problem(limit, value)
        option = _option(place)
        if problem and (option, problem) not in seen:
            seen.add((option, problem))
            yield Finding("sagemaker.limit", Severity.ERROR, option, f"{problem} ({place})")


def parts(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every part of a request with its place, as `LIMITS` has them."""
    yield place, value
    if isinstance(value, list):
        for member in value:
            yield from parts(member, f"{place}[]")
    elif place in ("HyperParameters", "Environment"):
        for key, member in value.items():
            yield f"{place}{{}}", key
            yield f"{place}{{}}=", member
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from parts(member, f"{place}.{key}" if place else key)


def _problem(limit: Limit, value: Any) -> str:
    if isinstance(value, str):
        size, what = len(value), f"{_short(value)} has {len(value)} characters"
    elif isinstance(value, int):
        size, what = value, f"{value} is out of range"
    else:
        size, what = len(value), f"there are {len(value)}"
    if limit.least is not None and size < limit.least:
        return f"{what}; at least {limit.least} are needed"
    if limit.most is not None and size > limit.most:
        return f"{what}; at most {limit.most} are allowed"
    if limit.form and not re.fullmatch(limit.form, value):
        return f"{_short(value)} does not have the form {limit.form}"
    return ""


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _option(place: str) -> str:
    return next((name for start, name in _OPTIONS.items() if place.startswith(start)), "")
