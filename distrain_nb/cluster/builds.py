"""Packages that are the same modules for other hardware, or of other days: each would replace what
another has installed."""

from __future__ import annotations

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


def builds(name: str) -> tuple[str, ...]:
    """Return all names that a package has in its builds for other hardware, its own first."""
    own = canonicalize_name(name)
    family = next((names for names in _BUILDS if own in names), (own,))
    return (own, *(other for other in family if other != own))


def plain_name(name: str) -> NormalizedName:
    """Return the plain name of a package that is a build for some hardware; else its own."""
    own = canonicalize_name(name)
    return canonicalize_name(next((names[0] for names in _BUILDS if own in names), own))
