"""Reads the messages of histograms, images, texts and hyperparameters, from any writer.

The messages are those of TensorBoard's `summary.proto` and `tensor.proto`, and of its HParams
plugin's `plugin_data.proto`. Each function takes a Summary.Value, and raises Malformed where that
is nothing of the kind.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.metrics.finite import in_words
from distrain_nb.run.metrics.protobuf import Malformed, fields, plugin_data, varint
from distrain_nb.types import Json

if TYPE_CHECKING:
    from numpy.typing import NDArray


_IMAGE, _HISTOGRAM, _TENSOR, _METADATA = 4, 5, 8, 9
_CONTENT, _FLOATS, _DOUBLES, _STRINGS = 4, 5, 6, 8
_FLOAT32, _FLOAT64 = 1, 2
_SESSION_START = 3
_LARGEST = 1e300  # differences and sums of larger ones are no numbers any more
FORMATS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


@dataclass(frozen=True)
class Histogram:
    """Counts between edges: `lower`, `upper` and `counts` are float64 of one length, and finite.

    `lost` are the buckets of which that isn't so.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    counts: NDArray[np.float64]
    lost: int = 0


@dataclass(frozen=True)
class Picture:
    """A picture as it was encoded, `data` in base 64 and `form` its media type."""

    form: str
    data: str


def histogram(value: bytes) -> Histogram:
    """Read a histogram of either form: buckets by their upper limits, or a tensor of [left, right,
    count]."""
    parts = _parts(value)
    if _HISTOGRAM in parts:
        return _buckets(parts[_HISTOGRAM])
    rows = _numbers(parts.get(_TENSOR, b""))
    if len(rows) % 3:
        raise Malformed(f"a histogram of {len(rows)} numbers, which are not triples")
    return _of_numbers(rows.reshape(-1, 3))


def image(value: bytes) -> Picture:
    """Return the first picture, where there are several."""
    parts = _parts(value)
    if _IMAGE in parts:
        encoded = _parts(parts[_IMAGE]).get(4, b"")
    else:  # width, height, then the pictures
        encoded = next(iter(_strings(parts.get(_TENSOR, b""))[2:]), b"")
    form = next((form for start, form in FORMATS.items() if encoded.startswith(start)), None)
    if form is None:
        raise Malformed("an image that is neither PNG, JPEG nor GIF")
    return Picture(form, base64.b64encode(encoded).decode())


def text(value: bytes) -> str:
    """Return all strings of the tensor, one below the other."""
    return "\n".join(
        part.decode("utf-8", "replace") for part in _strings(_parts(value).get(_TENSOR, b""))
    )


def hyperparameters(value: bytes) -> dict[str, Json]:
    """Return the hyperparameters of a session, sorted by name: numbers, strings and booleans."""
    metadata = _parts(value).get(_METADATA, b"")
    started = _parts(plugin_data(metadata, 0, len(metadata))[1]).get(_SESSION_START, b"")
    values = {}
    for number, _, at, stop in fields(started, 0, len(started)):
        if number == 1:
            entry = _parts(started[at:stop])
            values[entry.get(1, b"").decode("utf-8", "replace")] = _plain(entry.get(2, b""))
    return dict(sorted(values.items()))


def _parts(message: bytes) -> dict[int, bytes]:
    """Return the fields with bytes in them; of several of one number the last."""
    return {
        number: message[at:stop]
        for number, wire, at, stop in fields(message, 0, len(message))
        if wire == 2
    }


def _plain(value: bytes) -> Json:
    """Return a google.protobuf.Value that is no list and no structure."""
    for number, _, at, stop in fields(value, 0, len(value)):
        if number == 2:
            (double,) = struct.unpack("<d", value[at:stop])
            return int(double) if double.is_integer() else in_words(double)
        if number == 3:
            return value[at:stop].decode("utf-8", "replace")
        if number == 4:
            return bool(varint(value, slice(at, stop)))
    return None


def _buckets(message: bytes) -> Histogram:
    low, high = _double(message, 1), _double(message, 2)
    right = np.array(list(_doubles(message, 6)))
    counts = np.array(list(_doubles(message, 7)))
    if len(right) != len(counts):
        raise Malformed(f"a histogram of {len(right)} limits and {len(counts)} counts")
    # The first and the last bucket reach as far as numbers go: as far as the values are meant.
    right = np.clip(right, low, high)
    lower = np.concatenate([[low], right[:-1]])
    return _of_numbers(np.stack([lower, right, counts], axis=1))


def _of_numbers(rows: NDArray[np.float64]) -> Histogram:
    """Make a histogram of rows of left, right and count, without those that can't be drawn."""
    drawn = (np.abs(rows) <= _LARGEST).all(axis=1)
    lower, right, counts = rows[drawn].T
    return Histogram(lower, right, counts, int((~drawn).sum()))


def _double(message: bytes, field_number: int) -> float:
    return next(_doubles(message, field_number), 0.0)


def _doubles(message: bytes, field_number: int) -> Iterator[float]:
    """Yield the numbers of a field, packed or not."""
    for number, wire, at, stop in fields(message, 0, len(message)):
        if number == field_number and wire in (1, 2):
            if (stop - at) % 8:
                raise Malformed("numbers that are not whole")
            yield from np.frombuffer(message[at:stop], "<f8").tolist()


def _numbers(tensor: bytes) -> NDArray[np.float64]:
    kind = next(
        (varint(tensor, slice(a, b)) for n, _, a, b in fields(tensor, 0, len(tensor)) if n == 1), 0
    )
    form = {_FLOAT32: "<f4", _FLOAT64: "<f8"}.get(kind)
    parts = _parts(tensor)
    raw = parts.get(_CONTENT) or parts.get(_DOUBLES) or parts.get(_FLOATS) or b""
    if form is None or len(raw) % int(form[2:]):
        raise Malformed(f"a histogram of type {kind}")
    return np.frombuffer(raw, form).astype(np.float64)


def _strings(tensor: bytes) -> list[bytes]:
    return [
        tensor[at:stop]
        for number, wire, at, stop in fields(tensor, 0, len(tensor))
        if number == _STRINGS and wire == 2
    ]
