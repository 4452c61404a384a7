"""Remakes what was taken from the SageMaker Python SDK, version 2.257.7.

    uv run --no-project --python 3.11 --with sagemaker==2.257.7 python scripts/sagemaker_sdk.py

writes the requests that its estimators send, for the tests to compare with ours, and the framework
containers that it knows. No job is sent to AWS.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import sagemaker
from sagemaker import image_uris
from sagemaker.pytorch import PyTorch
from sagemaker.tensorflow import TensorFlow

HERE = Path(__file__).parent.parent
REQUESTS = HERE / "tests" / "sagemaker" / "sdk_requests.json"
CONTAINERS = HERE / "distrain_nb" / "places" / "sagemaker" / "containers.csv"
REGISTRIES = HERE / "distrain_nb" / "places" / "sagemaker" / "registries.csv"

REGION, BUCKET, RUN = "us-west-2", "my-bucket", "run"
OUTPUT = f"s3://{BUCKET}/distrain"
ROLE = "arn:aws:iam::123456789012:role/training"
FRAMEWORKS = ("pytorch", "tensorflow")

OLD = {"framework_version": "1.13", "py_version": "py3"}
TENSORFLOW = {"framework_version": "2.11", "py_version": "py39"}
TORCH = {"framework_version": "2.0.1", "py_version": "py310"}
EPOCHS = {"hyperparameters": {"epochs": 60, "batch-size": 256}}
P3 = {"instance_count": 2, "instance_type": "ml.p3.2xlarge"}
P4 = {"instance_count": 2, "instance_type": "ml.p4d.24xlarge"}
MPI_OPTIONS = "-verbose --NCCL_DEBUG=INFO -x OMPI_MCA_btl_vader_single_copy_mechanism=none"
CASES: dict[str, tuple[type, dict[str, Any]]] = {
    "the document's parameter servers": (
        TensorFlow,
        {
            **OLD, **P3, **EPOCHS, "model_dir": "s3://my-bucket/cifar10",
            "distribution": {"parameter_server": {"enabled": True}},
        },
    ),
    "the document's Horovod": (
        TensorFlow,
        {
            **OLD, **P3, **EPOCHS,
            "distribution": {
                "mpi": {
                    "enabled": True,
                    "processes_per_host": 1,
                    "custom_mpi_options": MPI_OPTIONS,
                }
            },
        },
    ),
    "mirrored workers": (
        TensorFlow,
        {**TENSORFLOW, **P3, "distribution": {"multi_worker_mirrored_strategy": {"enabled": True}}},
    ),
    "torchrun": (
        PyTorch,
        {**TORCH, **P4, "distribution": {"torch_distributed": {"enabled": True}}},
    ),
    "mpi with PyTorch": (
        PyTorch,
        {**TORCH, **P4, "distribution": {"mpi": {"enabled": True, "processes_per_host": 8}}},
    ),
    "data parallel": (
        PyTorch,
        {
            **TORCH, **P4,
            "distribution": {
                "smdistributed": {
                    "dataparallel": {"enabled": True, "custom_mpi_options": "-verbose"}
                }
            },
        },
    ),
    "PyTorch DDP": (
        PyTorch,
        {
            **TORCH, **P4,
            "distribution": {"pytorchddp": {"enabled": True, "custom_mpi_options": "-verbose"}},
        },
    ),
    "model parallel": (
        PyTorch,
        {
            **TORCH, **P4, "framework_version": "1.13.1", "py_version": "py39",
            "distribution": {
                "smdistributed": {
                    "modelparallel": {"enabled": True, "parameters": {"partitions": 2}}
                },
                "mpi": {"enabled": True, "processes_per_host": 8},
            },
        },
    ),
    "one host with all that there is": (
        PyTorch,
        {
            **TORCH, "instance_count": 1, "instance_type": "ml.m5.xlarge", "volume_size": 50,
            "max_run": 3600, "use_spot_instances": True, "max_wait": 7200,
            "checkpoint_s3_uri": "s3://my-bucket/checkpoints",
            "subnets": ["subnet-1"], "security_group_ids": ["sg-1"],
            "encrypt_inter_container_traffic": True, "enable_network_isolation": True,
            "output_kms_key": "key-1", "volume_kms_key": "key-1",
            "environment": {"NCCL_DEBUG": "INFO"}, "tags": [{"Key": "team", "Value": "vision"}],
            "metric_definitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
            "max_retry_attempts": 3, "enable_remote_debug": True,
        },
    ),
    "a warm pool": (
        PyTorch,
        {
            **TORCH, "instance_count": 2, "instance_type": "ml.m5.xlarge",
            "keep_alive_period_in_seconds": 1800,
        },
    ),
}  # fmt: skip


class Captured(Exception):
    """The request is there; nothing more is wanted."""


def request(estimator: type, arguments: dict[str, Any]) -> dict[str, Any]:
    """What `fit` sends, with our script staged where we stage it."""
    sent: dict[str, Any] = {}

    def capture(**request: Any) -> None:
        sent.update(request)
        raise Captured

    boto = Mock(region_name=REGION)
    client = Mock(create_training_job=capture)
    session = sagemaker.Session(boto, sagemaker_client=client, default_bucket=BUCKET)
    made = estimator(
        entry_point="distrain_program.py",
        source_dir=f"{OUTPUT}/{RUN}/source/sourcedir.tar.gz",
        role=ROLE,
        output_path=OUTPUT,
        sagemaker_session=session,
        debugger_hook_config=False,
        disable_profiler=True,
        **arguments,
    )
    try:
        made.fit({"train": "s3://my-bucket/train"}, job_name=RUN, wait=False)
    except Captured:
        return sent
    raise AssertionError("nothing was sent")


def containers() -> list[dict[str, str]]:
    """Those of AWS's registries of today, which `--image` is not needed for."""
    rows = []
    for framework in FRAMEWORKS:
        versions = image_uris.config_for_framework(framework)["training"]["versions"]
        for version, found in versions.items():
            each = found if "py_versions" in found else found.get("py3", {})
            pythons = each.get("py_versions") or ["py3"]
            if each.get("repository") == f"{framework}-training":
                rows.append({"framework": framework, "version": version, "python": pythons[-1]})
    return rows


def registries() -> list[dict[str, str]]:
    """By region, the registry of those containers."""
    found = image_uris.config_for_framework("pytorch")["training"]["versions"]["2.1.0"]
    rows = []
    for region in sorted(found["registries"]):
        uri = image_uris.retrieve(
            "pytorch", region, "2.1.0", "py310", instance_type="ml.m5.xlarge",
            image_scope="training",
        )  # fmt: skip
        rows.append({"region": region, "registry": re.sub(r"/.*", "", uri)})
    return rows


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def main() -> None:
    taken = {name: request(*case) for name, case in CASES.items()}
    REQUESTS.write_text(json.dumps(taken, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    write(CONTAINERS, containers())
    write(REGISTRIES, registries())


if __name__ == "__main__":
    main()
