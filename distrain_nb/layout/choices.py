"""The choices in a field of a layout, given the rest of it, for a form.

The order in which lists name machines and accelerators: by what people choose.

That is a judgement of this package's, not a fact of its tables. General purpose comes first, since
primaries, servers and first tries run on it, led by the series that a place takes by default. Then
GPUs, from the smaller and older to the larger and newer, which is also, roughly, how the price of
an hour rises; then what serves special purposes, and what is about to go. Prices themselves differ
by region and contract, and are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from distrain_nb.layout.catalog.index import bandwidth, counts, current, short_name, takers
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.options import LAUNCHERS
from distrain_nb.layout.place import PLACES, Offers, place_of
from distrain_nb.layout.pool import Pool, Role

_SERIES = (
    *("n1", "e2", "n2", "n4", "g2", "a2", "g4", "a3", "a4", "a4x", "c2", "m1"),
    *("ct5lp", "ct6e", "tpu7x", "cloud-tpu"),
    *("m5", "m7i", "m6i", "m8i", "m7i-flex", "m8i-flex", "t3"),
    *("c5", "c7i", "c6i", "c8i", "c7i-flex", "c8i-flex", "c5n"),
    *("g4dn", "g5", "g6", "g6e", "g7", "g7e", "p3", "p3dn", "p4d", "p4de", "p5", "p5en", "p5e"),
    *("p6-b200", "p6-b300", "p6e-gb200", "trn1", "trn1n", "trn2"),
    *("r5", "r7i", "r6i", "r8i", "r8i-flex", "r5d", "m4", "c4", "p2"),
)
_ACCELERATORS = (
    *("T4", "P4", "L4", "P100", "V100", "A100", "A100_80GB", "RTX_PRO_6000"),
    *("H100", "H100_MEGA", "H200", "B200", "GB200"),
)
_CHEAP_SERIES = ("n1", "e2", "g2", "m5", "t3", "g4dn")
_CHEAP_VCPU, _CHEAP_GPUS = 8, 1


def machine_rank(catalog: Catalog, name: str) -> tuple[int, int, int]:
    """Return a key that sorts machine types; equal ones stay in the order of their table."""
    row = catalog.machines.get(name)
    if row:
        return _place(_SERIES, row.series), accelerator_rank(row.builtin_accelerator), 0
    instance = catalog.instances.get(name)
    vcpu = (instance.vcpu if instance else None) or 0
    return _place(_SERIES, _series(name)), 0, vcpu


def accelerator_rank(name: str) -> int:
    """Return a key that sorts accelerators; no accelerator comes first."""
    return _place(_ACCELERATORS, short_name(name)) if name else -1


def is_cheap(catalog: Catalog, name: str) -> bool:
    """Return whether it is a small machine of a series that comes first of its kind."""
    row = catalog.machines.get(name)
    instance = catalog.instances.get(name)
    series = row.series if row else _series(name)
    vcpu = row.vcpu if row else instance.vcpu if instance else None
    gpus = row.builtin_accelerator_count if row else instance.gpu_count if instance else None
    small = (vcpu or _CHEAP_VCPU + 1) <= _CHEAP_VCPU and (gpus or 0) <= _CHEAP_GPUS
    return series in _CHEAP_SERIES and small


def _series(instance: str) -> str:
    """Return the series of a machine: `p4d` of `ml.p4d.24xlarge`."""
    return instance.removeprefix("ml.").partition(".")[0]


def _place(order: tuple[str, ...], name: str) -> int:
    return order.index(name) if name in order else len(order)


_COUNT = re.compile(r"\b(\d+)\s*[x×*]\s*")


class MachineWords(NamedTuple):
    """A machine in a list: what is shown of it, and words for what it has and what it takes."""

    shown: str
    has: str
    takes: str


class Accelerators(NamedTuple):
    """The accelerators of a machine; `name` is the API's where there is one, memory is that of
    each."""

    number: int
    name: str
    memory_gb: float | None = None
    kind: str = "gpu"


@lru_cache(maxsize=1024)
def machine_words(catalog: Catalog, place: str, machine: str) -> MachineWords:
    """Describe a machine type at a place: its size, its accelerators, and those it takes."""
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
    """Return the machines that come with what a text names, such as `h100` or `8xA100`, else those
    that can be given it; in the order in which lists name them."""
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


@lru_cache(maxsize=2048)
def _terms(text: str) -> frozenset[str]:
    return frozenset(re.split(r"[\s,()]+", text.lower()))


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


_EVERYWHERE = {"on": PLACES, "launcher": LAUNCHERS}


@dataclass(frozen=True)
class Choice:
    """A value that a field can take, how a list shows it, and whether the rest lets it fit.

    `has` and `takes` are words that a search finds it by, besides its label: what it comes with,
    such as `8gpu`, `80gb` for each of its GPUs and `cheap`, and what can be added to it.
    """

    value: str | int | None
    label: str
    fits: bool = True
    has: str = ""
    takes: str = ""


def roles(name: str) -> tuple[Role, ...]:
    """Return the roles that a place has pools for, in the order of their positions; all where
    nobody has declared the place."""
    place = place_of(name)
    return place.roles if place else tuple(Role)


def choices(layout: Layout, path: str) -> tuple[Choice, ...]:
    """Return the values that a field can take, such as `region` or `workers.accelerator_count`.

    What fits the rest of the layout comes first. Empty for fields that take any text or number.
    """
    name, _, field = path.partition(".")
    if path in _EVERYWHERE:
        return tuple(Choice(value, value) for value in _EVERYWHERE[path])
    offers = _offers(layout)
    if offers is None:
        return ()
    pool = getattr(layout, name) if field else None
    offered: Iterable[Choice] = ()
    if field == "machine" and pool:
        offered = _machines(layout, pool, offers)
    elif field:
        offered = offers.pool_choices(layout, pool, field) if pool else ()
    else:
        offered = offers.choices(layout, name)
    return tuple(sorted(offered, key=lambda choice: not choice.fits))


def with_own_accelerators(layout: Layout, role: Role) -> Layout:
    """Return the layout whose pool of a role, where it names no accelerator, names the GPUs that
    its machine comes with and that a request has to name."""
    offers = _offers(layout)
    return offers.with_own_accelerators(layout, role) if offers else layout


def _machines(layout: Layout, pool: Pool, offers: Offers) -> Iterator[Choice]:
    catalog = current()
    counts_of = takers(catalog, layout.on).get(pool.accelerator or "")
    asks = offers.names_accelerators and counts_of is not None
    names = sorted(offers.machines(catalog), key=lambda name: machine_rank(catalog, name))
    for name in names:
        fits = not asks or pool.accelerator_count in (counts_of or {}).get(name, ())
        words = machine_words(catalog, layout.on, name)
        yield Choice(name, f"{name} · {words.shown}", fits, words.has, words.takes)


def _offers(layout: Layout) -> Offers | None:
    place = place_of(layout.on)
    return place.offers if place else None
