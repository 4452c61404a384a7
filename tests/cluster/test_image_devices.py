"""What images are for, by configurations such as their makers write them."""

from __future__ import annotations

import pytest

from distrain_nb.cluster.image_devices import devices_of
from distrain_nb.layout.hardware import CPU, GPU, NEURON, TPU

AWS = "com.amazonaws.ml.engines.sagemaker.dlc.device"
CUDA = {"CUDA_VERSION": "12.4.1", "NVIDIA_VISIBLE_DEVICES": "all"}


@pytest.mark.parametrize(
    ("environment", "devices"),
    [
        ({}, []),
        ({"PYTHON_VERSION": "3.12.4", "PATH": "/usr/bin"}, []),
        (CUDA, [GPU]),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.4 brand=tesla"}, [GPU]),
        ({"NVIDIA_VISIBLE_DEVICES": "all", "PYTORCH_VERSION": "2.8.0"}, [GPU]),
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, []),
        ({"NEURON_CC_FLAGS": "--model-type=transformer"}, [NEURON]),
        ({"PJRT_DEVICE": "TPU"}, [TPU]),
        ({"PJRT_DEVICE": "NEURON"}, [NEURON]),
        ({"PJRT_DEVICE": "CUDA"}, [GPU]),
        ({"PJRT_DEVICE": "CPU"}, []),
        ({**CUDA, "PJRT_DEVICE": "TPU"}, [GPU, TPU]),
    ],
)
def test_by_its_environment(environment: dict[str, str], devices: list[str]) -> None:
    assert list(devices_of(environment, {}, {})) == devices


@pytest.mark.parametrize(
    ("label", "value", "devices"),
    [
        (f"{AWS}.gpu", "true", [GPU]),
        (f"{AWS}.cpu", "true", [CPU]),
        (f"{AWS}.neuronx", "true", [NEURON]),
        (f"{AWS}.gpu", "false", []),
        (f"{AWS}.toaster", "true", []),
        ("com.amazonaws.ml.engines.sagemaker.dlc.python.py312", "true", []),
        ("com.nvidia.volumes.needed", "nvidia_driver", [GPU]),
        ("com.nvidia.cuda.version", "10.2", [GPU]),
        ("distrain-nb.devices", "gpu TPU", [GPU, TPU]),
    ],
)
def test_by_a_label(label: str, value: str, devices: list[str]) -> None:
    found = devices_of({}, {label: value}, {})
    assert list(found) == devices
    assert all(told_by == f"label {label}" for told_by in found.values())


@pytest.mark.parametrize(
    ("packages", "devices"),
    [
        ({"numpy": "2.4.6", "torch": "2.13.0"}, []),
        ({"torch": "2.13.0+cpu"}, [CPU]),
        ({"tensorflow-cpu": "2.21.0"}, [CPU]),
        ({"torch": "2.13.0+cu126"}, [GPU]),
        ({"jax": "0.10.2", "jax-cuda12-plugin": "0.10.2"}, [GPU]),
        ({"torch": "2.13.0", "nvidia-cublas-cu12": "12.6"}, [GPU]),
        ({"libtpu": "0.0.20"}, [TPU]),
        ({"torch-neuronx": "2.8.0"}, [NEURON]),
        ({"torch": "2.13.0+cpu", "jax-cuda12-plugin": "0.10.2"}, [CPU, GPU]),
    ],
)
def test_by_the_packages_that_a_build_has_added(
    packages: dict[str, str], devices: list[str]
) -> None:
    assert list(devices_of({}, {}, packages)) == devices


def test_what_its_maker_says_rules() -> None:
    labels = {"distrain-nb.devices": "gpu", f"{AWS}.cpu": "true"}
    assert list(devices_of(CUDA, labels, {"torch": "2.13.0+cpu"})) == [GPU]
