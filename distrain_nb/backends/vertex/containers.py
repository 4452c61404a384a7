"""The container image that a program runs on, where nobody has named one."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from packaging.version import Version

from distrain_nb.layout import Role
from distrain_nb.layout.catalog import current
from distrain_nb.layout.sizing import multi_region

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.backends.vertex.options import VertexJob
    from distrain_nb.layout import Layout
    from distrain_nb.layout.catalog.rows import PrebuiltContainer

# What the catalog's frameworks are imported as.
IMPORTED_AS = {
    "pytorch": ("torch", "lightning", "accelerate", "transformers"),
    "tensorflow": ("tensorflow", "keras"),
    "xgboost": ("xgboost",),
    "scikit-learn": ("sklearn",),
}


def base_of(job: VertexJob, region: str) -> str:
    """The base image: as chosen, else the newest prebuilt container of the program's framework in
    the nearest multi-region, else Python's own image in this notebook's version."""
    chosen = job.options.base
    if chosen:
        return str(chosen)
    fitting = max(_prebuilt(job), key=lambda row: Version(row.framework_version), default=None)
    if fitting is None:
        return f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
    return _nearest(fitting, region)


def _prebuilt(job: VertexJob) -> Iterator[PrebuiltContainer]:
    framework = job.layout.framework_name or next(
        (name for name, modules in IMPORTED_AS.items() if job.program.imports & set(modules)), None
    )
    version = job.layout.framework_version
    for row in current().containers.values():
        if (
            row.framework == framework
            and version in (None, row.framework_version)
            and _hardware(job.layout) in row.accelerator.split(";")
        ):
            yield row


def _hardware(layout: Layout) -> str:
    pool = layout.pool(Role.PRIMARY)
    if pool is None or not pool.accelerator:
        return "cpu" if pool is None or not pool.topology else "tpu"
    return "tpu" if pool.accelerator.startswith("TPU") else "gpu"


def _nearest(row: PrebuiltContainer, region: str) -> str:
    near = multi_region(region)
    if near not in row.multi_regions:
        return row.image_uri
    return re.sub(r"^us-", f"{near}-", row.image_uri)
