"""The values that a field of a layout can take, beside its other fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.catalog.index import takers
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.machine_order import machine_rank
from distrain_nb.layout.machine_words import machine_words
from distrain_nb.layout.offers import Offers
from distrain_nb.layout.options import LAUNCHERS
from distrain_nb.layout.place import PLACES, place_of
from distrain_nb.layout.pool import Pool, Role

_EVERYWHERE = {"on": PLACES, "launcher": LAUNCHERS}


@dataclass(frozen=True)
class Choice:
    """A value that a field can take: how a list shows it, and whether it fits the other fields.

    A search finds it by its label, and by the words of `has` and `takes`. `has` are parts of a
    machine, such as `8gpu`, `80gb` of each GPU, or `cheap`. `takes` are parts that can be added.
    """

    value: str | int | None
    label: str
    fits: bool = True
    has: str = ""
    takes: str = ""


def roles(name: str) -> tuple[Role, ...]:
    """Return the roles of a place's pools, in order; all roles if nobody has declared the place."""
    place = place_of(name)
    return place.roles if place else tuple(Role)


def choices(layout: Layout, path: str) -> tuple[Choice, ...]:
    """Return the values of a field, such as `region` or `workers.accelerator_count`.

    Values that fit the other fields come first. There are none for fields that take any text or
    number.
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
    """Return the layout with the GPUs that come with a machine named in its pool.

    They are added if the pool names no accelerator and a request has to name one.
    """
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
