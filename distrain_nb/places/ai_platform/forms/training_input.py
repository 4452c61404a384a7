"""AI Platform Training: `config.yaml`, which holds a job's `trainingInput`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from distrain_nb.layout.formats.images import shared_image
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.mappings import MappingReader, present, seconds_of
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool, Role

if TYPE_CHECKING:
    from distrain_nb.types import Json

PREFIXES = {
    Role.PRIMARY: "master",
    Role.WORKERS: "worker",
    Role.SERVERS: "parameterServer",
    Role.EVALUATORS: "evaluator",
}
_CUSTOM = "CUSTOM"


def training_input(layout: Layout) -> dict[str, Json]:
    """Return the content of `config.yaml`, with its keys in the order of the documents."""
    fields: dict[str, Json] = {"scaleTier": layout.tier or _CUSTOM}
    for role, prefix in PREFIXES.items():
        pool = layout.pool(role)
        if pool:
            fields.update(_pool(layout, role, prefix, pool))
    fields.update(present(region=layout.region))
    if layout.timeout is not None:
        fields["scheduling"] = {"maxRunningTime": f"{layout.timeout}s"}
    return {"trainingInput": fields}


def _pool(layout: Layout, role: Role, prefix: str, pool: Pool) -> Iterator[tuple[str, Json]]:
    if role is not Role.PRIMARY or pool.replicas != 1:
        yield f"{prefix}Count", pool.replicas
    if pool.machine:
        yield f"{prefix}Type", pool.machine
    config = _config(pool, pool.image or layout.image)
    if config:
        yield f"{prefix}Config", config


def _config(pool: Pool, image: str | None) -> dict[str, Json]:
    has_accelerator = pool.accelerator or pool.accelerator_count
    return present(
        acceleratorConfig=present(
            count=pool.accelerator_count if has_accelerator else None, type=pool.accelerator
        ),
        imageUri=image,
        diskConfig=present(bootDiskType=pool.disk_type, bootDiskSizeGb=pool.disk_gb),
    )


def from_training_input(value: object) -> Imported:
    """Read what `training_input` gives. Raises OptionError, naming the path, for anything else."""
    outer = MappingReader.of(value, "")
    reader = outer.below("trainingInput")
    scheduling = reader.below("scheduling")
    tier = reader.word("scaleTier")
    layout = Layout(
        "ai-platform",
        region=reader.text("region"),
        timeout=seconds_of(scheduling.text("maxRunningTime"), scheduling.at("maxRunningTime")),
        tier=tier.upper() if tier and tier.upper() != _CUSTOM else None,
    )
    dropped: list[str] = []
    pools: dict[str, Pool] = {}
    for role, prefix in PREFIXES.items():
        pool, lost = _read(reader, prefix)
        dropped += lost
        if pool:
            pools[role.value] = pool
    layout = shared_image(layout.edited(pools))
    return Imported(
        "AI Platform config.yaml", layout, (*outer.done(), *reader.done(scheduling), *dropped)
    )


def _read(reader: MappingReader, prefix: str) -> tuple[Pool | None, tuple[str, ...]]:
    count, machine = reader.number(f"{prefix}Count"), reader.word(f"{prefix}Type")
    config = reader.below(f"{prefix}Config")
    accelerator, disk = config.below("acceleratorConfig"), config.below("diskConfig")
    has_fields = machine or config.values or accelerator.values or disk.values
    if not has_fields and not count:
        return None, ()
    pool = Pool(
        1 if count is None else count,
        machine,
        accelerator.word("type"),
        accelerator.number("count") or 0,
        disk.text("bootDiskType"),
        disk.number("bootDiskSizeGb"),
        image=config.text("imageUri"),
    )
    return pool, config.done(accelerator, disk)
