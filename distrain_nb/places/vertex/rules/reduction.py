"""The Reduction Server: what it works with, how large it is, which image it runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import ceil

from distrain_nb.findings import Severity
from distrain_nb.layout.catalog.index import limit, prebuilt
from distrain_nb.layout.pool import Role
from distrain_nb.layout.reduction_server import (
    multi_region,
    reduction_image,
    reduction_pool,
    training_gbps,
)
from distrain_nb.layout.releases import older, release, releases
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool
from distrain_nb.layout.rules.engine import Problem, Repair, at, repair
from distrain_nb.layout.rules.repairs import standard_scheduling, without_pool
from distrain_nb.places.vertex.rules import rule, warning

_DOCUMENTS = "VERTEX-DT-JA;VERTEX-DT"
_IMAGE = "/reductionserver"

# The article's own example has 20 for 8 machines, the documents' 16 for 5.
_MOST_FOR_ONE = 8

_without = partial(without_pool, Role.REDUCERS)


@rule("A Reduction Server serves a primary and workers that all have GPUs.", _DOCUMENTS)
def reducers_need_gpu_workers(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.reducers is None:
        return
    bare = [
        str(resolved.role)
        for resolved in job.training
        if resolved.is_tpu or not resolved.pool.accelerator or resolved.pool.accelerator_count < 1
    ]
    if not job.layout.workers:
        yield Problem("reducers", "A Reduction Server needs a pool of GPU workers.", _without)
    elif bare:
        lacking = f"without GPUs: {' and '.join(bare)}"
        yield Problem("reducers", f"A Reduction Server needs GPU workers; {lacking}.", _without)


@rule("The Reduction Server's own pool has no accelerators.", _DOCUMENTS)
def reducers_with_accelerator(job: ResolvedLayout) -> Iterator[Problem]:
    resolved = job.pool(Role.REDUCERS)
    if resolved and (
        resolved.pool.accelerator or resolved.pool.accelerator_count or _gpu_only(resolved)
    ):
        yield Problem(
            "reducers.accelerator",
            "The Reduction Server uses no accelerators: its pool is of CPU machines.",
            partial(_cpu_reducers, job),
        )


def _gpu_only(resolved: ResolvedPool) -> bool:
    return resolved.machine is not None and resolved.machine.accelerator_required


def _cpu_reducers(job: ResolvedLayout) -> Iterator[Repair]:
    bare = at(Role.REDUCERS, accelerator=None, accelerator_count=0)
    yield repair("Remove its accelerators", **bare)
    recommended = limit(job.catalog, "vertex", "reduction_server_machine")[0]
    yield repair(f"Use {recommended}", **bare, **at(Role.REDUCERS, machine=recommended))
    yield from _sized(job)


def _sized(job: ResolvedLayout) -> Iterator[Repair]:
    pool = reduction_pool(job)
    if pool:
        yield repair(f"Use {pool}", reducers=pool)


@warning(
    "The Reduction Server's bandwidth is at least that of the primary and the workers together.",
    _DOCUMENTS,
)
def reducers_bandwidth(job: ResolvedLayout) -> Iterator[Problem]:
    resolved = job.pool(Role.REDUCERS)
    needed = training_gbps(job)
    if resolved is None or needed is None or not resolved.bandwidth_gbps:
        return
    has = resolved.bandwidth_gbps * resolved.pool.replicas
    if has < needed:
        yield Problem(
            "reducers.replicas",
            f"{resolved.pool.replicas} x {resolved.pool.machine} give {has:g} Gbit/s, but the "
            f"primary and the workers send up to {needed:g} Gbit/s.",
            partial(_more_reducers, job, ceil(needed / resolved.bandwidth_gbps)),
        )


@warning(
    f"A Reduction Server has at most {_MOST_FOR_ONE} machines for each one that trains.",
    "GCP-BLOG-RS",
)
def reducers_many(job: ResolvedLayout) -> Iterator[Problem]:
    resolved = job.pool(Role.REDUCERS)
    training = sum(pool.pool.replicas for pool in job.training)
    if resolved and 0 < training * _MOST_FOR_ONE < resolved.pool.replicas:
        count = resolved.pool.replicas
        yield Problem(
            "reducers.replicas",
            f"{count} machines reduce the gradients of {training}: their network is too fast for a "
            "Reduction Server to pay.",
            _without,
        )


def _more_reducers(job: ResolvedLayout, replicas: int) -> Iterator[Repair]:
    yield repair(f"Use {replicas} reducers", **at(Role.REDUCERS, replicas=replicas))
    yield from _sized(job)


@rule("The Reduction Server's pool runs one of its own images.", _DOCUMENTS)
def reducers_image(job: ResolvedLayout) -> Iterator[Problem]:
    pool = job.layout.reducers
    if pool and pool.image and _IMAGE not in pool.image:
        yield Problem(
            "reducers.image",
            f"{pool.image} is not an image of the Reduction Server.",
            partial(_own_image, job),
        )


def _own_image(job: ResolvedLayout) -> Iterator[Repair]:
    yield repair("Let the nearest image be used", **at(Role.REDUCERS, image=None))
    image = reduction_image(job.catalog, job.layout.region)
    yield repair(f"Use {image}", **at(Role.REDUCERS, image=image))


@warning("The Reduction Server's image comes from the multi-region nearest to the job.", _DOCUMENTS)
def reducers_image_far(job: ResolvedLayout) -> Iterator[Problem]:
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
    "Prebuilt containers of the workers support the Reduction Server: GPU ones of TensorFlow 2.3 "
    "and later or PyTorch 1.4 and later.",
    "VERTEX-DT-JA;VERTEX-PBC",
)
def reducers_container(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.reducers is None:
        return
    listed = limit(job.catalog, "vertex", "reduction_server_framework_min")
    least = next(iter(releases(listed, job.layout.framework_name)), None)
    if older(job.layout.framework_version, least):
        yield Problem(
            "framework",
            f"The Reduction Server needs {job.layout.framework_name} {least} or later, "
            f"not {job.layout.framework_version}.",
            _without,
        )
    yield from _unable_images(job)


def _unable_images(job: ResolvedLayout) -> Iterator[Problem]:
    fields = {
        (resolved.where("image") if resolved.pool.image else "image"): resolved.pool.image
        or job.layout.image
        for resolved in job.training
    }
    for path, image in fields.items():
        row = prebuilt(job.catalog, image)
        if row and not row.reduction_server_worker:
            yield Problem(
                path,
                f"The prebuilt container {image} does not support the Reduction Server.",
                partial(_able_images, job, path, row.framework),
            )


def _able_images(job: ResolvedLayout, path: str, framework: str) -> Iterator[Repair]:
    able = [
        (number, row)
        for row in job.catalog.containers.values()
        if row.reduction_server_worker and row.framework == framework
        for number in [release(row.framework_version)]
        if number
    ]
    if able:
        _, row = max(able, key=lambda pair: pair[0])
        yield repair(f"Use {row.image_uri}", **{path.replace(".", "__"): row.image_uri})
    yield from _without()


@warning(
    "The program's framework exchanges gradients with NCCL, as TensorFlow and PyTorch do.",
    "VERTEX-DT-JA;GCP-BLOG-RS",
)
def reducers_framework(job: ResolvedLayout) -> Iterator[Problem]:
    name = job.framework
    if job.layout.reducers and name and name not in ("tensorflow", "pytorch"):
        yield Problem(
            "framework",
            f"The Reduction Server speeds up NCCL all-reduce; whether {name} uses it is not known.",
            _without,
        )


@rule(
    "Custom containers have NCCL 2.7 or later and the package google-reduction-server.",
    "VERTEX-DT-JA",
    severity=Severity.INFO,
)
def reducers_custom_container(job: ResolvedLayout) -> Iterator[Problem]:
    image = job.layout.image
    if job.layout.reducers and image and not prebuilt(job.catalog, image):
        least = limit(job.catalog, "vertex", "reduction_server_nccl_min")[0]
        yield Problem(
            "image",
            f"{image} needs NCCL {least} or later and the package google-reduction-server.",
        )


@rule(
    "A Reduction Server doesn't go with FLEX_START, which requires one machine type for all pools.",
    "VERTEX-DWS",
)
def reducers_flex_start(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.reducers and job.layout.scheduling == "FLEX_START":
        yield Problem(
            "scheduling",
            "FLEX_START needs the same machines in all pools, and a Reduction Server has others.",
            lambda: [*standard_scheduling(), *_without()],
        )
