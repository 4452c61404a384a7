"""Builds of a package for other hardware: packages with the same modules, of which each would
replace what another has installed."""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

# The first of a family has the plain name.
_BUILDS = (
    (
        *("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel"),
        *("tensorflow-macos", "tensorflow-rocm", "tensorflow-cpu-aws", "intel-tensorflow"),
        *("tensorflow-tpu", "tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu"),
    ),
    ("xgboost", "xgboost-cpu"),
    ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-directml"),
    ("opencv-python", "opencv-python-headless"),
    ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu11", "faiss-gpu-cu12"),
    ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
)
# Those that compute on the CPU, whatever the machine has.
CPU_BUILDS = frozenset(
    {"tensorflow-cpu", "tensorflow-intel", "tensorflow-cpu-aws", "intel-tensorflow"}
    | {"tf-nightly-cpu", "xgboost-cpu"}
)

_LOCAL = re.compile(r"\+([A-Za-z0-9.]+)")


def builds(name: str) -> tuple[str, ...]:
    """Return all names that a package has in its builds for other hardware, its own first."""
    plain = canonicalize_name(name)
    family = next((names for names in _BUILDS if plain in names), (plain,))
    return (plain, *(other for other in family if other != plain))


def plain_name(name: str) -> NormalizedName:
    """Return the plain name of a package that is a build for some hardware; else its own."""
    plain = canonicalize_name(name)
    return canonicalize_name(next((names[0] for names in _BUILDS if plain in names), plain))


def is_cpu_build(line: str) -> bool:
    """Return whether a requirement names a build that computes on the CPU whatever there is."""
    return name_of(line) in CPU_BUILDS or build_tag(line) == "cpu"


def build_tag(line: str) -> str:
    """`cu121` of `torch==2.3.0+cu121`."""
    match = _LOCAL.search(line)
    return match[1] if match else ""


def plain_requirement(line: str) -> str:
    """`torch==2.3.0` of `torch==2.3.0+cpu`, `tensorflow==2.17.0` of `tensorflow-cpu==2.17.0`."""
    name = name_of(line)
    instead = plain_name(name) if name in CPU_BUILDS else name
    return _LOCAL.sub("", re.sub(r"^[\w.-]+", instead, line))


@lru_cache(maxsize=4096)
def name_of(line: str) -> str:
    """Return the package that a requirement is about; a text that is none stays as it is."""
    try:
        return canonicalize_name(Requirement(line.partition(" --")[0]).name)
    except InvalidRequirement:
        return line
