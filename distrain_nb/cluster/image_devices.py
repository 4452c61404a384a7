"""The devices that an image's packages are for, by its labels, variables and name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from distrain_nb.cluster.builds import build_tag, is_cpu_build, name_of
from distrain_nb.layout.hardware import CPU, GPU, NEURON, TITLES, TPU

# What its maker says, above all else.
LABEL = "distrain-nb.devices"

_WORDS = {
    NEURON: re.compile(r"(?<![a-z])neuronx?(?![a-z])"),
    TPU: re.compile(r"(?<![a-z])tpu(?![a-z])"),
    GPU: re.compile(r"(?<![a-z])(?:gpu|cuda|cu1\d\d)(?![a-z])"),
    CPU: re.compile(r"(?<![a-z])cpu(?![a-z])"),
}

# AWS's deep learning containers, with the value `true`.
_OF_AWS = re.compile(r"com\.amazonaws\..+\.dlc\.device\.(\w+)")
_DEVICES_OF_AWS = {"cpu": CPU, "gpu": GPU, "neuron": NEURON, "neuronx": NEURON}
# NVIDIA's images for CUDA, and whatever is built on them.
_LABELS_OF_NVIDIA = ("com.nvidia.volumes.needed", "com.nvidia.cuda.version")
_VARIABLES_OF_NVIDIA = ("CUDA_VERSION", "NVIDIA_REQUIRE_CUDA", "NVIDIA_VISIBLE_DEVICES")
_NO_GPU = ("", "void", "none")
# PyTorch/XLA's choice. `CPU` tells only what that package uses.
_PJRT, _PJRT_DEVICES = "PJRT_DEVICE", {"CUDA": GPU, "TPU": TPU, "NEURON": NEURON}
_PACKAGES = {
    GPU: re.compile(r"nvidia-.+|jax-cuda\d+-(?:plugin|pjrt)"),
    TPU: re.compile(r"libtpu|tensorflow-tpu"),
    NEURON: re.compile(r"(?:torch|jax|tensorflow)-neuronx|libneuronxla"),
}


def devices_of(
    environment: Mapping[str, str], labels: Mapping[str, str], packages: Mapping[str, str]
) -> dict[str, str]:
    """Return the kinds of devices that an image is for, each with what tells it; empty where
    nothing does, as of an image that has got its packages by a command."""
    labelled = labels.get(LABEL, "").lower().split()
    if labelled:
        return {kind: f"label {LABEL}" for kind in TITLES if kind in labelled}
    devices: dict[str, str] = {}
    for kind, told_by in _evidence(environment, labels, packages):
        devices.setdefault(kind, told_by)
    return devices


def _evidence(
    environment: Mapping[str, str], labels: Mapping[str, str], packages: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for label, value in labels.items():
        if label in _LABELS_OF_NVIDIA:
            yield GPU, f"label {label}"
        match = _OF_AWS.fullmatch(label)
        if match and match[1] in _DEVICES_OF_AWS and value == "true":
            yield _DEVICES_OF_AWS[match[1]], f"label {label}"
    for name, value in environment.items():
        if name in _VARIABLES_OF_NVIDIA and value not in _NO_GPU:
            yield GPU, f"variable {name}"
        if name.startswith("NEURON_"):
            yield NEURON, f"variable {name}"
    chosen = environment.get(_PJRT, "")
    if chosen in _PJRT_DEVICES:
        yield _PJRT_DEVICES[chosen], f"variable {_PJRT}={chosen}"
    for name, version in packages.items():
        yield from _of_package(f"{name}=={version}")


def _of_package(line: str) -> Iterator[tuple[str, str]]:
    if is_cpu_build(line):
        yield CPU, f"package {line}"
    if build_tag(line).startswith("cu"):
        yield GPU, f"package {line}"
    for kind, names in _PACKAGES.items():
        if names.fullmatch(name_of(line)):
            yield kind, f"package {line}"


@lru_cache(maxsize=512)
def devices_in_name(image: str) -> frozenset[str]:
    """Return the kinds of devices that an image's name tells of."""
    name = image.rpartition("/")[2].lower()
    return frozenset(kind for kind, word in _WORDS.items() if word.search(name))
