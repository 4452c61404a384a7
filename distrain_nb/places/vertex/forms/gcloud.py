"""The command `gcloud ai custom-jobs create`, written and read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.layout.files import data_yaml
from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.commands import flags, lost_settings
from distrain_nb.layout.formats.images import image_of
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.mappings import whole_number
from distrain_nb.layout.formats.placeholders import is_variable, unchosen
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.places.vertex.forms.rest import has_empty_pool, near_image, request_command
from distrain_nb.places.vertex.forms.specs import custom_job_spec, from_specs, machine_spec

if TYPE_CHECKING:
    from distrain_nb.types import Json

COMMAND = "gcloud ai custom-jobs create"

_FILE = "config.yaml"
# `gcloud topic escaping`: a list or a dictionary may name another delimiter than a comma.
_DELIMITER = re.compile(r"\^([^^]+)\^")
_SPEC = {
    "machine-type": ("machineSpec", "machineType"),
    "accelerator-type": ("machineSpec", "acceleratorType"),
    "accelerator-count": ("machineSpec", "acceleratorCount"),
    "container-image-uri": ("containerSpec", "imageUri"),
}


def custom_job_command(layout: Layout) -> str:
    """Write `gcloud ai custom-jobs create` with flags, or with a file if flags can't express it."""
    region = shell_word(layout.region or placeholders.LOCATION)
    head = [f"--region={region}", f"--display-name={placeholders.JOB_NAME}"]
    spec = custom_job_spec(layout)
    if _pools_need_file(layout):
        if has_empty_pool(spec):
            return request_command(layout, spec)
        return with_file(COMMAND, [*head, f"--config={_FILE}"], spec, "  ")
    specs = {role.position: _flag(layout, role, pool) for role, pool in layout.pools()}
    positions = range(max(specs, default=-1) + 1)
    pools = [f"--worker-pool-spec={shell_word(specs.get(position, ''))}" for position in positions]
    if "scheduling" in spec:
        words = [*head, *pools, f"--config={_FILE}"]
        return with_file(COMMAND, words, {"scheduling": spec["scheduling"]}, "  ")
    return lines(COMMAND, [*head, *pools], "  ")


def _pools_need_file(layout: Layout) -> bool:
    return any(
        pool.disk_type or pool.disk_gb is not None or pool.topology for _, pool in layout.pools()
    )


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


def shell_word(text: str) -> str:
    """Quote a value for a shell, unless it is one of our own placeholders, such as $REGION."""
    return text if not text or text in placeholders.WORDS else shlex.quote(text)


def lines(start: str, words: Sequence[str], indent: str) -> str:
    """Write a command on several lines. Its words are already quoted."""
    return f" \\\n{indent}".join([start, *words])


def with_file(start: str, words: Sequence[str], content: object, indent: str) -> str:
    """Write a command after the here-document that writes its file."""
    text, end = data_yaml(content), "EOF"
    while end in text.splitlines():
        end += "_"
    return f"cat > {_FILE} <<'{end}'\n{text}{end}\n{lines(start, words, indent)}"


def from_custom_job(words: Sequence[str], config: object) -> Imported:
    """Read the words of the command, with its file."""
    region, specs, dropped, arguments = None, [], [], []
    for name, value in flags(words, "create"):
        if name == "args":
            arguments += split_list(value)
        elif name == "worker-pool-spec" and ("=" in value or not unchosen(value)):
            specs.append(_spec(value))
        elif unchosen(value) or name != "region":
            dropped += lost_settings(name, value, has_file=config is not None)
        else:
            region = value
    spec = dict(config) if isinstance(config, dict) else {}
    if specs and "workerPoolSpecs" in spec:
        dropped.append("workerPoolSpecs of the file, which the flags replace")
    if specs or not spec:
        spec["workerPoolSpecs"] = specs
    script = _script_of_specs(specs)
    dropped += [] if script else [f"--args={argument}" for argument in arguments]
    imported = from_specs(spec)
    layout = near_image(replace(imported.layout, region=region))
    lost = (*imported.left_out, *dropped)
    runs = (*script, *arguments) if script else ()
    return Imported(COMMAND, layout, lost, runs, imported.values)


def _script_of_specs(specs: Sequence[dict[str, Json]]) -> tuple[str, ...]:
    """Return the script or module of the first pool, which `gcloud` packages for all of them."""
    first = specs[0] if specs else {}
    if first.get("local-package-path", ".") not in (".", "./"):
        return ()
    first.pop("local-package-path", None)
    script, module = first.pop("script", None), first.pop("python-module", None)
    return ("-m", str(module)) if module else (str(script),) if script else ()


def split_list(text: str) -> list[str]:
    """Return the items of a list as gcloud reads it."""
    delimiter = _DELIMITER.match(text)
    return text[delimiter.end() :].split(delimiter[1]) if delimiter else text.split(",")


def _spec(text: str) -> dict[str, Json]:
    spec: dict[str, Json] = {}
    parts: dict[str, dict[str, Json]] = {}
    for pair in filter(None, split_list(text)):
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
