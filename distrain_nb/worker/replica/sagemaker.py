"""Reads what a SageMaker training job tells its containers, from files below /opt/ml.

Programs that were written for AWS's framework containers read `SM_HOSTS`, `SM_CHANNEL_TRAINING` and
their like, which those containers' toolkit makes of the files; here they are made the same way.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Mapping

from distrain_nb.worker.metrics.goals import TRIAL_VARIABLE, TUNED_VARIABLE
from distrain_nb.worker.rank.arguments import ARGUMENTS_VARIABLE

ROOT = Path("/opt/ml")

# What is written here SageMaker gives as the reason of a failed job.
FAILURE = ROOT / "output/failure"

# Hyperparameters that are the containers' own and no program's; in all but one by their prefix.
_CONTAINERS_OWN = ("sagemaker_", "_tuning_objective_metric", "default_user_module_name")
# With which the service starts an image that has a command of its own.
COMMAND = ["train"]
_TRIAL = re.compile(r"-(\d+)-[^-]+$")  # of a training job's name: its number in the tuning job

_ONE_GROUP = "homogeneousCluster"
_INFO = 20


def is_training_job() -> bool:
    """Return whether this is a container of a SageMaker training job."""
    return (ROOT / "input/config/resourceconfig.json").exists()


def instance_type(root: Path = ROOT) -> str:
    """Return the type of this host's instance; empty where nobody says."""
    return str(_read(root, "resourceconfig").get("current_instance_type", ""))


def interface(root: Path = ROOT) -> str:
    """Return the network interface that the hosts reach each other by; empty where it is not
    here."""
    name = str(_read(root, "resourceconfig").get("network_interface_name", ""))
    return name if name and os.path.isdir(f"/sys/class/net/{name}") else ""


def folders(root: Path = ROOT) -> Dict[str, str]:
    """Return the folders for what outlives a program, by the variables that name them elsewhere
    too."""
    checkpoints = root / "checkpoints"
    tensorboard = os.environ.get("DISTRAIN_TENSORBOARD", str(root / "output/tensorboard"))
    if TUNED_VARIABLE in os.environ:
        # A tuning job brings nothing else to the bucket before its trials end, and its trials may
        # find there what others of them have left.
        job_folder = checkpoints / os.environ["TRAINING_JOB_NAME"]
        checkpoints, tensorboard = job_folder / "checkpoints", str(job_folder / "tensorboard")
    return {
        "AIP_MODEL_DIR": str(root / "model"),
        "AIP_CHECKPOINT_DIR": str(checkpoints),
        "AIP_TENSORBOARD_LOG_DIR": tensorboard,
    }


def trial(root: Path = ROOT) -> Dict[str, str]:
    """Return the variables of a tuning job's trial: its values as arguments, and its number. Empty
    for any other job."""
    tuned = [name for name in os.environ.get(TUNED_VARIABLE, "").split(",") if name]
    hyperparameters = _read(root, "hyperparameters")
    values = [f"--{name}={hyperparameters[name]}" for name in tuned if name in hyperparameters]
    number = _TRIAL.search(os.environ.get("TRAINING_JOB_NAME", ""))
    if not values:
        return {}
    variables = {ARGUMENTS_VARIABLE: json.dumps(values)}
    return {**variables, TRIAL_VARIABLE: str(int(number[1]))} if number else variables


def variables(root: Path = ROOT) -> Dict[str, str]:
    """Return the `SM_…` variables that a program finds in AWS's containers."""
    resources, channels = _read(root, "resourceconfig"), _read(root, "inputdataconfig")
    hyperparameters = {n: _decoded(v) for n, v in _read(root, "hyperparameters").items()}
    chosen = {n: v for n, v in hyperparameters.items() if not n.startswith(_CONTAINERS_OWN)}
    values: Dict[str, Any] = {
        **_hosts(resources),
        "RESOURCE_CONFIG": resources,
        "NETWORK_INTERFACE_NAME": resources.get("network_interface_name", "eth0"),
        "HPS": chosen,
        "USER_ARGS": [text for name in sorted(chosen) for text in _argument(name, chosen[name])],
        "INPUT_DATA_CONFIG": channels,
        "CHANNELS": sorted(channels),
        "INPUT_DIR": str(root / "input"),
        "INPUT_CONFIG_DIR": str(root / "input/config"),
        "OUTPUT_DIR": str(root / "output"),
        "OUTPUT_DATA_DIR": str(root / "output/data"),
        "OUTPUT_INTERMEDIATE_DIR": str(root / "output/intermediate"),
        "MODEL_DIR": str(root / "model"),
        "NUM_CPUS": os.cpu_count() or 1,
        "NUM_GPUS": len(_listed("nvidia-smi", "--list-gpus")),
        "NUM_NEURONS": _neuron_cores(),
        "LOG_LEVEL": hyperparameters.get("sagemaker_container_log_level", _INFO),
    }
    for name in channels:
        values["CHANNEL_" + name.upper()] = str(root / "input/data" / name)
    for name, value in chosen.items():
        values["HP_" + name.upper()] = value
    return {"SM_" + name: _text(value) for name, value in values.items()}


def _hosts(resources: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the hosts, and the instance groups that they are in."""
    groups = resources.get("instance_groups", [])
    by_name = {group["instance_group_name"]: group for group in groups}
    group_name = resources.get("current_group_name", _ONE_GROUP)
    return {
        "HOSTS": resources["hosts"],
        "CURRENT_HOST": resources["current_host"],
        "CURRENT_INSTANCE_TYPE": resources.get("current_instance_type", "local"),
        "CURRENT_INSTANCE_GROUP": group_name,
        "CURRENT_INSTANCE_GROUP_HOSTS": by_name.get(group_name, {}).get("hosts", []),
        "INSTANCE_GROUPS": list(by_name),
        "INSTANCE_GROUPS_DICT": by_name,
        "IS_HETERO": len(by_name) > 1,
    }


def _read(root: Path, name: str) -> Dict[str, Any]:
    file = root / "input/config" / (name + ".json")
    content: Dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return content


def _decoded(value: Any) -> Any:
    """Return a hyperparameter: JSON where it is any, else as it stands."""
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def _argument(name: str, value: Any) -> List[str]:
    """Return a hyperparameter as scripts get it on their command line."""
    if isinstance(value, dict):
        value = ",".join(f"{key}={entry}" for key, entry in sorted(value.items()))
    return [("--" if len(name) > 1 else "-") + name, "" if value is None else str(value)]


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _neuron_cores() -> int:
    devices = "".join(_listed("neuron-ls", "-j"))
    return sum(device.get("nc_count", 0) for device in json.loads(devices or "[]"))


def _listed(*command: str) -> List[str]:
    """Return the lines that a command prints; none where it is not installed or finds nothing."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return []
    return done.stdout.decode().splitlines() if done.returncode == 0 else []
