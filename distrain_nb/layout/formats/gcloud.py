"""The `gcloud` commands that create a Vertex AI job or submit an AI Platform one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.ai_platform import training_input
from distrain_nb.layout.formats.vertex import custom_job_spec, image_of, machine_spec
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.yamls import data_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from distrain_nb.layout.layout import Layout

VERTEX = "gcloud ai custom-jobs create"
AI_PLATFORM = "gcloud ai-platform jobs submit training"

_FILE = "config.yaml"
_PACKAGE = (
    f"--package-path {placeholders.PACKAGE_PATH}",
    f"--module-name {placeholders.MODULE_NAME}",
)
ROLE_FLAGS = {
    Role.PRIMARY: "master",
    Role.WORKERS: "worker",
    Role.SERVERS: "parameter-server",
}


def custom_job_command(layout: Layout, name: str = placeholders.JOB_NAME) -> str:
    """Write `gcloud ai custom-jobs create`: with flags, or with a file for what flags can't say."""
    head = [f"--region={layout.region or placeholders.LOCATION}", f"--display-name={name}"]
    if _needs_file(layout):
        return _with_file(VERTEX, [*head, f"--config={_FILE}"], custom_job_spec(layout), "  ")
    specs = {role.position: _flag(layout, role, pool) for role, pool in layout.pools()}
    positions = range(max(specs, default=-1) + 1)
    flags = [f"--worker-pool-spec={specs.get(position, '')}" for position in positions]
    return _lines(VERTEX, [*head, *flags], "  ")


def _needs_file(layout: Layout) -> bool:
    return any(
        pool.disk_type or pool.disk_gb is not None or pool.topology for _, pool in layout.pools()
    ) or any(value is not None for value in (layout.scheduling, layout.timeout, layout.max_wait))


def _flag(layout: Layout, role: Role, pool: Pool) -> str:
    machine = machine_spec(pool)
    pairs = {
        "machine-type": machine.get("machineType"),
        "replica-count": pool.replicas,
        "accelerator-type": machine.get("acceleratorType"),
        "accelerator-count": machine.get("acceleratorCount"),
        "container-image-uri": image_of(layout, role, pool),
    }
    return ",".join(f"{key}={value}" for key, value in pairs.items() if value is not None)


def training_command(
    layout: Layout, name: str = placeholders.ITS_NAME, args: Sequence[str] = ()
) -> str:
    """Write `gcloud ai-platform jobs submit training`: with flags, or with a file for the rest.
    `args` are the program's own, a line each."""
    head = [
        *(() if _has_images(layout) else _PACKAGE),
        f"--job-dir {placeholders.JOB_DIR}",
        f"--region {layout.region or placeholders.ITS_REGION}",
    ]
    tail = ["--", *args] if args else []
    start = f"{AI_PLATFORM} {name}"
    if _needs_config(layout):
        return _with_file(
            start, [*head, f"--config {_FILE}", *tail], training_input(layout), " " * 8
        )
    tier = f"--scale-tier {(layout.tier or 'custom').lower().replace('_', '-')}"
    return _lines(start, [*head, tier, *_role_flags(layout), *tail], " " * 8)


def _has_images(layout: Layout) -> bool:
    return any(pool.image or layout.image for _, pool in layout.pools())


def _needs_config(layout: Layout) -> bool:
    return (
        layout.evaluators is not None
        or layout.timeout is not None
        or (layout.primary is not None and layout.primary.replicas != 1)
        or any(map(_beyond_flags, map(layout.pool, ROLE_FLAGS)))
    )


def _beyond_flags(pool: Pool | None) -> bool:
    return pool is not None and bool(
        pool.disk_type
        or pool.disk_gb is not None
        or (pool.accelerator_count and not pool.accelerator)
    )


def _role_flags(layout: Layout) -> Iterator[str]:
    for role, flag in ROLE_FLAGS.items():
        pool = layout.pool(role)
        if pool is None:
            continue
        if role is not Role.PRIMARY:
            yield f"--{flag}-count {pool.replicas}"
        if pool.machine:
            yield f"--{flag}-machine-type {pool.machine}"
        if pool.accelerator:
            kind = pool.accelerator.lower().replace("_", "-")
            yield f"--{flag}-accelerator count={pool.accelerator_count},type={kind}"
        if pool.image or layout.image:
            yield f"--{flag}-image-uri {pool.image or layout.image}"


def _lines(start: str, flags: Sequence[str], indent: str) -> str:
    return f" \\\n{indent}".join([start, *flags])


def _with_file(start: str, flags: Sequence[str], content: object, indent: str) -> str:
    command = _lines(start, flags, indent)
    return f"cat > {_FILE} <<'EOF'\n{data_yaml(content)}EOF\n{command}"
