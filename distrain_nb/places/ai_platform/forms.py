"""The command `gcloud ai-platform jobs submit training`, written and read.

AI Platform Training: `config.yaml`, which holds a job's `trainingInput`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.commands import flags, lost_settings
from distrain_nb.layout.formats.images import shared_image
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.mappings import MappingReader, present, seconds_of, whole_number
from distrain_nb.layout.formats.placeholders import unchosen
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.places.vertex.forms.gcloud import lines, shell_word, with_file

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


COMMAND = "gcloud ai-platform jobs submit training"

_FILE = "config.yaml"
_PACKAGE = (
    f"--package-path {placeholders.PACKAGE_PATH}",
    f"--module-name {placeholders.MODULE_NAME}",
)
_OF_SCRIPTS = ("module-name", "package-path", "--")
_FIELDS = ("count", "machine-type", "image-uri", "accelerator")
_ROLE_FLAGS = {
    Role.PRIMARY: "master",
    Role.WORKERS: "worker",
    Role.SERVERS: "parameter-server",
}


def training_command(layout: Layout) -> str:
    """Write `gcloud ai-platform jobs submit training`: with flags, or with a file for the rest."""
    head = [
        *(() if _has_images(layout) else _PACKAGE),
        f"--job-dir {placeholders.JOB_DIR}",
        f"--region {shell_word(layout.region or placeholders.ITS_REGION)}",
    ]
    start = f"{COMMAND} {placeholders.ITS_NAME}"
    if _needs_config(layout):
        return with_file(start, [*head, f"--config {_FILE}"], training_input(layout), " " * 8)
    tier = f"--scale-tier {shell_word((layout.tier or 'custom').lower().replace('_', '-'))}"
    return lines(start, [*head, tier, *_role_flags(layout)], " " * 8)


def _has_images(layout: Layout) -> bool:
    return any(pool.image or layout.image for _, pool in layout.pools())


def _needs_config(layout: Layout) -> bool:
    return (
        layout.evaluators is not None
        or layout.timeout is not None
        or (layout.primary is not None and layout.primary.replicas != 1)
        or any(map(_beyond_flags, map(layout.pool, _ROLE_FLAGS)))
    )


def _beyond_flags(pool: Pool | None) -> bool:
    return pool is not None and bool(
        pool.disk_type
        or pool.disk_gb is not None
        or (pool.accelerator_count and not pool.accelerator)
    )


def _role_flags(layout: Layout) -> Iterator[str]:
    for role, flag in _ROLE_FLAGS.items():
        pool = layout.pool(role)
        if pool is None:
            continue
        if role is not Role.PRIMARY:
            yield f"--{flag}-count {pool.replicas}"
        if pool.machine:
            yield f"--{flag}-machine-type {shell_word(pool.machine)}"
        if pool.accelerator:
            kind = pool.accelerator.lower().replace("_", "-")
            accelerator = shell_word(f"count={pool.accelerator_count},type={kind}")
            yield f"--{flag}-accelerator {accelerator}"
        image = pool.image or layout.image
        if image:
            yield f"--{flag}-image-uri {shell_word(image)}"


def from_training(words: Sequence[str], config: object) -> Imported:
    """Read the words of the command, with its file."""
    imported = from_training_input(config or {"trainingInput": {}})
    layout, dropped = imported.layout, list(imported.left_out)
    pairs = list(flags(words, "training"))
    script = _module(dict(pairs))
    job_folder: tuple[str, ...] = ()  # which the service gives to the program, behind its own
    for name, value in pairs:
        role, field = _target(name)
        if script and name in _OF_SCRIPTS:
            script += (value,) if name == "--" else ()
        elif script and name == "job-dir" and not unchosen(value):
            job_folder = (f"--{name}", value)
        elif unchosen(value):
            dropped += lost_settings(name, value, has_file=config is not None)
        elif role and field in _FIELDS:
            layout = _with_flag(layout, role, field, value)
        elif name == "region":
            layout = replace(layout, region=value)
        elif name == "scale-tier":
            tier = value.upper().replace("-", "_")
            layout = replace(layout, tier=None if tier == "CUSTOM" else tier)
        else:
            dropped += lost_settings(name, value, has_file=config is not None)
    return Imported(COMMAND, shared_image(layout), tuple(dropped), (*script, *job_folder))


def _module(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the module that a command runs, where its package stands in this folder."""
    name, package = values.get("module-name", ""), values.get("package-path", "").rstrip("/")
    is_here = package.removeprefix("./") == name.partition(".")[0]
    return ("-m", name) if is_here and name and not unchosen(name) else ()


def _target(name: str) -> tuple[Role | None, str]:
    for role, flag in _ROLE_FLAGS.items():
        if name.startswith(f"{flag}-"):
            return role, name.removeprefix(f"{flag}-")
    return None, ""


def _with_flag(layout: Layout, role: Role, field: str, value: str) -> Layout:
    pool = layout.pool(role) or Pool()
    if field == "count":
        pool = replace(pool, replicas=whole_number(value, f"--{_ROLE_FLAGS[role]}-count"))
    elif field == "machine-type":
        pool = replace(pool, machine=value)
    elif field == "image-uri":
        pool = replace(pool, image=value)
    elif field == "accelerator":
        parts = dict(part.partition("=")[::2] for part in value.split(","))
        pool = replace(
            pool,
            accelerator=parts.get("type") or None,
            accelerator_count=whole_number(
                parts.get("count", 1), f"--{_ROLE_FLAGS[role]}-accelerator"
            ),
        )
    return layout.edited({role.value: pool})
