"""The places where jobs run, as layouts know them: what each reads, offers, writes and reads back.

A place of this package declares itself by an entry point of the group `distrain_nb.layouts`, which
is loaded when a layout is for it; a backend of another package by `declare`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb import installed
from distrain_nb.errors import DistrainError
from distrain_nb.layout.pool import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from distrain_nb.errors import OptionError
    from distrain_nb.layout.formats.form import Export, ReadForm
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.offers import Offers

GROUP = "distrain_nb.layouts"
# Those whose machines the fact tables know, and this machine, in the order of lists.
PLACES = ("local", "vertex", "sagemaker", "ai-platform")


# The fields of those that start runs again.
RETRIES = ("retries", "retry_on")


@dataclass(frozen=True)
class Successor:
    """The place that takes the layouts of one that has ended.

    `layout` moves a layout there; `error` says why a job can't run, with what to write instead.
    """

    name: str
    layout: Callable[[Layout], Layout]
    error: Callable[[Layout], OptionError]


@dataclass(frozen=True)
class Place:
    """A place where jobs run, as layouts know it.

    `roles` are the pools that its jobs may have, in the order of their positions; `fields` are the
    other fields of a layout that it reads, and `pool_fields` those of a pool besides `replicas`.
    `implies_primary` says that a job whose layout names no primary pool has a primary replica, and
    `tunes` that a service there suggests the trials of studies and runs them. `offers` is what fact
    tables know of its machines, None without tables; `exports` are the forms that its layouts are
    written in, and `readers` those that they are read from. A place that has ended has a
    `successor`.
    """

    name: str
    title: str
    roles: tuple[Role, ...]
    fields: frozenset[str]
    pool_fields: frozenset[str] = frozenset()
    implies_primary: bool = False
    tunes: bool = False
    offers: Offers | None = None
    exports: tuple[Export, ...] = ()
    readers: tuple[ReadForm, ...] = ()
    successor: Successor | None = None

    def reads(self, path: str) -> bool:
        """Return whether jobs there depend on a field, such as `region` or `workers.machine`."""
        name, _, field = path.partition(".")
        if field:
            return field == "replicas" or field in self.pool_fields
        return name == "on" or name in self.roles or name in self.fields


_PLACES: dict[str, Place] = {}


def described(
    name: str,
    title: str,
    reads: Iterable[str],
    *,
    implies_primary: bool = False,
    tunes: bool = False,
    exports: tuple[Export, ...] = (),
    readers: tuple[ReadForm, ...] = (),
) -> Place:
    """Return a place by the paths of the fields that it reads, as `Place.reads` takes them."""
    paths = [path.partition(".") for path in reads]
    roles = tuple(role for role in Role if role in {name for name, _, _ in paths})
    pool_fields = frozenset(field for _, _, field in paths if field)
    fields = frozenset(name for name, _, field in paths if not field) - set(Role)
    return Place(
        name,
        title,
        roles,
        fields,
        pool_fields,
        implies_primary,
        tunes,
        exports=exports,
        readers=readers,
    )


def declare(place: Place) -> None:
    """Make the place of another package's backend known. Those of this package stay as they are."""
    if place.name not in installed.own(GROUP):
        _PLACES[place.name] = place


def places() -> Mapping[str, Place]:
    """Get all places that are known, by name: those of this package, then those of loaded
    backends."""
    names = dict.fromkeys((*PLACES, *installed.own(GROUP)))
    own = {name: place for name in names if (place := place_of(name))}
    return {**own, **_PLACES}


def place_of(name: str) -> Place | None:
    """Look a place up by its name; None where no backend that is loaded has declared it.

    Raises DistrainError where the package's metadata lacks one of its own places, as that of an
    older installation does: without its rules every layout would fit.
    """
    if name not in _PLACES:
        point = installed.own(GROUP).get(name)
        if point is not None:
            _PLACES[name] = point.load()
        elif name in PLACES:
            raise DistrainError(
                f"distrain-nb is not installed as it stands here: its metadata lacks the place "
                f"{name}. Install it again with pip."
            )
    return _PLACES.get(name)


def moved(layout: Layout) -> Layout:
    """Return a layout for the place that succeeds its own, if that one has ended."""
    place = place_of(layout.on)
    return place.successor.layout(layout) if place and place.successor else layout
