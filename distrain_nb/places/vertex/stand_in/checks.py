"""Checks of the service: custom jobs that it would not take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.findings import errors
from distrain_nb.layout import Layout, Pool
from distrain_nb.layout.rules import check
from distrain_nb.places.vertex.stand_in.refusals import invalid
from distrain_nb.places.vertex.stand_in.replicas import ROLES, image

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import types

_MAX_POOLS = 4


def refuse(spec: types.CustomJobSpec, region: str) -> None:
    """Raise ApiError for a job that the service would not take."""
    pools = spec.worker_pool_specs
    if not 1 <= len(pools) <= _MAX_POOLS:
        raise invalid(
            f"A custom job has 1 to {_MAX_POOLS} worker_pool_specs; this one has {len(pools)}."
        )
    if pools[0].replica_count != 1:
        raise invalid(
            "worker_pool_specs[0].replica_count must be 1, since the first worker pool is the "
            f"primary replica; it is {pools[0].replica_count}."
        )
    for position, pool in enumerate(pools):
        _check_pool(position, pool)
    base = spec.base_output_directory.output_uri_prefix
    if base and not base.startswith("gs://"):
        raise invalid(f"base_output_directory {base!r} is not a Cloud Storage location, gs://…")
    error = errors(check(_layout(spec, region)))
    if error:
        raise invalid(" ".join(f"{finding.where}: {finding.message}" for finding in error))


def _check_pool(position: int, pool: types.WorkerPoolSpec) -> None:
    where = f"worker_pool_specs[{position}]"
    if not pool.replica_count:
        if image(pool) or pool.machine_spec.machine_type:
            raise invalid(f"{where}.replica_count is 0: leave the whole worker pool empty.")
        return
    if not pool.machine_spec.machine_type:
        raise invalid(f"{where}.machine_spec.machine_type is required.")
    if bool(pool.container_spec.image_uri) == bool(pool.python_package_spec.executor_image_uri):
        raise invalid(f"{where} needs a container_spec or a python_package_spec, and not both.")
    package = pool.python_package_spec
    if package.executor_image_uri and not (package.package_uris and package.python_module):
        raise invalid(f"{where}.python_package_spec needs package_uris and a python_module.")


def _layout(spec: types.CustomJobSpec, region: str) -> Layout:
    """Return the job's machines in the words of the rules that hold for them."""
    pools = {
        str(role): Pool(
            replicas=pool.replica_count,
            machine=pool.machine_spec.machine_type,
            accelerator=_accelerator(pool),
            accelerator_count=pool.machine_spec.accelerator_count,
            topology=pool.machine_spec.tpu_topology or None,
        )
        for role, pool in zip(ROLES, spec.worker_pool_specs, strict=False)
        if pool.replica_count
    }
    return Layout(on="vertex", region=region, image=image(spec.worker_pool_specs[0]), **pools)  # type: ignore[arg-type]


def _accelerator(pool: types.WorkerPoolSpec) -> str | None:
    kind = pool.machine_spec.accelerator_type
    return kind.name if kind else None
