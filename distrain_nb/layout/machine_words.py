"""The words that lists show of machines, and by which a search finds them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from distrain_nb.layout.catalog.index import bandwidth, counts, short_name
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.machine_order import accelerator_rank, is_cheap, machine_rank

_COUNT = re.compile(r"\b(\d+)\s*[x×*]\s*")


class MachineWords(NamedTuple):
    """A machine in a list: the text that is shown, and words for what it has and what it takes."""

    shown: str
    has: str
    takes: str


class Accelerators(NamedTuple):
    """The accelerators of a machine.

    `name` is the API's name if there is one; memory is of each.
    """

    number: int
    name: str
    memory_gb: float | None = None
    kind: str = "gpu"


@lru_cache(maxsize=1024)
def machine_words(catalog: Catalog, place: str, machine: str) -> MachineWords:
    """Describe a machine type at a place: its size, its accelerators, and those that it takes."""
    had = accelerators_of(catalog, machine)
    added = {} if had else counts(catalog, place).get(machine, {})
    names = sorted(added, key=accelerator_rank)
    shown = [*_shown(had), *_size(catalog, machine, had)]
    if names:
        shown.append(f"takes {', '.join(map(short_name, names))}")
    has = [f"{had.number}{had.kind}", *_memory(had.memory_gb)] if had else []
    takes = [f"{count}gpu" for name in names for count in added[name]]
    for name in names:
        takes += [short_name(name).lower(), *_memory(catalog.accelerators[name].memory_gb)]
    return MachineWords(
        ", ".join(shown) or "size not published",
        " ".join([*has, *(["cheap"] if is_cheap(catalog, machine) else [])]),
        " ".join(dict.fromkeys(takes)),
    )


def machines_with(catalog: Catalog, place: str, machines: Iterable[str], text: str) -> list[str]:
    """Return the machines that have what a text names, such as `h100` or `8xA100`.

    If none has it, return those that take it. They are in the order of lists.
    """
    words = set(_COUNT.sub(r"\1gpu ", text.lower()).split())
    lists = {name: machine_words(catalog, place, name) for name in machines} if words else {}
    for texts in (
        {name: f"{row.shown} {row.has}".partition("takes ")[0] for name, row in lists.items()},
        {name: row.takes for name, row in lists.items()},
    ):
        matching = [name for name, row in texts.items() if words <= _terms(row)]
        if matching:
            return sorted(matching, key=lambda name: machine_rank(catalog, name))
    return []


def accelerators_of(catalog: Catalog, machine: str) -> Accelerators | None:
    """Return the accelerators that come with a machine of any place; None if there are none."""
    row, instance = catalog.machines.get(machine), catalog.instances.get(machine)
    legacy = catalog.legacy_machines.get(machine)
    if row and row.builtin_accelerator:
        accelerator = catalog.accelerators[row.builtin_accelerator]
        count = row.builtin_accelerator_count or 0
        return Accelerators(count, accelerator.accelerator, accelerator.memory_gb, accelerator.kind)
    if instance and instance.gpu_count:
        return Accelerators(instance.gpu_count, instance.gpu_name, instance.gpu_memory_gb)
    if instance and instance.neuron_count:
        memory = instance.neuron_memory_gb
        return Accelerators(instance.neuron_count, instance.neuron_name, memory, "neuron")
    if legacy and legacy.accelerator:
        return Accelerators(legacy.accelerator_count or 0, legacy.accelerator, None)
    return None


@lru_cache(maxsize=2048)
def _terms(text: str) -> frozenset[str]:
    return frozenset(re.split(r"[\s,()]+", text.lower()))


def _shown(had: Accelerators | None) -> Iterator[str]:
    if had:
        memory = f" ({had.memory_gb:.0f} GB)" if had.memory_gb else ""
        yield f"{had.number} × {short_name(had.name)}{memory}"


def _memory(memory_gb: float | None) -> list[str]:
    return [f"{memory_gb:.0f}gb"] if memory_gb else []


def _size(catalog: Catalog, machine: str, had: Accelerators | None) -> Iterator[str]:
    legacy = catalog.legacy_machines.get(machine)
    if legacy:
        if legacy.approx_machine_type:
            yield f"about {legacy.approx_machine_type}"
        return
    instance = catalog.instances.get(machine)
    row = instance or catalog.machines[machine]
    if row.vcpu:
        yield f"{row.vcpu} vCPU"
    if row.memory_gb:
        yield f"{row.memory_gb:,g} {'GiB' if instance else 'GB'}"
    gbps = bandwidth(catalog, machine, had.name if had else None, had.number if had else 0)
    if gbps:
        yield f"{gbps:,g} Gbit/s"
