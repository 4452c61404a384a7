"""Which instances a job gets: of those to choose from the first that has capacity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from distrain_nb.places.sagemaker.stand_in.refusals import invalid
from distrain_nb.rehearsal.failures import JobFailed

_CHOICES, _COUNT, _TYPE = "InstancePreferences", "InstanceCount", "InstanceType"
_NOT_BESIDE = (_TYPE, "InstanceGroups", "InstancePlacementConfig")
_LACKING = (
    "CapacityError: Unable to provision requested ML compute capacity. Please retry using a "
    "different ML instance type."
)


def check_choices(request: Mapping[str, Any]) -> None:
    """Raise ApiError for instance types to choose from that the service would not take."""
    resources = request["ResourceConfig"]
    choices: Sequence[Mapping[str, Any]] = resources[_CHOICES]
    for name in _NOT_BESIDE:
        if resources.get(name):
            raise invalid(f"{_CHOICES} must not be given together with {name}.")
    if request.get("EnableManagedSpotTraining"):
        raise invalid(f"{_CHOICES} is not supported with managed spot training.")
    twice = [n for n, count in Counter(it[_TYPE] for it in choices).items() if count > 1]
    if twice:
        raise invalid(f"{_CHOICES} must not have an instance type twice: {', '.join(twice)}.")
    counts = [bool(choice.get(_COUNT)) for choice in choices]
    if any(counts) != all(counts) or all(counts) == bool(resources.get(_COUNT)):
        raise invalid(
            f"{_COUNT} must be given either in every one of the {_CHOICES} or in ResourceConfig."
        )
    plans = [choice for choice in choices if choice.get("TrainingPlanArns")]
    if plans and resources.get("TrainingPlanArn"):
        raise invalid("TrainingPlanArns must not be given together with TrainingPlanArn.")


def with_available_instances(
    request: Mapping[str, Any], lacking: Collection[str] = ()
) -> Mapping[str, Any]:
    """Return the request with the instances that the job gets where some types have no capacity.

    Raises JobFailed where none is left.
    """
    resources = request["ResourceConfig"]
    choices = resources.get(_CHOICES) or resources.get("InstanceGroups") or [resources]
    able = [choice for choice in choices if choice[_TYPE] not in lacking]
    if not able or (_CHOICES not in resources and len(able) < len(choices)):
        raise JobFailed(_LACKING)
    if _CHOICES not in resources:
        return request
    rest = {name: value for name, value in resources.items() if name != _CHOICES}
    count = able[0].get(_COUNT) or resources[_COUNT]
    return {**request, "ResourceConfig": {**rest, _TYPE: able[0][_TYPE], _COUNT: count}}
