"""The hosts of a training job, and what each of them finds below /opt/ml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from distrain_nb.places.sagemaker.stand_in.aws import ROLE_KEY
from distrain_nb.places.sagemaker.stand_in.channels import channels
from distrain_nb.rehearsal.engine import ReplicaSpec, share_of_cores
from distrain_nb.rehearsal.job_folder import JobFolder

ML = PurePosixPath("/opt/ml")
CHECKPOINTS = ML / "checkpoints"
TENSORBOARD = ML / "output" / "tensorboard"

_ONE_GROUP = "homogeneousCluster"
_FOLDERS = ("input/config", "input/data", "model", "output/data", "checkpoints", "code")


@dataclass(frozen=True)
class Host:
    """`algo-1` and so on: its instance group, the type of its instance."""

    name: str
    group: str
    instance: str


def hosts(request: Mapping[str, Any]) -> tuple[Host, ...]:
    """Return the job's hosts, numbered through its instance groups."""
    resources = request["ResourceConfig"]
    groups = resources.get("InstanceGroups") or ({"InstanceGroupName": _ONE_GROUP, **resources},)
    places = (
        (group["InstanceGroupName"], group["InstanceType"])
        for group in groups
        for _ in range(group["InstanceCount"])
    )
    return tuple(Host(f"algo-{number}", *place) for number, place in enumerate(places, 1))


@dataclass(frozen=True)
class HostDisk:
    """A host's own disk: `folder` is what its container has at /opt/ml."""

    host: Host
    folder: Path

    def within(self, inside: PurePosixPath) -> JobFolder:
        """Return a folder of the container here: below /opt/ml, or mounted from beside it."""
        if inside.is_relative_to(ML):
            below = inside.relative_to(ML).as_posix()
            return JobFolder(self.folder, "" if below == "." else below)
        return JobFolder(self.folder.with_name("others") / quote(str(inside), safe=""))

    def lay_out(self, request: Mapping[str, Any], interface: str) -> None:
        """Write the files by which the service describes the job, and the host in it."""
        for name in _FOLDERS:
            (self.folder / name).mkdir(parents=True)
        for place in (
            place_of(request, x) for x in ("CheckpointConfig", "TensorBoardOutputConfig")
        ):
            if place:
                self.within(place).make()
        configs = {
            "hyperparameters": request.get("HyperParameters", {}),
            "resourceconfig": self._resources(request, interface),
            "inputdataconfig": {channel.name: channel.config() for channel in channels(request)},
        }
        for name, value in configs.items():
            path = self.folder / "input" / "config" / f"{name}.json"
            path.write_text(json.dumps(value), encoding="utf-8")

    def _resources(self, request: Mapping[str, Any], interface: str) -> dict[str, Any]:
        everybody = hosts(request)
        groups = {host.group: host.instance for host in everybody}
        return {
            "current_host": self.host.name,
            "current_instance_type": self.host.instance,
            "current_group_name": self.host.group,
            "hosts": [host.name for host in everybody],
            "instance_groups": [
                {
                    "instance_group_name": group,
                    "instance_type": instance,
                    "hosts": [host.name for host in everybody if host.group == group],
                }
                for group, instance in groups.items()
            ],
            "network_interface_name": interface,
        }

    def container(self, arn: str, request: Mapping[str, Any], s3: str) -> ReplicaSpec:
        """Describe the host's container: the image with `train`, or with the job's own command."""
        algorithm = request["AlgorithmSpecification"]
        command = tuple(algorithm.get("ContainerEntrypoint", ()))
        arguments = tuple(algorithm.get("ContainerArguments", ()))
        if not command and not arguments:
            arguments = ("train",)
        mounts = {str(ML): self.folder}
        for name in ("CheckpointConfig", "TensorBoardOutputConfig"):
            place = place_of(request, name)
            if place and not place.is_relative_to(ML):
                mounts[str(place)] = self.within(place).root
        return ReplicaSpec(
            self.host.name,
            algorithm["TrainingImage"],
            command,
            arguments,
            {
                **share_of_cores(len(hosts(request))),
                **_service_environment(arn, s3),
                **request.get("Environment", {}),
            },
            mounts,
        )


def place_of(request: Mapping[str, Any], name: str) -> PurePosixPath | None:
    """Return where hosts have the folder of `CheckpointConfig` or `TensorBoardOutputConfig`."""
    section = request.get(name)
    if not section:
        return None
    default = CHECKPOINTS if name == "CheckpointConfig" else TENSORBOARD
    return PurePosixPath(section.get("LocalPath", default))


def _service_environment(arn: str, s3: str) -> dict[str, str]:
    """Return the variables that the service gives every container, and the address of a rehearsal's
    S3."""
    region, name = arn.split(":")[3], arn.partition("/")[2]
    variables = {
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "TRAINING_JOB_NAME": name,
        "TRAINING_JOB_ARN": arn,
    }
    if s3:
        variables |= {
            "AWS_ENDPOINT_URL_S3": f"http://{s3}",
            "AWS_ENDPOINT_URL_SECRETS_MANAGER": f"http://{s3}",
            "AWS_ACCESS_KEY_ID": ROLE_KEY,
            "AWS_SECRET_ACCESS_KEY": "rehearsal",
        }
    return variables
