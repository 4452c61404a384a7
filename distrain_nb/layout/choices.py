"""The choices in a field of a layout, given the rest of it, for a form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.layout.catalog.active import current
from distrain_nb.layout.catalog.index import takers
from distrain_nb.layout.machine_words import machine_words
from distrain_nb.layout.options import LAUNCHERS
from distrain_nb.layout.place import PLACES, place_of
from distrain_nb.layout.pool import Role
from distrain_nb.layout.preference import machine_rank

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.offers import Offers
    from distrain_nb.layout.pool import Pool

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
