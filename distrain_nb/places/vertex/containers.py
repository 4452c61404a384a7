"""The container image that a program runs on, where nobody has named one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.equipment import TODAY, stock_with_answer, uses_of
from distrain_nb.backends.remote.needed_packages import PackageNeeds, packages_to_install
from distrain_nb.cluster.equipment import BASE, IMAGE, Container, Equipment, Stock, equip
from distrain_nb.cluster.packages import bridge_modules
from distrain_nb.layout import Role
from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.index import prebuilt
from distrain_nb.layout.catalog.rows import PrebuiltContainer
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.hardware import TPU, hardware_of
from distrain_nb.layout.reduction_server import multi_region
from distrain_nb.program.frameworks import PACKAGES

if TYPE_CHECKING:
    from distrain_nb.places.vertex.options import VertexJob

# Google's containers for TPUs are for these alone.
_FIRST_TPUS = ("TPU_V2", "TPU_V3")
_NOT_FOR_JOBS = ("ray", "reduction-server")


def equipment_of(job: VertexJob, region: str) -> Equipment:
    """Return the base image with the packages that the program needs on it: as chosen, else a
    prebuilt container in the nearest multi-region, else Python's own image in this notebook's
    version."""
    return equip(
        uses_of(job), hardware_of(job.layout), stock_with_answer(job, stock_of(job, region))
    )


def stock_of(job: VertexJob, region: str) -> Stock:
    """Return what a job's image is chosen from, with the image that the user names."""
    layout = job.layout
    primary = layout.pool(Role.PRIMARY)
    image = layout.image or (primary.image if primary else None)
    return Stock(
        containers=_containers(region, str(image or job.options.base)),
        bare=f"python:{sys.version_info.major}.{sys.version_info.minor}-slim",
        named=str(image or job.options.base),
        option=IMAGE if image else BASE,
        today=job.machine.get(TODAY, ""),
        archive=job.options.python_package,
        bare_processes=job.options.rehearsed,
    )


def offered(region: str) -> tuple[Container, ...]:
    """Google's containers for jobs, in the multi-region nearest to a region."""
    return _offered(current(), region)


@lru_cache(maxsize=64)
def _offered(catalog: Catalog, region: str) -> tuple[Container, ...]:
    rows = catalog.containers.values()
    return tuple(
        _container(row, _nearest(row, region)) for row in rows if row.framework not in _NOT_FOR_JOBS
    )


def _containers(region: str, named: str) -> tuple[Container, ...]:
    """Return those in the nearest multi-region, and one that the user names in any."""
    row = prebuilt(current(), named)
    near = offered(region)
    return (*near, _container(row, named)) if row else near


def needed(program: PackageNeeds, base: str) -> Iterator[str]:
    """Return the packages that a prebuilt container installs; its own framework stays."""
    row = prebuilt(current(), base)
    there = PACKAGES.get(row.framework) if row else None
    return packages_to_install(program, [there] if there else ())


def _container(row: PrebuiltContainer, image: str) -> Container:
    devices = tuple(row.accelerator.split(";"))
    return Container(
        image,
        row.framework,
        row.framework_version,
        devices,
        _FIRST_TPUS if TPU in devices else (),
        bridge_modules(row.framework, devices) if TPU in devices else (),
        ends=row.end_of_availability,
    )


def _nearest(row: PrebuiltContainer, region: str) -> str:
    near = multi_region(region)
    if near not in row.multi_regions:
        return row.image_uri
    return re.sub(r"^us-", f"{near}-", row.image_uri)
