"""The fields that a layout is edited in: which there are, and their texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout import OPTIONS, Layout, Pool, Role
from distrain_nb.layout.catalog import short_name
from distrain_nb.layout.choices import roles
from distrain_nb.layout.place import place_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.option import Option
    from distrain_nb.layout.pool import Alternative

TITLES = {
    Role.PRIMARY: "Primary",
    Role.WORKERS: "Workers",
    Role.SERVERS: "Parameter servers",
    Role.REDUCERS: "Reduction Server",
    Role.EVALUATORS: "Evaluators",
}
_SIZE = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>|B|kB|MB|GB)", re.IGNORECASE)
_TIME = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>ms|s|)")
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_OPTIONS = {option.field: option for option in OPTIONS}
_ABSENT = {field.name: field.default for field in fields(Pool)}


@dataclass(frozen=True)
class Field:
    """A field of the form: its name in a layout or a pool, and its label.

    `kind` is `combo` (text with a list of what fits), `number` or `text`. An `extra` field is
    shown only when asked for, or when it holds something.
    """

    name: str
    label: str
    kind: str
    hint: str = ""
    extra: bool = False

    @classmethod
    def of(cls, option: Option) -> Field:
        """Return the field that an option declares."""
        return cls(option.field, option.label, option.kind, option.hint, option.extra)


SETTINGS = tuple(Field.of(option) for option in OPTIONS if option.label)

POOL_FIELDS = (
    Field("replicas", "Replicas", "number"),
    Field("machine", "Machine", "combo", "type to search"),
    Field("accelerator_count", "Count", "combo", "0"),
    Field("accelerator", "Accelerator", "combo", "none"),
    Field("disk_type", "Disk", "combo", "default"),
    Field("disk_gb", "Disk GB", "number", "auto"),
    Field("topology", "Topology", "combo", "such as 2x2", extra=True),
    Field("alternatives", "Alternatives", "combo", "none", extra=True),
    Field("image", "Image of this pool", "text", "the job's", extra=True),
)


def settings(layout: Layout) -> Iterator[Field]:
    """Return the fields of the whole layout: of its place, and whatever else holds something."""
    place = place_of(layout.on)
    return (f for f in SETTINGS if not place or place.reads(f.name) or _is_held(layout, f.name))


def _is_held(layout: Layout, name: str) -> bool:
    return bool(getattr(layout, name) != getattr(type(layout), name))


def columns(layout: Layout) -> Iterator[Field]:
    """Yield the fields that every pool of a layout shows."""
    place = place_of(layout.on)
    pools = [pool for _, pool in layout.pools()]
    for field in POOL_FIELDS:
        held = any(getattr(pool, field.name) != _ABSENT[field.name] for pool in pools)
        read = not place or place.reads(f"{Role.WORKERS}.{field.name}")
        if not field.extra and (read or held):
            yield field


def roles_shown(layout: Layout) -> Iterator[Role]:
    """Return the roles with a pool. On `local` that is the primary too, as it is there anyway."""
    return (role for role, _ in layout.pools())


def roles_to_add(layout: Layout) -> Iterator[Role]:
    """Return the roles that the place has pools for, and the layout not yet."""
    shown = set(roles_shown(layout))
    return (role for role in roles(layout.on) if role not in shown)


def text_of(layout: Layout, path: str) -> str:
    """Return the text that a field shows; empty where nothing was chosen."""
    name, _, field = path.partition(".")
    if not field:
        value = getattr(layout, name)
        return "" if value is None else _OPTIONS[name].write(value)
    value = getattr(getattr(layout, name) or Pool(), field)
    if field == "accelerator":
        return short_name(value) if value else ""
    if field == "alternatives":
        return "|".join(map(str, value))
    return "" if value is None or (field == "accelerator_count" and not value) else str(value)


def with_text(layout: Layout, path: str, text: str) -> Layout:
    """Return the layout with what a text says of a field. Raises OptionError naming what is
    allowed."""
    text = text.strip()
    name, _, field = path.partition(".")
    if field:
        return layout.edited({path: _pool_value(field, text)})
    option = _OPTIONS[name]
    try:
        value = option.read(text) if text else getattr(Layout, name)
    except ValueError:
        raise OptionError(f"{shown(text)} can't be read; write {option.form}.") from None
    return replace(layout, **{name: value})


def bytes_of(text: str) -> int:
    """Parse a size such as `400 MB` into bytes. Raises OptionError naming what is allowed."""
    match = _SIZE.fullmatch(text.strip())
    size = round(float(match["number"]) * _BYTES[match["unit"].upper()]) if match else 0
    if size < 1:
        raise OptionError(f"{shown(text)} is not a gradient's size; write it as 400 MB or 1.3 GB.")
    return size


def seconds_of(text: str) -> float:
    """Parse a time such as `250 ms` into seconds. Raises OptionError naming what is allowed."""
    match = _TIME.fullmatch(text.strip())
    seconds = float(match["number"]) * (0.001 if match["unit"] == "ms" else 1.0) if match else 0.0
    if not 1e-6 <= seconds < float("inf"):
        raise OptionError(f"{shown(text)} is not a step's time; write it as 250 ms or 1.5 s.")
    return seconds


def _pool_value(field: str, text: str) -> Any:
    if field in ("replicas", "accelerator_count", "disk_gb"):
        return _number(text) if text else _nothing(field)
    if field == "alternatives":
        return _alternatives(text)
    if not text or (field == "accelerator" and text == "none"):
        return None
    # A layout is also a line of text: what can't stand in it can't be chosen.
    pool = replace(Pool(machine="m"), **{field: text})  # type: ignore[arg-type]
    try:
        readable = Pool.parse(str(pool)) == pool
    except OptionError:
        readable = False
    if not readable:
        raise OptionError(f"{shown(text)} can't be the {field.replace('_', ' ')} of a pool.")
    return text


def _alternatives(text: str) -> tuple[Alternative, ...]:
    """Read machine types with a count before those that need another one, such as
    `ml.p4d.24xlarge|4*ml.g5.48xlarge`."""
    written = re.sub(r"[\s,|]+", "|", text).strip("|")
    try:
        pool = Pool.parse(f"m|{written}") if written else Pool()
    except OptionError:
        raise OptionError(
            f"{shown(text)} can't be read; write instance types, such as "
            "ml.p4d.24xlarge|4*ml.g5.48xlarge."
        ) from None
    return pool.alternatives


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{shown(text)} is not a whole number.") from None


def _nothing(field: str) -> int | None:
    if field == "replicas":
        raise OptionError("How many replicas? Write a whole number.")
    return 0 if field == "accelerator_count" else None
