"""Parts of a request that the service would refuse, or boto3 can't send, by botocore's model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.submission import fill_placeholders
from distrain_nb.findings import Finding, Severity
from distrain_nb.places.sagemaker.names import ACCOUNT, IMAGE, RUN
from distrain_nb.types import JsonObject

if TYPE_CHECKING:
    from distrain_nb.places.sagemaker.model import Constraint, PathStep

# The options that fill a place, for those who look for what to change.
_OPTIONS = {
    "TrainingJobName": "name",
    "HyperParameters": "hyperparameter",
    "HyperParameterTuningJobName": "name",
    "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective": "goal",
    "HyperParameterTuningJobConfig": "tune",
    "StaticHyperParameters": "hyperparameter",
    "WarmStartConfig": "warm_start",
    "Autotune": "autotune",
    "AlgorithmSpecification.TrainingImage": "image",
    "AlgorithmSpecification.MetricDefinitions": "metric",
    "RoleArn": "role",
    "InputDataConfig": "channel",
    "OutputDataConfig.KmsKeyId": "kms_key",
    "OutputDataConfig.S3OutputPath": "bucket",
    "ResourceConfig.VolumeKmsKeyId": "kms_key",
    "ResourceConfig.KeepAlivePeriodInSeconds": "keep_alive",
    "ResourceConfig.TrainingPlanArn": "reservation",
    "ResourceConfig.InstancePreferences[].TrainingPlanArns": "reservation",
    "ResourceConfig.InstancePreferences": "workers",
    "VpcConfig.SecurityGroupIds": "security_group",
    "VpcConfig.Subnets": "subnet",
    "StoppingCondition": "timeout",
    "Tags": "label",
    "CheckpointConfig": "checkpoint",
    "RemoteDebugConfig": "web_access",
    "InfraCheckConfig": "check_machines",
    "Environment": "env",
    "RetryStrategy": "attempts",
}

# As long as the real values are, where the service has yet to give them.
_LIKELY = {RUN: "r" * 49, ACCOUNT: "1" * 12, IMAGE: "image"}
_SHOWN = 60
_VALUE_OF_VARIABLE = "Environment{}="
# Below it is what a training job's own request has, in a tuning job's.
_DEFINITION = "TrainingJobDefinition."


def limit_findings(request: JsonObject, operation: str = "CreateTrainingJob") -> Iterator[Finding]:
    """Yield an error for each part of an operation's request that has a wrong size or form, or that
    boto3 is too old to send.

    None where boto3 isn't installed, without which nothing can be sent anyway. What the model
    enumerates, such as machines, is the catalog's to know: the service may have more by now.
    """
    if find_spec("botocore") is None:
        return
    from distrain_nb.places.sagemaker import model

    reported = set()
    for part in model.parts(fill_placeholders(request, _LIKELY), model.request_shape(operation)):
        place = _place(part.path)
        subject = _subject(part.value, part.path, place)
        failed = model.failed(part.value, part.shape)
        problems = (_problem(item, part.value, subject) for item in failed)
        problem = next(filter(None, problems), "")
        if problem and (place, problem) not in reported:
            reported.add((place, problem))
            yield _error("limit", place, f"{problem} ({place})")
        for name in model.unknown(part):
            yield _too_old(".".join(filter(None, (place, name))))


def _too_old(place: str) -> Finding:
    message = f"boto3 {version('boto3')} can't send {place}: pip install -U boto3"
    return _error("old-boto3", place, message)


def _error(code: str, place: str, message: str) -> Finding:
    option = next((name for start, name in _OPTIONS.items() if place.startswith(start)), "")
    return Finding(f"sagemaker.{code}", Severity.ERROR, option, message)


def _place(path: Iterable[PathStep]) -> str:
    """`[]` is a member of a list, `{}` a key and `{}=` a value of a map."""
    written = {"item": "[]", "key": "{}", "value": "{}="}
    place = "".join(written.get(step.kind, f".{step.name}") for step in path).lstrip(".")
    return place.removeprefix(_DEFINITION)


def _problem(failed: Constraint, value: object, subject: str) -> str:
    """Empty for a value that the model doesn't list."""
    if isinstance(value, str):
        sentence = f"{subject} has {len(value)} characters"
    elif isinstance(value, list | dict):
        sentence = f"there are {len(value)}"
    else:
        sentence = f"{value} is out of range"
    problems = {
        "min": f"{sentence}; at least {failed.bound} are needed",
        "max": f"{sentence}; at most {failed.bound} are allowed",
        "pattern": f"{subject} does not have the form {failed.bound}",
    }
    return problems.get(failed.kind, "")


def _subject(value: object, path: Sequence[PathStep], place: str) -> str:
    """Return a value in a message; a variable's may be a secret, and is called by its name."""
    if place == _VALUE_OF_VARIABLE:
        return f"the value of {path[-1].name}"
    text = str(value)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
