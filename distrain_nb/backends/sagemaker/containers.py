"""AWS's framework containers: which there are, and which one a program runs in."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

from distrain_nb.backends.sagemaker.names import REGISTRY
from distrain_nb.layout.catalog import current
from distrain_nb.layout.formats.sagemaker import hosts
from distrain_nb.layout.releases import is_of

if TYPE_CHECKING:
    from distrain_nb.backends.sagemaker.options import SageMakerJob
    from distrain_nb.layout import Layout

# What the frameworks of the containers are imported as.
IMPORTED_AS = {
    "pytorch": ("torch", "lightning", "accelerate"),
    "tensorflow": ("tensorflow", "keras"),
}

# Python's own image, for programs of no framework.
BARE = "python:"

_OURS = re.compile(r"(?:^|/)(pytorch|tensorflow)-training[:@]")
_PYTHON = re.compile(r"-py(\d)(\d+)?(?:-|$)")


class Container(NamedTuple):
    """A row of `containers.csv`; `python` is the last part of its tag, such as `py311`."""

    framework: str
    version: str
    python: str


@cache
def containers() -> tuple[Container, ...]:
    """All that are known, each framework's oldest first."""
    return tuple(Container(**row) for row in _table("containers.csv"))


@cache
def registries() -> dict[str, str]:
    """By region, the host of the registry."""
    return {row["region"]: row["registry"] for row in _table("registries.csv")}


def container_of(job: SageMakerJob, region: str) -> str | None:
    """The container of the layout's framework, or of the program's, in the version that was asked
    for, or else the newest; None if there is none, or no registry is known in the region. Where the
    region is yet to be chosen, so is the registry."""
    layout = job.layout
    framework = layout.framework_name or framework_of(job)
    asked = layout.framework_version
    fitting = [
        row for row in containers() if row.framework == framework and is_of(row.version, asked)
    ]
    registry = registries().get(region) if region else REGISTRY
    if not fitting or registry is None:
        return None
    row = max(fitting, key=lambda row: Version(row.version))
    tag = f"{asked or row.version}-{_processor(layout)}-{row.python}"
    return f"{registry}/{framework}-training:{tag}"


def framework_of(job: SageMakerJob) -> str | None:
    """The framework that a program imports, or that its container's name tells."""
    found = _OURS.search(hosts(job.layout).image or job.layout.image or "")
    if found:
        return found[1]
    named = (f for f, modules in IMPORTED_AS.items() if job.program.imports & set(modules))
    return next(named, None)


def python_of(image: str) -> tuple[int, int] | None:
    """The version of Python that a framework container's tag tells of; `py3` is 3.6."""
    found = _PYTHON.search(image.rpartition(":")[2]) if _OURS.search(image) else None
    return (int(found[1]), int(found[2] or 6)) if found else None


def devices(layout: Layout) -> int:
    """How many devices every host trains on: its GPUs or Neuron cores, 0 if one has neither."""
    instances = current().instances
    rows = [instances.get(pool.machine or "") for _, pool in layout.pools()]
    return min(((row.gpu_count or row.neuron_cores or 0) if row else 0 for row in rows), default=0)


def _processor(layout: Layout) -> str:
    row = current().instances.get(hosts(layout).machine or "")
    return "gpu" if row and row.gpu_count else "cpu"


def _table(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
