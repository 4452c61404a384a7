"""AWS's framework containers: which there are, and which one a program runs in."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.backends.remote.equipment import stock_with_answer, uses_of
from distrain_nb.cluster.equipment import BASE, IMAGE, Container, Equipment, Stock, equip
from distrain_nb.findings import Finding, Severity
from distrain_nb.layout.hardware import CPU, GPU, NEURON, hardware_of
from distrain_nb.layout.releases import is_of
from distrain_nb.places.sagemaker.forms.request import hosts
from distrain_nb.places.sagemaker.names import REGISTRY
from distrain_nb.program.frameworks import frameworks_of

if TYPE_CHECKING:
    from distrain_nb.places.sagemaker.options import SageMakerJob

# Python's own image, for programs of no framework.
BARE = "python:"

_OURS = re.compile(r"(?:^|/)(pytorch|tensorflow)-training[:@]")
_PYTHON = re.compile(r"-py(\d)(\d+)?(?:-|$)")
_PROCESSOR = re.compile(r"(?P<version>[\d.]+)-(?P<device>cpu|gpu)-")
# What the worker needs.
_OLDEST_PYTHON = (3, 8)


class Release(NamedTuple):
    """A row of `containers.csv`; `python` is the last part of its tag, such as `py311`."""

    framework: str
    version: str
    python: str


@cache
def containers() -> tuple[Release, ...]:
    """Return all that are known, each framework's oldest first."""
    return tuple(Release(**row) for row in _table("containers.csv"))


@cache
def registries() -> dict[str, str]:
    """Return the registry's host, by region."""
    return {row["region"]: row["registry"] for row in _table("registries.csv")}


def equipment_of(job: SageMakerJob, region: str) -> Equipment:
    """Return the base image with the packages that the program needs on it: as chosen, else the
    container of its framework, else Python's own image in this notebook's version, which a
    rehearsal, too, gets without being logged in to AWS. Script mode has its framework's container,
    or none (empty).
    """
    layout, stock = job.layout, stock_with_answer(job, stock_of(job, region))
    equipment = equip(uses_of(job), hardware_of(layout), stock)
    others = tuple(_of_other_choices(job, stock, equipment))
    return replace(
        equipment,
        image=_tagged(equipment.image, layout.framework_version),
        findings=(*equipment.findings, *others),
    )


def stock_of(job: SageMakerJob, region: str) -> Stock:
    """Return what a job's image is chosen from, with the image that the user names."""
    layout, script = job.layout, job.options.python_package
    image = hosts(layout).image or layout.image
    named = str(image or job.options.base)
    there = () if job.options.rehearsed and not script else offered(region, script=script)
    python = f"{BARE}{sys.version_info.major}.{sys.version_info.minor}-slim"
    return Stock(
        (*there, *_of_name(named)),
        "" if script else python,
        named,
        IMAGE if image else BASE,
        archive=script,
    )


def _of_other_choices(job: SageMakerJob, stock: Stock, chosen: Equipment) -> Iterator[Finding]:
    """Yield what keeps the image from serving each of the instance types to choose from: findings
    about one that the user names, an error where another would be chosen for other devices."""
    first = hardware_of(job.layout)
    for variant in job.layout.variants():
        hardware = hardware_of(variant)
        if (hardware.device, hardware.platform) == (first.device, first.platform):
            continue
        other = equip(uses_of(job), hardware, stock)
        yield from (finding for finding in other.findings if finding not in chosen.findings)
        same = (other.image, other.requirements) == (chosen.image, chosen.requirements)
        if not same and not stock.named:
            machine = hosts(variant).machine
            message = (
                f"{machine} would need {other.image}, and the other instance types to choose from "
                f"need {chosen.image}: name an image that serves all with --image or --base"
            )
            yield Finding("accelerator.choices", Severity.ERROR, "workers.alternatives", message)
            return


def _tagged(image: str, tag: str | None) -> str:
    """Return the image of the requested release; the table has its newest patch release."""
    match = _PROCESSOR.search(image) if tag and _OURS.search(image) else None
    if not match or not is_of(match["version"], tag):
        return image
    return image.replace(f":{match['version']}-", f":{tag}-")


@cache
def offered(region: str, *, script: bool = False) -> tuple[Container, ...]:
    """AWS's containers in that region; where it is yet to be chosen, so is the registry. Script
    mode has those of every Python, and none from AWS's public registry."""
    registry = registries().get(region) if region else REGISTRY
    stock = []
    for row in containers() if registry else ():
        for device in (CPU, GPU):
            image = f"{registry}/{row.framework}-training:{row.version}-{device}-{row.python}"
            if script or (python_of(image) or (0, 0)) >= _OLDEST_PYTHON:
                stock.append(Container(image, row.framework, row.version, (device,)))
    return (*stock, *(() if script else _neuron_containers()))


@cache
def _neuron_containers() -> tuple[Container, ...]:
    """Return those for Trainium, from AWS's public registry: an image is built on them."""
    return tuple(
        Container(
            row["image"],
            row["framework"],
            row["version"],
            (NEURON,),
            needs=tuple(filter(None, row["needs"].split(";"))),
            note=row["note"],
        )
        for row in _table("neuron_containers.csv")
    )


def _of_name(image: str) -> Iterator[Container]:
    """Yield a framework container that the user names, as its tag tells of it."""
    match = _OURS.search(image)
    device = _PROCESSOR.search(image.rpartition(":")[2])
    if match and device:
        yield Container(image, match[1], device["version"], (device["device"],))


def framework_of(job: SageMakerJob) -> str | None:
    """Return the framework of containers that its container's name tells, or that the program
    imports."""
    named = framework_in(hosts(job.layout).image or job.layout.image or "")
    if named:
        return named
    frameworks = {row.framework for row in containers()}
    return next((name for name in frameworks_of(job.program.imports) if name in frameworks), None)


def framework_in(image: str) -> str | None:
    """Return the framework that a framework container's name tells."""
    match = _OURS.search(image)
    return match[1] if match else None


def python_of(image: str) -> tuple[int, int] | None:
    """Return the version of Python that a framework container's tag tells of; `py3` is 3.6."""
    match = _PYTHON.search(image.rpartition(":")[2]) if _OURS.search(image) else None
    return (int(match[1]), int(match[2] or 6)) if match else None


def _table(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
