"""Checks of the service that its model doesn't describe."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from distrain_nb.config import home
from distrain_nb.places.sagemaker.stand_in.channels import InputChannel, channels
from distrain_nb.places.sagemaker.stand_in.instances import check_choices
from distrain_nb.places.sagemaker.stand_in.refusals import invalid, no_objects
from distrain_nb.places.sagemaker.stand_in.store import DATA, ObjectStore, S3Location


def refuse(request: Mapping[str, Any], region: str, store: ObjectStore) -> None:
    """Raise ApiError for a job that the service would not take."""
    _check_algorithm(request["AlgorithmSpecification"])
    _check_resources(request)
    _check_times(request)
    inputs = channels(request)
    twice = [
        name
        for name, count in Counter(channel_of_job.name for channel_of_job in inputs).items()
        if count > 1
    ]
    if twice:
        raise invalid(f"Channel names must be unique. Found duplicate channel names: {twice}")
    for channel in inputs:
        _check_channel(channel, "VpcConfig" in request)
        if channel.source:
            _check_objects(channel, request["RoleArn"], region, store)


def _check_algorithm(algorithm: Mapping[str, Any]) -> None:
    if bool(algorithm.get("TrainingImage")) == bool(algorithm.get("AlgorithmName")):
        raise invalid("You must specify either AlgorithmName or TrainingImage, and not both.")
    if algorithm.get("AlgorithmName"):
        raise invalid("A rehearsal runs a TrainingImage; it has no algorithms of the service.")
    for metric in algorithm.get("MetricDefinitions", ()):
        try:
            re.compile(metric["Regex"])
        except re.error as error:
            raise invalid(f"Metric {metric['Name']}: {metric['Regex']!r}: {error}") from None


def _check_resources(request: Mapping[str, Any]) -> None:
    resources = request.get("ResourceConfig") or {}
    chosen = [name for name in resources if name.startswith("Selected")]
    if chosen:
        raise invalid(f"{' and '.join(chosen)} must not be given: the service says it.")
    if resources.get("InstancePreferences"):
        check_choices(request)
        return
    groups = resources.get("InstanceGroups")
    single = [name for name in ("InstanceType", "InstanceCount") if resources.get(name)]
    if groups and single:
        raise invalid(f"{' and '.join(single)} must not be given together with InstanceGroups.")
    if not groups and len(single) < 2:
        raise invalid("ResourceConfig needs an InstanceType and an InstanceCount of at least 1.")
    if any(not group.get("InstanceCount") for group in groups or ()):
        raise invalid("Every instance group needs an InstanceCount of at least 1.")


def _check_times(request: Mapping[str, Any]) -> None:
    stopping = request.get("StoppingCondition") or {}
    runs, waits = stopping.get("MaxRuntimeInSeconds", 86400), stopping.get("MaxWaitTimeInSeconds")
    if request.get("EnableManagedSpotTraining"):
        if waits is None or waits < runs:
            raise invalid(
                "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to "
                "MaxRuntimeInSeconds"
            )
        if request["ResourceConfig"].get("KeepAlivePeriodInSeconds"):
            raise invalid("KeepAlivePeriodInSeconds is not supported with managed spot training.")
    elif waits:
        raise invalid("MaxWaitTimeInSeconds can be used with managed spot training only.")


def _check_channel(channel: InputChannel, networked: bool) -> None:
    if not channel.source:
        if not networked:
            raise invalid(
                f"Channel {channel.name}: a VpcConfig is required for a FileSystemDataSource."
            )
        return
    if channel.augmented:
        if channel.mode != "Pipe":
            raise invalid(
                f"Channel {channel.name}: AugmentedManifestFile can only be used with input mode "
                f"Pipe, not with {channel.mode}."
            )
        if not channel.source.get("AttributeNames"):
            raise invalid(f"Channel {channel.name}: AugmentedManifestFile needs AttributeNames.")
    if channel.mode != "Pipe" and channel.asked.get("CompressionType", "None") != "None":
        raise invalid(
            f"Channel {channel.name}: CompressionType Gzip can only be used with input mode Pipe."
        )


def _check_objects(channel: InputChannel, role: str, region: str, store: ObjectStore) -> None:
    uri = channel.source["S3Uri"]
    place, message = S3Location.of(uri), ""
    try:
        if store.keys(place):
            return
    except ClientError as error:
        message = error.response["Error"]["Message"]
    raise no_objects(uri, region, role, place.bucket, home() / DATA / place.bucket, message)
