"""Reads the `gcloud` commands that create a Vertex AI job or submit an AI Platform one."""

from __future__ import annotations

import bisect
import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.catalog.active import current
from distrain_nb.layout.formats.ai_platform import from_training_input
from distrain_nb.layout.formats.gcloud import AI_PLATFORM, ROLE_FLAGS, VERTEX
from distrain_nb.layout.formats.pieces import Imported, is_variable, unchosen, whole_number
from distrain_nb.layout.formats.placeholders import WORDS
from distrain_nb.layout.formats.vertex import from_specs, shared_image
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.sizing import reduction_image
from distrain_nb.layout.yamls import yaml_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from distrain_nb.layout.layout import Layout
    from distrain_nb.types import Json

_HEREDOC = re.compile(r"""<<-?[ \t]*['"]?(\w+)['"]?[ \t]*$""")
_OF_SCRIPTS = ("module-name", "package-path", "--")
_FIELDS = ("count", "machine-type", "image-uri", "accelerator")
_SPEC = {
    "machine-type": ("machineSpec", "machineType"),
    "accelerator-type": ("machineSpec", "acceleratorType"),
    "accelerator-count": ("machineSpec", "acceleratorCount"),
    "container-image-uri": ("containerSpec", "imageUri"),
}


def from_command(text: str) -> Imported:
    """Read either command, with the file that a here-document writes before it.

    Raises OptionError naming what can't be read.
    """
    command, files = _apart(text)
    config = yaml_texts(files[0]) if files else None
    if "custom-jobs create" in command:
        imported = _from_custom_job(_words(command), config)
    elif "jobs submit training" in command:
        imported = _from_training(_words(command), config)
    else:
        raise OptionError(f"only `{VERTEX}` and `{AI_PLATFORM}` can be read")
    more = [f"file {number} of {len(files)}" for number in range(2, len(files) + 1)]
    return replace(imported, left_out=(*imported.left_out, *more))


def _apart(text: str) -> tuple[str, list[str]]:
    """Return the command without its here-documents, and these. Raises OptionError for one left
    open."""
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        ends.setdefault(line.rstrip(), []).append(number)
    command, files, at = [], [], 0
    while at < len(lines):
        match = _HEREDOC.search(lines[at])
        command.append(lines[at][: match.start()] if match else lines[at])
        if match:
            closing = ends.get(match[1], [])
            first = bisect.bisect_right(closing, at)
            if first == len(closing):
                raise OptionError(f"the file that begins with {shown(match[0])} has no end")
            files.append("\n".join(lines[at + 1 : closing[first]]))
            at = closing[first]
        at += 1
    return "\n".join(command), files


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command[command.index("gcloud") :].replace("\\\n", " "))
    except ValueError as error:
        raise OptionError(f"invalid command: {error}") from None
    return words


def _flags(words: Sequence[str], verb: str) -> Iterator[tuple[str, str]]:
    """Yield the flags with their values, whether `--flag=value` or `--flag value`.

    A word behind `verb` that belongs to no flag has the empty name, all of the program's own behind
    `--` have that for a name.
    """
    rest = list(words[words.index(verb) + 1 :] if verb in words else words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            yield from (("--", script_word) for script_word in rest)
            return
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            yield "", word
        elif equals or not rest or rest[0].startswith("-"):
            yield name, value
        else:
            yield name, rest.pop(0)


def _lost_with(name: str, value: str, *, has_file: bool) -> list[str]:
    """List what is lost with a flag, or a word, that a layout has no place for."""
    if name == "config":
        return [] if has_file else [f"--config {value}"]
    if name == "--":
        return [value]
    if value in WORDS:
        return []
    return [f"--{name}" if name else value]


def _from_custom_job(words: Sequence[str], config: object) -> Imported:
    region, specs, dropped, arguments = None, [], [], []
    for name, value in _flags(words, "create"):
        if name == "args":
            arguments += value.split(",")
        elif name == "worker-pool-spec" and ("=" in value or not unchosen(value)):
            specs.append(_spec(value))
        elif unchosen(value) or name != "region":
            dropped += _lost_with(name, value, has_file=config is not None)
        else:
            region = value
    spec = dict(config) if isinstance(config, dict) else {}
    if specs and "workerPoolSpecs" in spec:
        dropped.append("workerPoolSpecs of the file, in whose place are the flags")
    if specs or not spec:
        spec["workerPoolSpecs"] = specs
    script = _script_of_specs(specs)
    dropped += [] if script else [f"--args={argument}" for argument in arguments]
    imported = from_specs(spec)
    layout = _near_image(replace(imported.layout, region=region))
    return Imported(
        VERTEX, layout, (*imported.left_out, *dropped), (*script, *arguments) if script else ()
    )


def _script_of_specs(specs: Sequence[dict[str, Json]]) -> tuple[str, ...]:
    """Return the script or module of the first pool, which `gcloud` packages for all of them."""
    first = specs[0] if specs else {}
    if first.get("local-package-path", ".") not in (".", "./"):
        return ()
    first.pop("local-package-path", None)
    script, module = first.pop("script", None), first.pop("python-module", None)
    return ("-m", str(module)) if module else (str(script),) if script else ()


def _near_image(layout: Layout) -> Layout:
    pool = layout.reducers
    if pool and pool.image is None:
        pool = replace(pool, image=reduction_image(current(), None))
    if pool and pool.image == reduction_image(current(), layout.region):
        pool = replace(pool, image=None)
    return replace(layout, reducers=pool)


def _spec(text: str) -> dict[str, Json]:
    spec: dict[str, Json] = {}
    parts: dict[str, dict[str, Json]] = {}
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition("=")
        if key == "replica-count":
            spec["replicaCount"] = value if is_variable(value) else whole_number(value, key)
        elif key in _SPEC:
            part, name = _SPEC[key]
            parts.setdefault(part, {})[name] = value
        else:
            spec[key] = value
    if "acceleratorType" in parts.get("machineSpec", {}):
        parts["machineSpec"].setdefault("acceleratorCount", "1")
    return {**spec, **parts}


def _from_training(words: Sequence[str], config: object) -> Imported:
    imported = from_training_input(config or {"trainingInput": {}})
    layout, dropped = imported.layout, list(imported.left_out)
    flags = list(_flags(words, "training"))
    script = _module(dict(flags))
    for name, value in flags:
        role, field = _target(name)
        if script and name in _OF_SCRIPTS:
            script += (value,) if name == "--" else ()
        elif unchosen(value):
            dropped += _lost_with(name, value, has_file=config is not None)
        elif role and field in _FIELDS:
            layout = _with_flag(layout, role, field, value)
        elif name == "region":
            layout = replace(layout, region=value)
        elif name == "scale-tier":
            tier = value.upper().replace("-", "_")
            layout = replace(layout, tier=None if tier == "CUSTOM" else tier)
        else:
            dropped += _lost_with(name, value, has_file=config is not None)
    return Imported(AI_PLATFORM, shared_image(layout), tuple(dropped), script)


def _module(flags: Mapping[str, str]) -> tuple[str, ...]:
    """Return the module that a command runs, where its package stands in this folder."""
    name, package = flags.get("module-name", ""), flags.get("package-path", "").rstrip("/")
    is_here = package.removeprefix("./") == name.partition(".")[0]
    return ("-m", name) if is_here and name and not unchosen(name) else ()


def _target(name: str) -> tuple[Role | None, str]:
    for role, flag in ROLE_FLAGS.items():
        if name.startswith(f"{flag}-"):
            return role, name.removeprefix(f"{flag}-")
    return None, ""


def _with_flag(layout: Layout, role: Role, field: str, value: str) -> Layout:
    pool = layout.pool(role) or Pool()
    if field == "count":
        pool = replace(pool, replicas=whole_number(value, f"--{ROLE_FLAGS[role]}-count"))
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
                parts.get("count", 1), f"--{ROLE_FLAGS[role]}-accelerator"
            ),
        )
    return layout.edited({role.value: pool})
