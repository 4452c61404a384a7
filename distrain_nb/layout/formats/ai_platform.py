"""AI Platform Training: `config.yaml`, which holds a job's `trainingInput`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.layout.formats.pieces import Given, Imported, present, seconds_of
from distrain_nb.layout.formats.vertex import shared_image
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    given: dict[str, Json] = {"scaleTier": layout.tier or _CUSTOM}
    for role, prefix in PREFIXES.items():
        pool = layout.pool(role)
        if pool:
            given.update(_pool(layout, role, prefix, pool))
    given.update(present(region=layout.region))
    if layout.timeout is not None:
        given["scheduling"] = {"maxRunningTime": f"{layout.timeout}s"}
    return {"trainingInput": given}


def _pool(layout: Layout, role: Role, prefix: str, pool: Pool) -> Iterator[tuple[str, Json]]:
    if role is not Role.PRIMARY or pool.replicas != 1:
        yield f"{prefix}Count", pool.replicas
    if pool.machine:
        yield f"{prefix}Type", pool.machine
    config = _config(pool, pool.image or layout.image)
    if config:
        yield f"{prefix}Config", config


def _config(pool: Pool, image: str | None) -> dict[str, Json]:
    asked = pool.accelerator or pool.accelerator_count
    return present(
        acceleratorConfig=present(
            count=pool.accelerator_count if asked else None, type=pool.accelerator
        ),
        imageUri=image,
        diskConfig=present(bootDiskType=pool.disk_type, bootDiskSizeGb=pool.disk_gb),
    )


def from_training_input(value: object) -> Imported:
    """Read what `training_input` gives. Raises OptionError, naming the path, for anything else."""
    outer = Given.of(value, "")
    given = outer.below("trainingInput")
    scheduling = given.below("scheduling")
    tier = given.word("scaleTier")
    layout = Layout(
        "ai-platform",
        region=given.text("region"),
        timeout=seconds_of(scheduling.text("maxRunningTime"), scheduling.at("maxRunningTime")),
        tier=tier.upper() if tier and tier.upper() != _CUSTOM else None,
    )
    left: list[str] = []
    pools: dict[str, Pool] = {}
    for role, prefix in PREFIXES.items():
        pool, lost = _read(given, prefix)
        left += lost
        if pool:
            pools[role.value] = pool
    layout = shared_image(layout.edited(pools))
    return Imported(
        "AI Platform config.yaml", layout, (*outer.done(), *given.done(scheduling), *left)
    )


def _read(given: Given, prefix: str) -> tuple[Pool | None, tuple[str, ...]]:
    count, machine = given.number(f"{prefix}Count"), given.word(f"{prefix}Type")
    config = given.below(f"{prefix}Config")
    accelerator, disk = config.below("acceleratorConfig"), config.below("diskConfig")
    there = machine or config.values or accelerator.values or disk.values
    if not there and not count:
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
