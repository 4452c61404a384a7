"""How names and objects were when the world was asked, until someone looks which have changed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.observed.frames import is_of_threads, thread_number
from distrain_nb.observed.objects import held, may_change, may_have_taken, reachable, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from distrain_nb.observed.sites import Site


class _Before(NamedTuple):
    """How names and objects were when the world was asked from some places.

    Objects are held weakly where they can be, so that what a cell deletes is gone.
    """

    sites: list[Site]
    names: dict[str, tuple[int, type]] | None  # None: others bind some meanwhile
    states: list[tuple[Callable[[], object], object]]
    stores: set[str]  # the attributes that the code sets, perhaps to what they were before
    thread: int = 0  # that asks, beside the main one


class Unsettled:
    """What may have changed in a notebook since it was asked."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self._before: list[_Before] = []

    def __bool__(self) -> bool:
        return bool(self._before)

    def keep(
        self,
        sites: list[Site],
        values: Iterable[object],
        stores: set[str] | None = None,
        *,
        with_names: bool = False,
    ) -> None:
        """Keep how values are, and what names stand for if code of a cell runs that `stores`
        something."""
        things = {id(thing): thing for thing in reachable(values)}.values()
        states = [(held(thing), state_of(thing)) for thing in things if may_change(thing)]
        names = {n: (id(v), type(v)) for n, v in [*self.namespace.items()]}
        bound = names if with_names and stores is not None else None
        self._before.append(_Before(sites, bound, states, stores or set(), thread_number()))

    def settle(self) -> None:
        """Note at the places that asked which objects have changed since."""
        waiting, self._before = self._before, []
        going_on = sys._current_frames() if any(before.thread for before in waiting) else ()
        for before in waiting:
            things = [(thing(), state) for thing, state in before.states]
            changed = {
                id(thing)
                for thing, state in things
                if thing is not None
                and (state_of(thing) != state or may_have_taken(thing, before.stores))
            }
            names = {
                name
                for name, value in [*self.namespace.items()]
                if id(value) in changed
                or (before.names is not None and before.names.get(name) != (id(value), type(value)))
                or f"global {name}" in before.stores
                or (before.thread and is_of_threads(value))
            }
            for site in before.sites:
                site.filled |= names
            if before.thread in going_on:  # which may fill more, beside what others bind
                self._before.append(before._replace(names=None))
