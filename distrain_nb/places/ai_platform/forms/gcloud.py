"""The command `gcloud ai-platform jobs submit training`, written and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.commands import flags, lost_settings
from distrain_nb.layout.formats.images import shared_image
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.mappings import whole_number
from distrain_nb.layout.formats.placeholders import unchosen
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.places.ai_platform.forms.training_input import from_training_input, training_input
from distrain_nb.places.vertex.forms.gcloud import lines, shell_word, with_file

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
