"""The ways to write an accelerator: its full name, its name in Compute Engine, its short end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from distrain_nb.layout.catalog.rows import Accelerator

    Row = TypeVar("Row", bound=NamedTuple)

    Overrides = Mapping[str, Iterable[Mapping[str, object]]]

_MAKER = re.compile(r"^NVIDIA_(TESLA_)?")
_MEMORY = re.compile(r"_\d+GB$")


def accelerator_names(accelerators: Iterable[Accelerator]) -> dict[str, str]:
    """Return every way to write each accelerator to its full name; what two could mean is left out.

    A form that keeps more of the name wins: `A100` is NVIDIA_TESLA_A100, though `A100` would also
    be left of NVIDIA_A100_80GB without its memory.
    """
    names: dict[str, str] = {}
    for forms in zip(*(_forms(row.accelerator) for row in accelerators), strict=True):
        fresh = [(form, full) for form, full in forms if form not in names]
        once = [form for form, _ in fresh]
        names.update((form, full) for form, full in fresh if once.count(form) == 1)
    return names


def normal(name: str) -> str:
    """Return the spelling that names are compared in."""
    return name.upper().replace("-", "_")


def _forms(full: str) -> Iterator[tuple[str, str]]:
    yield normal(full), full
    yield _MAKER.sub("TESLA_" if "TESLA" in full else "", full), full
    yield _MAKER.sub("", full), full
    yield _MEMORY.sub("", _MAKER.sub("", full)), full
