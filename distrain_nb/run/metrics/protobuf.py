"""Finds the fields of one serialised TensorBoard event, without message objects.

The messages (`tensorflow/core/util/event.proto`, `summary.proto`, `tensor.proto`) are walked by
field number; fields of no interest are stepped over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from distrain_nb.worker.metrics.event_format import EXACT_FIELD

# From a byte up to another.
Span: TypeAlias = "slice[int, int, int]"

VARINT = "varint"
_FIXED64, _BYTES, _FIXED32 = 1, 2, 5

_SESSION_START = 1
# What a value is, by its field in Summary.Value or by the plugin that its metadata names
_FIELD_KINDS = {4: "image", 5: "histogram", 6: "audio"}
_PLUGIN_KINDS = {
    b"": "tensor",
    b"histograms": "histogram",
    b"images": "image",
    b"pr_curves": "PR curve",
}

# DataType in tensorflow/core/framework/types.proto
_TENSOR_TYPES = {
    1: "<f4",
    2: "<f8",
    3: "<i4",
    4: "<u1",
    5: "<i2",
    6: "<i1",
    9: "<i8",
    10: "|b1",
    17: "<u2",
    19: "<f2",
    22: "<u4",
    23: "<u8",
}
# Field of TensorProto that holds values of one type -> how they are stored there
_TENSOR_VALUES = {5: "<f4", 6: "<f8", 7: VARINT, 10: VARINT, 11: VARINT}
_TENSOR_DTYPE, _TENSOR_SHAPE, _TENSOR_CONTENT = 1, 2, 4


class Malformed(ValueError):
    """The bytes are no serialised message."""


@dataclass(frozen=True)
class Slot:
    """The place of one scalar in an event: byte ranges of its tag and value, and how to read it.

    `kind` is a NumPy type string, or VARINT. `rounded` is the same number once more, shorter.
    """

    tag: Span
    value: Span
    kind: str
    rounded: Span | None = None


@dataclass(frozen=True)
class NonScalarPlace:
    """The place of a value that is no scalar: byte ranges of its tag and of all of its message.

    `kind` is `histogram`, `image`, `text`, `hparams`, or what else wrote it calls it; `tensor` for
    one of which only an earlier event may say what it is.
    """

    tag: Span
    kind: str
    span: Span


@dataclass(frozen=True)
class EventLayout:
    """The places of all fields of one event. Absent fields are None, and mean 0."""

    wall_time: Span | None
    step: Span | None
    slots: tuple[Slot, ...]
    restarts: bool = False
    items: tuple[NonScalarPlace, ...] = ()

    @property
    def tells(self) -> bool:
        """Whether there is something in it for the charts."""
        return bool(self.slots) or self.restarts


Field = tuple[int, int, int, int]


def layout_of(data: bytes) -> EventLayout:
    """Raise Malformed."""
    wall_time = step = None
    restarts = False
    parts: list[Slot | NonScalarPlace] = []
    for number, wire, start, end in fields(data, 0, len(data)):
        if number == 1 and wire == _FIXED64:
            wall_time = slice(start, end)
        elif number == 2 and wire == 0:
            step = slice(start, end)
        elif number == 5 and wire == _BYTES:
            parts += _summary(data, start, end)
        elif number == 7 and wire == _BYTES:
            restarts = _is_session_start(data, start, end)
    slots = tuple(part for part in parts if isinstance(part, Slot))
    items = tuple(part for part in parts if isinstance(part, NonScalarPlace))
    return EventLayout(wall_time, step, slots, restarts, items)


def fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """Yield (field number, wire type, start, end) of each field. Raises Malformed."""
    at = start
    while at < end:
        key, at = _varint(data, at, end)
        wire = key & 7
        if wire == 0:
            stop = _varint(data, at, end)[1]
        elif wire == _BYTES:
            size, at = _varint(data, at, end)
            stop = at + size
        elif wire in (_FIXED64, _FIXED32):
            stop = at + (8 if wire == _FIXED64 else 4)
        else:
            raise Malformed(f"wire type {wire} at byte {at}")
        if stop > end:
            raise Malformed(f"a field that ends at byte {stop} of {end}")
        yield key >> 3, wire, at, stop
        at = stop


def varint(data: bytes, where: Span) -> int:
    """Return the signed 64-bit number that stands there."""
    number = _varint(data, where.start, where.stop)[0] & 0xFFFFFFFFFFFFFFFF
    return number - (1 << 64) if number >> 63 else number


def number(data: bytes, slot: Slot) -> float:
    """Return the value of the scalar."""
    if slot.kind == VARINT:
        return float(varint(data, slot.value))
    raw = data[slot.value]
    code = {"f2": "e", "f4": "f", "f8": "d", "b1": "?"}.get(slot.kind[1:])
    if code is None:
        return float(int.from_bytes(raw, "little", signed=slot.kind[1] == "i"))
    return float(struct.unpack("<" + code, raw)[0])


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Malformed(f"a number without an end at byte {at}")


def _is_session_start(data: bytes, start: int, end: int) -> bool:
    return any(
        number == 1 and wire == 0 and varint(data, slice(at, stop)) == _SESSION_START
        for number, wire, at, stop in fields(data, start, end)
    )


def _summary(data: bytes, start: int, end: int) -> list[Slot | NonScalarPlace]:
    parts = [
        _value(data, at, stop)
        for number, wire, at, stop in fields(data, start, end)
        if number == 1 and wire == _BYTES
    ]
    return [part for part in parts if part is not None]


def _value(data: bytes, start: int, end: int) -> Slot | NonScalarPlace | None:
    tag = value = exact = None
    plugin, kind = b"", ""
    for number, wire, at, stop in fields(data, start, end):
        if number == 1 and wire == _BYTES:
            tag = slice(at, stop)
        elif number == 2 and wire == _FIXED32:
            value = (slice(at, stop), "<f4")
        elif number == EXACT_FIELD and wire == _FIXED64:
            exact = slice(at, stop)
        elif number == 8 and wire == _BYTES:
            value, kind = _tensor(data, at, stop), "tensor"
        elif number in _FIELD_KINDS and wire == _BYTES:
            kind = _FIELD_KINDS[number]
        elif number == 9 and wire == _BYTES:
            plugin = plugin_data(data, at, stop)[0]
    if tag is None:
        return None
    if value is not None and plugin in (b"", b"scalars"):
        return Slot(tag, *value) if exact is None else Slot(tag, exact, "<f8", value[0])
    if plugin or kind == "tensor":
        kind = _PLUGIN_KINDS.get(plugin, plugin.decode("utf-8", "replace"))
    return NonScalarPlace(tag, kind, slice(start, end)) if kind else None


def plugin_data(data: bytes, start: int, end: int) -> tuple[bytes, bytes]:
    """Read a value's metadata: the name of its plugin, and the plugin's own message."""
    name = content = b""
    for number, wire, at, stop in fields(data, start, end):
        if number == 1 and wire == _BYTES:
            for inner, inner_wire, first, last in fields(data, at, stop):
                if inner == 1 and inner_wire == _BYTES:
                    name = data[first:last]
                elif inner == 2 and inner_wire == _BYTES:
                    content = data[first:last]
    return name, content


def _tensor(data: bytes, start: int, end: int) -> tuple[Span, str] | None:
    """Return where the only number of a tensor stands; None where there are more, or none."""
    kind = 0
    stored: tuple[int, int, Span] | None = None
    for number, wire, at, stop in fields(data, start, end):
        if number == _TENSOR_DTYPE and wire == 0:
            kind = varint(data, slice(at, stop))
        elif number == _TENSOR_SHAPE and _elements(data, at, stop) != 1:
            return None
        elif number == _TENSOR_CONTENT or number in _TENSOR_VALUES:
            stored = (number, wire, slice(at, stop))
    return _stored_number(kind, stored) if stored else None


def _elements(data: bytes, start: int, end: int) -> int:
    count = 1
    for number, wire, at, stop in fields(data, start, end):
        if number == 2 and wire == _BYTES:
            sizes = [varint(data, slice(a, b)) for n, _, a, b in fields(data, at, stop) if n == 1]
            count *= sizes[0] if sizes else 0
    return count


def _stored_number(kind: int, stored: tuple[int, int, Span]) -> tuple[Span, str] | None:
    number, _, where = stored
    form = _TENSOR_TYPES.get(kind) if number == _TENSOR_CONTENT else _TENSOR_VALUES[number]
    size = where.stop - where.start
    if form is None or (form != VARINT and size != int(form[2:])):
        return None
    return where, form
