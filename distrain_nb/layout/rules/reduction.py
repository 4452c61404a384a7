"""The Reduction Server: what it works with, how large it is, which image it runs."""

from __future__ import annotations

from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from distrain_nb.findings import Severity
from distrain_nb.layout.catalog.index import limit, prebuilt
from distrain_nb.layout.pool import Role
from distrain_nb.layout.rules.engine import Problem, Repair, at, repair, rule
from distrain_nb.layout.sizing import multi_region, reduction_image, sized, training_gbps
from distrain_nb.layout.versions import split_framework, version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.placed import Job, Placed

_DOCUMENTS = "VERTEX-DT-JA;VERTEX-DT"
_VERTEX = ("vertex",)
_IMAGE = "/reductionserver"


def _training(job: Job) -> list[Placed]:
    return [placed for placed in job.pools if placed.role in (Role.PRIMARY, Role.WORKERS)]


def _remove() -> list[Repair]:
    return [repair("Remove the Reduction Server", reducers=None)]


@rule(
    "reducers-need-gpu-workers",
    "A Reduction Server serves a primary and workers that all have GPUs.",
    _DOCUMENTS,
    on=_VERTEX,
)
def reducers_need_gpu_workers(job: Job) -> Iterator[Problem]:
    if job.layout.reducers is None:
        return
    bare = [
        str(placed.role)
        for placed in _training(job)
        if placed.is_tpu or not placed.pool.accelerator or placed.pool.accelerator_count < 1
    ]
    if not job.layout.workers:
        yield Problem("reducers", "A Reduction Server needs a pool of GPU workers.", _remove)
    elif bare:
        lacking = f"without GPUs: {' and '.join(bare)}"
        yield Problem("reducers", f"A Reduction Server needs GPU workers; {lacking}.", _remove)


@rule(
    "reducers-with-accelerator",
    "The Reduction Server's own pool has no accelerators.",
    _DOCUMENTS,
    on=_VERTEX,
)
def reducers_with_accelerator(job: Job) -> Iterator[Problem]:
    placed = job.pool(Role.REDUCERS)
    if placed and (placed.pool.accelerator or placed.pool.accelerator_count or _gpu_only(placed)):
        yield Problem(
            "reducers.accelerator",
            "The Reduction Server uses no accelerators: its pool is of CPU machines.",
            partial(_cpu_reducers, job),
        )


def _gpu_only(placed: Placed) -> bool:
    return placed.machine is not None and placed.machine.accelerator_required


def _cpu_reducers(job: Job) -> Iterator[Repair]:
    bare = at(Role.REDUCERS, accelerator=None, accelerator_count=0)
    yield repair("Remove its accelerators", **bare)
    recommended = limit(job.catalog, "vertex", "reduction_server_machine")[0]
    yield repair(f"Use {recommended}", **bare, **at(Role.REDUCERS, machine=recommended))
    yield from _sized(job)


def _sized(job: Job) -> Iterator[Repair]:
    pool = sized(job)
    if pool:
        yield repair(f"Use {pool}", reducers=pool)


@rule(
    "reducers-bandwidth",
    "The Reduction Server's bandwidth is at least that of the primary and the workers together.",
    _DOCUMENTS,
    on=_VERTEX,
    severity=Severity.WARNING,
)
def reducers_bandwidth(job: Job) -> Iterator[Problem]:
    placed = job.pool(Role.REDUCERS)
    needed = training_gbps(job)
    if placed is None or needed is None or not placed.bandwidth_gbps:
        return
    has = placed.bandwidth_gbps * placed.pool.replicas
    if has < needed:
        yield Problem(
            "reducers.replicas",
            f"{placed.pool.replicas} x {placed.pool.machine} give {has:g} Gbit/s, but the primary "
            f"and the workers send up to {needed:g} Gbit/s.",
            partial(_more_reducers, job, ceil(needed / placed.bandwidth_gbps)),
        )


def _more_reducers(job: Job, replicas: int) -> Iterator[Repair]:
    yield repair(f"Use {replicas} reducers", **at(Role.REDUCERS, replicas=replicas))
    yield from _sized(job)


@rule(
    "reducers-image",
    "The Reduction Server's pool runs one of its own images.",
    _DOCUMENTS,
    on=_VERTEX,
)
def reducers_image(job: Job) -> Iterator[Problem]:
    pool = job.layout.reducers
    if pool and pool.image and _IMAGE not in pool.image:
        yield Problem(
            "reducers.image",
            f"{pool.image} is not an image of the Reduction Server.",
            partial(_own_image, job),
        )


def _own_image(job: Job) -> Iterator[Repair]:
    yield repair("Let the nearest image be used", **at(Role.REDUCERS, image=None))
    image = reduction_image(job.catalog, job.layout.region)
    yield repair(f"Use {image}", **at(Role.REDUCERS, image=image))


@rule(
    "reducers-image-far",
    "The Reduction Server's image comes from the multi-region nearest to the job.",
    _DOCUMENTS,
    on=_VERTEX,
    severity=Severity.WARNING,
)
def reducers_image_far(job: Job) -> Iterator[Problem]:
    pool, region = job.layout.reducers, job.layout.region
    if not (pool and pool.image and region and _IMAGE in pool.image):
        return
    nearest = multi_region(region)
    if not pool.image.startswith(f"{nearest}-"):
        yield Problem(
            "reducers.image",
            f"The image is not from the multi-region {nearest}, which is the nearest to {region}.",
            partial(_own_image, job),
        )


@rule(
    "reducers-container",
    "Prebuilt containers of the workers support the Reduction Server: GPU ones of TensorFlow 2.3 "
    "and later or PyTorch 1.4 and later.",
    "VERTEX-DT-JA;VERTEX-PBC",
    on=_VERTEX,
)
def reducers_container(job: Job) -> Iterator[Problem]:
    if job.layout.reducers is None:
        return
    oldest = dict(
        split_framework(text)
        for text in limit(job.catalog, "vertex", "reduction_server_framework_min")
    )
    least = oldest.get(job.layout.framework_name or "")
    number = version(job.layout.framework_version)
    if least and number and number < version(least):
        yield Problem(
            "framework",
            f"The Reduction Server needs {job.layout.framework_name} {least} or later, "
            f"not {job.layout.framework_version}.",
            _remove,
        )
    yield from _unable_images(job)


def _unable_images(job: Job) -> Iterator[Problem]:
    fields = {
        (placed.where("image") if placed.pool.image else "image"): placed.pool.image
        or job.layout.image
        for placed in _training(job)
    }
    for path, image in fields.items():
        row = prebuilt(job.catalog, image)
        if row and not row.reduction_server_worker:
            yield Problem(
                path,
                f"The prebuilt container {image} does not support the Reduction Server.",
                partial(_able_images, job, path, row.framework),
            )


def _able_images(job: Job, path: str, framework: str) -> Iterator[Repair]:
    able = [
        row
        for row in job.catalog.containers.values()
        if row.reduction_server_worker and row.framework == framework
    ]
    for row in sorted(able, key=lambda row: version(row.framework_version), reverse=True)[:1]:
        yield repair(f"Use {row.image_uri}", **{path.replace(".", "__"): row.image_uri})
    yield from _remove()


@rule(
    "reducers-framework",
    "The program's framework exchanges gradients with NCCL, as TensorFlow and PyTorch do.",
    "VERTEX-DT-JA;GCP-BLOG-RS",
    on=_VERTEX,
    severity=Severity.WARNING,
)
def reducers_framework(job: Job) -> Iterator[Problem]:
    name = job.framework
    if job.layout.reducers and name and name not in ("tensorflow", "pytorch"):
        yield Problem(
            "framework",
            f"The Reduction Server speeds up NCCL all-reduce; whether {name} uses it is not known.",
            _remove,
        )


@rule(
    "reducers-custom-container",
    "Custom containers have NCCL 2.7 or later and the package google-reduction-server.",
    "VERTEX-DT-JA",
    on=_VERTEX,
    severity=Severity.INFO,
)
def reducers_custom_container(job: Job) -> Iterator[Problem]:
    image = job.layout.image
    if job.layout.reducers and image and not prebuilt(job.catalog, image):
        least = limit(job.catalog, "vertex", "reduction_server_nccl_min")[0]
        yield Problem(
            "image",
            f"{image} needs NCCL {least} or later and the package google-reduction-server.",
        )


@rule(
    "reducers-flex-start",
    "A Reduction Server is not combined with FLEX_START, which wants one machine for all pools.",
    "VERTEX-DWS",
    on=_VERTEX,
)
def reducers_flex_start(job: Job) -> Iterator[Problem]:
    if job.layout.reducers and job.layout.scheduling == "FLEX_START":
        yield Problem(
            "scheduling",
            "FLEX_START wants the same machines in all pools, and a Reduction Server has others.",
            lambda: [repair("Use standard scheduling", scheduling=None), *_remove()],
        )
