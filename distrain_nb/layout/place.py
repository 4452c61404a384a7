"""Places where jobs run, as layouts know them: the fields, machines and forms of each.

A place of this package declares itself by an entry point of the group `distrain_nb.layouts`. It is
loaded when a layout needs it. A backend of another package calls `declare`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb import installed
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.layout.offers import Offers
from distrain_nb.layout.pool import Role

if TYPE_CHECKING:
    from distrain_nb.layout.formats.form import Export, ReadForm
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.pool import Pool

GROUP = "distrain_nb.layouts"
# Those whose machines the fact tables know, and this machine, in the order of lists.
PLACES = ("local", "vertex", "sagemaker", "ai-platform")
# The fields of those that start runs again.
RETRIES = ("retries", "retry_on")


class PoolGpus(NamedTuple):
    """How pools of a place without tables name their GPUs.

    `read` returns the GPUs of a replica. `give` returns the pool with another number of any GPUs.
    """

    read: Callable[[Pool], int]
    give: Callable[[Pool, int], Pool]


@dataclass(frozen=True)
class Successor:
    """The place that takes the layouts of a place that has ended.

    `layout` moves a layout there. `error` says why a job can't run, and what to write instead.
    """

    name: str
    layout: Callable[[Layout], Layout]
    error: Callable[[Layout], OptionError]


@dataclass(frozen=True)
class Place:
    """A place where jobs run, as layouts know it.

    `roles` are the pools that its jobs may have, in order. `fields` are the other fields of a
    layout that it reads. `pool_fields` are the fields of a pool that it reads, besides `replicas`.
    With `implies_primary`, a job has a primary replica even if its layout names none. With `tunes`,
    a service there suggests and runs the trials of studies. `offers` are its machines in the fact
    tables; None without tables. `exports` and `readers` are forms in which layouts are written and
    read. A place that has ended has a `successor`. `pool_gpus` reads GPUs in the place's own words,
    such as `gpu:8`.
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
    pool_gpus: PoolGpus | None = None

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
    pool_gpus: PoolGpus | None = None,
) -> Place:
    """Return a place that reads these paths of fields, as `Place.reads` takes them."""
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
        pool_gpus=pool_gpus,
    )


def declare(place: Place) -> None:
    """Make a place of another package known. It can't replace a place of this package."""
    if place.name not in installed.points_of(GROUP):
        _PLACES[place.name] = place


def places() -> Mapping[str, Place]:
    """Get all known places by name: those of this package, then those of loaded backends."""
    names = dict.fromkeys((*PLACES, *installed.points_of(GROUP)))
    loaded = {name: place for name in names if (place := place_of(name))}
    return {**loaded, **_PLACES}


def place_of(name: str) -> Place | None:
    """Look a place up by name; None if no loaded backend has declared it.

    Raises DistrainError if the installed metadata lacks a place of this package, as those of an
    older installation do. Without the rules of its place, every layout would fit.
    """
    if name not in _PLACES:
        point = installed.points_of(GROUP).get(name)
        if point is not None:
            _PLACES[name] = point.load()
        elif name in PLACES:
            raise DistrainError(
                f"distrain-nb is not installed as it stands here: its metadata lacks the place "
                f"{name}. Install it again with pip."
            )
    return _PLACES.get(name)


def moved(layout: Layout) -> Layout:
    """Return a layout moved to the successor of its place, if the place has ended."""
    place = place_of(layout.on)
    return place.successor.layout(layout) if place and place.successor else layout
