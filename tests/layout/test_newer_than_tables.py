"""Machines and accelerators that an installed SDK has, and the tables do not have yet."""

from __future__ import annotations

import importlib
import json
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from botocore.loaders import Loader

from distrain_nb.findings import Severity
from distrain_nb.layout import Layout
from distrain_nb.layout.catalog import current
from distrain_nb.layout.hardware import CPU, GPU, NEURON, device_in_name, hardware_of
from distrain_nb.layout.rules import check
from distrain_nb.places.sagemaker import model
from distrain_nb.places.sagemaker.containers import equipment_of
from distrain_nb.places.vertex import offers
from tests.sagemaker.jobs import job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distrain_nb.findings import Finding

NEW = ("ml.p9.48xlarge", "ml.trn9.48xlarge", "ml.m99.large", "ml.dl9.24xlarge")
GPU_OF_TOMORROW = "NVIDIA_X900"


@pytest.fixture
def newer_boto3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """boto3 with a model of the API that has more instance types."""
    newer = Loader().load_service_model("sagemaker", "service-2")
    enum = [*newer["shapes"]["TrainingInstanceType"]["enum"], *NEW]
    shapes = {**newer["shapes"], "TrainingInstanceType": {"type": "string", "enum": enum}}
    file = tmp_path / "sagemaker" / "2017-07-24" / "service-2.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**newer, "shapes": shapes}))
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    model.instance_types.cache_clear()
    yield
    model.instance_types.cache_clear()


@pytest.fixture
def newer_aiplatform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """google-cloud-aiplatform with one more accelerator."""
    spec = find_spec("google.cloud")
    (folder,) = (spec and spec.submodule_search_locations) or ()
    name = "aiplatform_v1/types/accelerator_type.py"
    with open(f"{folder}/{name}", encoding="utf-8") as file:  # noqa: PTH123
        text = file.read().replace(
            "    TPU_V2 = 6\n", f"    {GPU_OF_TOMORROW} = 99\n    TPU_V2 = 6\n"
        )
    newer = tmp_path / "google" / "cloud" / name
    newer.parent.mkdir(parents=True)
    newer.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    offers._of_sdk.cache_clear()
    yield
    offers._of_sdk.cache_clear()


def hosts(machine: str, **more: object) -> Layout:
    return Layout.of("sagemaker", workers=f"2*{machine}", region="us-west-2", **more)


def only(layout: Layout) -> Finding:
    (finding,) = check(layout)
    return finding


def test_without_the_sdk_s_word_a_machine_is_unknown() -> None:
    assert {only(hosts(machine)).code for machine in NEW} == {"machine-unknown"}


@pytest.mark.usefixtures("newer_boto3")
@pytest.mark.parametrize(
    ("machine", "devices"),
    [
        (NEW[0], "by its name it has GPUs, and gets one rank unless -n says how many."),
        (NEW[1], "by its name it has Neuron devices, and gets one rank unless -n says how many."),
        (NEW[2], "by its name it has no accelerators."),
        (NEW[3], "its name tells no devices: name an image for them with --image or --base."),
    ],
)
def test_a_machine_that_only_the_sdk_has_is_taken(machine: str, devices: str) -> None:
    finding = only(hosts(machine))
    assert (finding.code, finding.severity) == ("machine-newer", Severity.WARNING)
    assert finding.where == "workers.machine"
    assert f"{machine} is not in the tables (of 20" in finding.message
    assert ", but botocore 1." in finding.message
    assert finding.message.endswith(devices)


@pytest.mark.usefixtures("newer_boto3")
def test_ranks_that_are_named_need_no_advice() -> None:
    assert only(hosts(NEW[0], ranks_per_replica=8)).message.endswith("by its name it has GPUs.")


@pytest.mark.usefixtures("newer_boto3")
def test_a_slip_is_still_unknown_beside_a_newer_machine() -> None:
    findings = check(hosts(f"{NEW[0]}|ml.p9.47xlarge"))
    assert [finding.code for finding in findings] == ["machine-unknown", "machine-newer"]


@pytest.mark.usefixtures("newer_boto3")
@pytest.mark.parametrize(
    ("machine", "image"),
    [
        (NEW[0], "/pytorch-training:2.8.0-gpu-"),
        (NEW[1], "/pytorch-training-neuronx:"),
        (NEW[2], "/pytorch-training:2.8.0-cpu-"),
    ],
)
def test_no_accelerator_of_a_newer_machine_is_paid_for_and_not_used(
    machine: str, image: str
) -> None:
    code = "import torch, torch_neuronx, torch_xla\n" if "trn" in machine else "import torch\n"
    assert image in equipment_of(job(hosts(machine), code), "us-west-2").image


def test_names_tell_the_devices_of_every_machine_in_the_table() -> None:
    for name in current().instances:
        device = hardware_of(hosts(name)).device
        assert device_in_name(name) == device, name
    assert device_in_name("ml.dl9.24xlarge") == device_in_name("n9-standard-4") == ""
    assert {device_in_name(name) for name in NEW[:3]} == {GPU, NEURON, CPU}


def google(accelerator: str) -> Layout:
    return Layout.of("vertex", primary=f"n1-standard-8+2*{accelerator}", region="us-central1")


@pytest.mark.usefixtures("newer_aiplatform")
def test_an_accelerator_that_only_the_sdk_has_is_taken() -> None:
    finding = only(google(GPU_OF_TOMORROW))
    assert (finding.code, finding.severity) == ("accelerator-newer", Severity.WARNING)
    assert finding.where == "primary.accelerator"
    assert f"{GPU_OF_TOMORROW} is not in the tables (of 20" in finding.message
    assert ", but google-cloud-aiplatform " in finding.message
    hardware = hardware_of(google(GPU_OF_TOMORROW))
    assert (hardware.device, hardware.count, hardware.processes) == (GPU, 2, 2)
    assert only(google("NVIDIA_X901")).code == "accelerator-unknown"


def test_without_the_sdk_s_word_an_accelerator_is_unknown() -> None:
    assert only(google(GPU_OF_TOMORROW)).code == "accelerator-unknown"


def test_parts_of_tpus_are_asked_for_by_machines() -> None:
    """The API's names of slices are in no table, since machine types stand for them."""
    assert "accelerator-unknown" in {it.code for it in check(google("TPU_V5_LITEPOD"))}
