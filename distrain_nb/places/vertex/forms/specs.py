"""Vertex AI: worker pools and scheduling as the API's `CustomJobSpec` has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.images import image_of, shared_image
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.letter_case import camel_keys, snake
from distrain_nb.layout.formats.mappings import MappingReader, present, seconds_of, values_at
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool, Role

if TYPE_CHECKING:
    from distrain_nb.types import Json

_POSITIONS = 4
_SNAKE = frozenset(
    {
        *("worker_pool_specs", "job_spec", "machine_spec", "disk_spec", "container_spec"),
        *("replica_count", "python_package_spec", "display_name"),
    }
)
_REDUCTION = "reductionserver"


def custom_job_spec(layout: Layout) -> dict[str, Json]:
    """Return the layout as a `CustomJobSpec` in JSON: `workerPoolSpecs`, and `scheduling` if
    chosen."""
    pools = worker_pool_specs(layout)
    return {"workerPoolSpecs": pools, **present(scheduling=scheduling(layout))}


def worker_pool_specs(layout: Layout) -> list[dict[str, Json]]:
    """Return the pools by position; an unused position before a used one is an empty pool."""
    specs: list[dict[str, Json]] = []
    for role, pool in layout.pools():
        specs += [{} for _ in range(role.position - len(specs))]
        specs[role.position : role.position + 1] = [_spec(layout, role, pool)]
    return specs


def scheduling(layout: Layout) -> dict[str, Json]:
    """Write how machines are obtained, where the layout says so, as a `Scheduling`."""
    return present(
        strategy=layout.scheduling,
        timeout=_duration(layout.timeout),
        maxWaitDuration=_duration(layout.max_wait),
    )


def machine_spec(pool: Pool) -> dict[str, Json]:
    """Return the machines of a pool, as a `MachineSpec`."""
    has_accelerator = pool.accelerator or pool.accelerator_count
    return present(
        machineType=pool.machine,
        acceleratorType=pool.accelerator,
        acceleratorCount=pool.accelerator_count if has_accelerator else None,
        tpuTopology=pool.topology,
    )


def _spec(layout: Layout, role: Role, pool: Pool) -> dict[str, Json]:
    return {
        "machineSpec": machine_spec(pool),
        "replicaCount": pool.replicas,
        **present(diskSpec=present(bootDiskType=pool.disk_type, bootDiskSizeGb=pool.disk_gb)),
        "containerSpec": {"imageUri": image_of(layout, role, pool)},
    }


def _duration(seconds: int | None) -> str | None:
    return None if seconds is None else f"{seconds}s"


def from_specs(spec: object) -> Imported:
    """Read a `CustomJobSpec`, a `CustomJob` around one, or a list of worker pools, with keys as
    JSON has them or as Python has.

    Raises OptionError, naming the path, for what is no such thing.
    """
    if not _is_in_snake_case(spec):
        return _from_specs(spec)
    imported = _from_specs(camel_keys(spec))
    values = {snake(path): value for path, value in imported.values.items()}
    return replace(imported, left_out=tuple(map(snake, imported.left_out)), values=values)


def _is_in_snake_case(spec: object) -> bool:
    """Return whether a part that a layout is read from has a key as in Python."""
    parts = spec if isinstance(spec, list) else [spec]
    keys = {key for part in parts if isinstance(part, dict) for key in part}
    return not keys.isdisjoint(_SNAKE)


def _from_specs(spec: object) -> Imported:
    source = {"workerPoolSpecs": spec} if isinstance(spec, list) else spec
    reader = MappingReader.of(source, "")
    outer = reader.done() if "jobSpec" in reader.values else ()
    if "jobSpec" in reader.values:
        reader = reader.below("jobSpec")
    pools = reader.values.pop("workerPoolSpecs", None)
    if not isinstance(pools, list) or len(pools) > _POSITIONS:
        raise OptionError(f"invalid workerPoolSpecs: expected a list of up to {_POSITIONS} pools")
    times = reader.below("scheduling")
    layout = Layout(
        "vertex",
        scheduling=times.word("strategy"),
        timeout=seconds_of(times.text("timeout"), times.at("timeout")),
        max_wait=seconds_of(times.text("maxWaitDuration"), times.at("maxWaitDuration")),
    )
    dropped = [path for path in outer if path != "jobSpec"]
    pool_of_role: dict[str, Pool] = {}
    for number, value in enumerate(pools):
        if value:
            part = MappingReader.of(value, f"workerPoolSpecs[{number}]")
            pool, lost = _pool(part)
            pool_of_role[_role(number, pool).value] = pool
            dropped += lost
    layout = shared_image(layout.edited(pool_of_role))
    lost = (*dropped, *reader.done(times))
    return Imported("Vertex AI job", layout, lost, values=values_at(source, lost))


def _pool(part: MappingReader) -> tuple[Pool, tuple[str, ...]]:
    machine, disk = part.below("machineSpec"), part.below("diskSpec")
    container = part.below("containerSpec")
    replicas = part.number("replicaCount")
    pool = Pool(
        1 if replicas is None else replicas,
        machine.text("machineType"),
        machine.word("acceleratorType"),
        machine.number("acceleratorCount") or 0,
        disk.text("bootDiskType"),
        disk.number("bootDiskSizeGb"),
        machine.text("tpuTopology"),
        container.text("imageUri"),
    )
    return pool, part.done(machine, disk, container)


def _role(position: int, pool: Pool) -> Role:
    if position == Role.REDUCERS.position and _REDUCTION in (pool.image or ""):
        return Role.REDUCERS
    return next(role for role in Role if role.position == position)
