"""Names of Python packages, in the one spelling in which they can be compared (PEP 503)."""

from __future__ import annotations

import re

from distrain_nb.errors import ImageError

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:$|[\[<>=!~;@(])")

# Packages that are the same modules for other hardware, or of other days: each would replace what
# another has installed. The first has the plain name.
_BUILDS = (
    (
        *("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel"),
        *("tensorflow-macos", "tensorflow-rocm", "tensorflow-cpu-aws", "intel-tensorflow"),
        *("tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu"),
    ),
    ("xgboost", "xgboost-cpu"),
    ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-directml"),
    ("opencv-python", "opencv-python-headless"),
    ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu11", "faiss-gpu-cu12"),
    ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
)


def builds(name: str) -> tuple[str, ...]:
    """All names that a package has in its builds for other hardware, its own first."""
    own = normal(name)
    family = next((names for names in _BUILDS if own in names), (own,))
    return (own, *(other for other in family if other != own))


def normal(name: str) -> str:
    """`Scikit_Learn` is `scikit-learn`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def without_local_version(requirement: str) -> str:
    """`torch==2.3.0+cpu` is `torch==2.3.0`: local versions are on no public index."""
    return re.sub(r"(==[^;+\s]+)\+[^;\s]+", r"\1", requirement)


def requirement_name(line: str) -> str:
    """The package that a requirement such as `numpy>=2` is about. Raises ImageError for none."""
    if match := _REQUIREMENT.match(line):
        return normal(match[1])
    raise ImageError(f"{line!r} is not a requirement. One looks like numpy or numpy>=2,<3.")
