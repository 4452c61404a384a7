"""The choices in a field of a layout, given the rest of it, for a form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.layout.catalog.active import current, short_name
from distrain_nb.layout.catalog.index import counts, limit, takers, topologies
from distrain_nb.layout.machine_words import machine_words
from distrain_nb.layout.options import LAUNCHERS
from distrain_nb.layout.place import PLACES, place_of
from distrain_nb.layout.pool import Role
from distrain_nb.layout.preference import accelerator_rank, machine_rank
from distrain_nb.layout.resolved import resolve
from distrain_nb.layout.rules.machines import CLOUDS, machines_of
from distrain_nb.layout.rules.regions import common_regions, regions_known, wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.pool import Pool

_SINGLE, _POD = 8, 32


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
    if field:
        pool_choices = _POOL.get(field)
        pool = getattr(layout, name)
        offered = pool_choices(layout, pool) if pool_choices and pool else ()
    else:
        offered = _WHOLE[name](layout) if name in _WHOLE else ()
    return tuple(sorted(offered, key=lambda choice: not choice.fits))


def with_own_accelerators(layout: Layout, role: Role) -> Layout:
    """Return the layout whose pool of a role, where it names no accelerator, names the GPUs that
    its machine comes with and that a request has to name."""
    pool = layout.pool(role)
    row = current().machines.get(pool.machine or "") if pool and layout.on == "vertex" else None
    if pool is None or row is None or pool.accelerator or pool.accelerator_count:
        return layout
    builtin = current().accelerators.get(row.builtin_accelerator)
    if builtin is None or builtin.kind != "gpu":
        return layout
    changes = {
        "accelerator": builtin.accelerator,
        "accelerator_count": row.builtin_accelerator_count,
    }
    return layout.edited({f"{role.value}.{field}": value for field, value in changes.items()})


def _machines(layout: Layout, pool: Pool) -> Iterator[Choice]:
    catalog = current()
    counts_of = takers(catalog, layout.on).get(pool.accelerator or "") if _google(layout) else None
    offered = machines_of(catalog, layout.on) if layout.on in CLOUDS else ()
    for name in sorted(offered, key=lambda name: machine_rank(catalog, name)):
        fits = counts_of is None or pool.accelerator_count in counts_of.get(name, ())
        words = machine_words(catalog, layout.on, name)
        yield Choice(name, f"{name} · {words.shown}", fits, words.has, words.takes)


def _accelerators(layout: Layout, pool: Pool) -> Iterator[Choice]:
    if not _google(layout):
        return
    fitting = _takes(layout, pool.machine)
    yield Choice(None, "none", not _required(pool.machine))
    for name in sorted({*takers(current(), layout.on), *fitting}, key=accelerator_rank):
        row = current().accelerators.get(name)
        size = f" · {row.memory_gb:g} GB" if row and row.memory_gb else ""
        yield Choice(name, f"{short_name(name)}{size}", name in fitting)


def _counts(layout: Layout, pool: Pool) -> Iterator[Choice]:
    for count in _takes(layout, pool.machine).get(pool.accelerator or "", ()):
        yield Choice(count, str(count))


def _takes(layout: Layout, machine: str | None) -> Mapping[str, tuple[int, ...]]:
    if layout.on == "vertex" and machine == "cloud-tpu":
        return {"TPU_V2": (_SINGLE, _POD, 2 * _POD), "TPU_V3": (_SINGLE, _POD, 2 * _POD)}
    return counts(current(), layout.on).get(machine or "", {}) if _google(layout) else {}


def _required(machine: str | None) -> bool:
    row = current().machines.get(machine or "")
    return row is not None and row.accelerator_required


def _topologies(layout: Layout, pool: Pool) -> Iterator[Choice]:
    rows = topologies(current()).get(pool.machine or "", ()) if layout.on == "vertex" else ()
    for row in rows:
        yield Choice(row.topology, f"{row.topology} · {row.chips} chips, {row.scope}")


def _disks(layout: Layout, _: Pool) -> Iterator[Choice]:
    if _google(layout):
        yield Choice(None, "default")
        for name in limit(current(), layout.on, "boot_disk_types"):
            yield Choice(name, name)


def _regions(layout: Layout) -> Iterator[Choice]:
    if not _google(layout):
        return
    wants = wanted(resolve(layout))
    fitting = common_regions(current(), layout.on, wants)
    for name in regions_known(current(), layout.on):
        yield Choice(name, name, not wants or name in fitting)


def _frameworks(layout: Layout) -> Iterator[Choice]:
    if layout.on == "sagemaker":
        names: Iterable[str] = reversed(limit(current(), "sagemaker", "framework_versions"))
    else:
        rows = current().containers.values() if _google(layout) else ()
        names = (
            f"{row.framework}-{row.framework_version}" for row in rows if row.framework_version
        )
    for name in dict.fromkeys(names):
        yield Choice(name, name)


def _images(layout: Layout) -> Iterator[Choice]:
    if layout.on == "vertex":
        for row in current().containers.values():
            if row.framework_version:
                label = f"{row.framework} {row.framework_version}, Python {row.python_version}, "
                fits = layout.framework in (None, f"{row.framework}-{row.framework_version}")
                yield Choice(row.image_uri, label + row.accelerator.replace(";", " or "), fits)


def _strategies(layout: Layout) -> Iterator[Choice]:
    names = {
        "vertex": limit(current(), "vertex", "scheduling_strategies"),
        "sagemaker": ("STANDARD", "SPOT"),
    }
    for name in names.get(layout.on, ()):
        yield Choice(name, name)


def _tiers(layout: Layout) -> Iterator[Choice]:
    if layout.on == "ai-platform":
        for row in current().legacy_machines.values():
            if row.kind == "scale_tier":
                yield Choice(row.name, f"{row.name} · {row.note}" if row.note else row.name)


def _distributions(layout: Layout) -> Iterator[Choice]:
    if layout.on == "sagemaker":
        for row in current().distributions.values():
            if not row.launcher:
                fits = layout.framework_name in (None, *row.frameworks)
                yield Choice(row.distribution, row.distribution, fits)


def _google(layout: Layout) -> bool:
    return layout.on in ("vertex", "ai-platform")


_POOL: dict[str, Callable[[Layout, Pool], Iterable[Choice]]] = {
    "machine": _machines,
    "accelerator": _accelerators,
    "accelerator_count": _counts,
    "topology": _topologies,
    "disk_type": _disks,
}

_WHOLE: dict[str, Callable[[Layout], Iterable[Choice]]] = {
    "on": lambda _: [Choice(name, name) for name in PLACES],
    "region": _regions,
    "framework": _frameworks,
    "image": _images,
    "launcher": lambda _: [Choice(name, name) for name in LAUNCHERS],
    "scheduling": _strategies,
    "distribution": _distributions,
    "tier": _tiers,
}
