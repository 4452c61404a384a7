"""The `gcloud` commands that create a Vertex AI job or submit an AI Platform one."""

from __future__ import annotations

import bisect
import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.catalog.active import current
from distrain_nb.layout.formats.ai_platform import from_training_input, training_input
from distrain_nb.layout.formats.pieces import Imported, chosen, unchosen, whole
from distrain_nb.layout.formats.vertex import (
    custom_job_spec,
    from_specs,
    shared_image,
    worker_pool_specs,
)
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.sizing import reduction_image
from distrain_nb.layout.yamls import data_yaml, yaml_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from distrain_nb.layout.layout import Layout

VERTEX = "gcloud ai custom-jobs create"
AI_PLATFORM = "gcloud ai-platform jobs submit training"

_FILE = "config.yaml"
_HEREDOC = re.compile(r"""<<-?[ \t]*['"]?(\w+)['"]?[ \t]*$""")
_PACKAGE = ("--package-path $APP_PACKAGE_PATH", "--module-name $MAIN_APP_MODULE")
_FLAGS = {
    Role.PRIMARY: "master",
    Role.WORKERS: "worker",
    Role.SERVERS: "parameter-server",
}
_FIELDS = ("count", "machine-type", "image-uri", "accelerator")
_SPEC = {
    "machine-type": ("machineSpec", "machineType"),
    "accelerator-type": ("machineSpec", "acceleratorType"),
    "accelerator-count": ("machineSpec", "acceleratorCount"),
    "container-image-uri": ("containerSpec", "imageUri"),
}


def custom_job_command(layout: Layout, name: str = "JOB_NAME") -> str:
    """`gcloud ai custom-jobs create`: with flags, or with a file for what flags can't say."""
    head = [f"--region={layout.region or 'LOCATION'}", f"--display-name={name}"]
    if _needs_file(layout):
        return _with_file(VERTEX, [*head, f"--config={_FILE}"], custom_job_spec(layout), "  ")
    specs = [f"--worker-pool-spec={_flag(spec)}" for spec in worker_pool_specs(layout)]
    return _lines(VERTEX, [*head, *specs], "  ")


def _needs_file(layout: Layout) -> bool:
    return any(
        pool.disk_type or pool.disk_gb is not None or pool.topology for _, pool in layout.pools()
    ) or any(value is not None for value in (layout.scheduling, layout.timeout, layout.max_wait))


def _flag(spec: dict[str, Any]) -> str:
    if not spec:
        return ""
    machine, container = spec["machineSpec"], spec["containerSpec"]
    pairs = {
        "machine-type": machine.get("machineType"),
        "replica-count": spec["replicaCount"],
        "accelerator-type": machine.get("acceleratorType"),
        "accelerator-count": machine.get("acceleratorCount"),
        "container-image-uri": container["imageUri"],
    }
    return ",".join(f"{key}={value}" for key, value in pairs.items() if value is not None)


def training_command(layout: Layout, name: str = "$JOB_NAME", args: Sequence[str] = ()) -> str:
    """`gcloud ai-platform jobs submit training`: with flags, or with a file for the rest.

    `args` are the program's own, a line each.
    """
    head = [
        *(() if _has_images(layout) else _PACKAGE),
        "--job-dir $JOB_DIR",
        f"--region {layout.region or '$REGION'}",
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
        or any(map(_beyond_flags, map(layout.pool, _FLAGS)))
    )


def _beyond_flags(pool: Pool | None) -> bool:
    return pool is not None and bool(
        pool.disk_type
        or pool.disk_gb is not None
        or (pool.accelerator_count and not pool.accelerator)
    )


def _role_flags(layout: Layout) -> Iterator[str]:
    for role, flag in _FLAGS.items():
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


def from_command(text: str) -> Imported:
    """Reads either command, with the file that a here-document writes before it.

    Raises OptionError naming what can't be read.
    """
    command, files = _apart(text)
    config = yaml_texts(files[0]) if files else None
    if "custom-jobs create" in command:
        found = _from_custom_job(_words(command), config)
    elif "jobs submit training" in command:
        found = _from_training(_words(command), config)
    else:
        raise OptionError(f"only `{VERTEX}` and `{AI_PLATFORM}` can be read")
    more = [f"file {number} of {len(files)}" for number in range(2, len(files) + 1)]
    return replace(found, left_out=(*found.left_out, *more))


def _apart(text: str) -> tuple[str, list[str]]:
    """The command without its here-documents, and these. Raises OptionError for one left open."""
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        ends.setdefault(line.rstrip(), []).append(number)
    command, files, at = [], [], 0
    while at < len(lines):
        found = _HEREDOC.search(lines[at])
        command.append(lines[at][: found.start()] if found else lines[at])
        if found:
            closing = ends.get(found[1], [])
            first = bisect.bisect_right(closing, at)
            if first == len(closing):
                raise OptionError(f"the file that begins with {shown(found[0])} has no end")
            files.append("\n".join(lines[at + 1 : closing[first]]))
            at = closing[first]
        at += 1
    return "\n".join(command), files


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command[command.index("gcloud") :].replace("\\\n", " "))
    except ValueError as wrong:
        raise OptionError(f"can't read the command: {wrong}") from None
    return words


def _flags(words: Sequence[str], verb: str) -> Iterator[tuple[str, str]]:
    """The flags with their values, whether `--flag=value` or `--flag value`.

    A word behind `verb` that belongs to no flag has the empty name, and so have all of the
    program's own behind `--`.
    """
    rest = list(words[words.index(verb) + 1 :] if verb in words else words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            yield from (("", each) for each in rest)
            return
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            yield "", word
        elif equals or not rest or rest[0].startswith("-"):
            yield name, value
        else:
            yield name, rest.pop(0)


def _left(name: str, value: str, *, has_file: bool) -> list[str]:
    """What is lost with a flag, or a word, that a layout has no place for."""
    if name == "config":
        return [] if has_file else [f"--config {value}"]
    if value and unchosen(value):
        return []
    return [f"--{name}" if name else value]


def _from_custom_job(words: Sequence[str], config: object) -> Imported:
    region, specs, left = None, [], []
    for name, value in _flags(words, "create"):
        if name == "region":
            region = chosen(value)
        elif name == "worker-pool-spec":
            specs.append(_spec(value))
        else:
            left += _left(name, value, has_file=config is not None)
    spec = dict(config) if isinstance(config, dict) else {}
    if specs and "workerPoolSpecs" in spec:
        left.append("workerPoolSpecs of the file, in whose place are the flags")
    if specs or not spec:
        spec["workerPoolSpecs"] = specs
    found = from_specs(spec)
    layout = _near_image(replace(found.layout, region=region))
    return Imported(VERTEX, layout, (*found.left_out, *left))


def _near_image(layout: Layout) -> Layout:
    pool = layout.reducers
    if pool and pool.image is None:
        pool = replace(pool, image=reduction_image(current(), None))
    if pool and pool.image == reduction_image(current(), layout.region):
        pool = replace(pool, image=None)
    return replace(layout, reducers=pool)


def _spec(text: str) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition("=")
        if key == "replica-count":
            spec["replicaCount"] = whole(value, key)
        elif key in _SPEC:
            part, name = _SPEC[key]
            spec.setdefault(part, {})[name] = value
        else:
            spec[key] = value
    if "acceleratorType" in spec.get("machineSpec", {}):
        spec["machineSpec"].setdefault("acceleratorCount", "1")
    return spec


def _from_training(words: Sequence[str], config: object) -> Imported:
    found = from_training_input(config or {"trainingInput": {}})
    layout, left = found.layout, list(found.left_out)
    for name, value in _flags(words, "training"):
        role, field = _target(name)
        if role and field in _FIELDS:
            layout = _with_flag(layout, role, field, value)
        elif name == "region":
            layout = replace(layout, region=chosen(value))
        elif name == "scale-tier":
            tier = value.upper().replace("-", "_")
            layout = replace(layout, tier=None if tier == "CUSTOM" else tier)
        else:
            left += _left(name, value, has_file=config is not None)
    return Imported(AI_PLATFORM, shared_image(layout), tuple(left))


def _target(name: str) -> tuple[Role | None, str]:
    for role, flag in _FLAGS.items():
        if name.startswith(f"{flag}-"):
            return role, name.removeprefix(f"{flag}-")
    return None, ""


def _with_flag(layout: Layout, role: Role, field: str, value: str) -> Layout:
    pool = layout.pool(role) or Pool()
    if field == "count":
        pool = replace(pool, replicas=whole(value, f"--{_FLAGS[role]}-count"))
    elif field == "machine-type":
        pool = replace(pool, machine=chosen(value))
    elif field == "image-uri":
        pool = replace(pool, image=chosen(value))
    elif field == "accelerator":
        parts = dict(part.partition("=")[::2] for part in value.split(","))
        pool = replace(
            pool,
            accelerator=parts.get("type") or None,
            accelerator_count=whole(parts.get("count", 1), f"--{_FLAGS[role]}-accelerator"),
        )
    return layout.edited({role.value: pool})
