"""The order in which a program's parts must stand."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def ordered(
    keys: Sequence[Key],
    before: Mapping[Key, Iterable[Key]],
    sometime: Mapping[Key, Iterable[Key]],
) -> list[Key]:
    """Sort keys so that each stands behind what it needs; among equals their order stays.

    `before` must hold, with all that this needs in turn. `sometime` (what the bodies of functions
    read) holds too, except among functions that call each other.
    """
    rank = {key: position for position, key in enumerate(keys)}
    at_once = {k: {d for d in before.get(k, ()) if d in rank and d != k} for k in keys}
    later = {k: {d for d in sometime.get(k, ()) if d in rank and d != k} for k in keys}
    must = {k: _reached(at_once[k], at_once, later) - {k} for k in keys}
    waiting = {k: must[k] | later[k] for k in keys}
    users: dict[Key, list[Key]] = {}
    for key, needs in waiting.items():
        for need in needs:
            users.setdefault(need, []).append(key)
    ready = [(rank[k], k) for k, needs in waiting.items() if not needs]
    heapq.heapify(ready)
    result: list[Key] = []
    while waiting:
        key = heapq.heappop(ready)[1] if ready else _in_a_circle(waiting, must, at_once)
        del waiting[key]
        result.append(key)
        for user in users.get(key, ()):
            if user in waiting:
                waiting[user].discard(key)
                if not waiting[user]:
                    heapq.heappush(ready, (rank[user], user))
    return result


def _reached(start: Iterable[Key], *edges: Mapping[Key, set[Key]]) -> set[Key]:
    reached: set[Key] = set()
    todo = list(start)
    while todo:
        key = todo.pop()
        if key not in reached:
            reached.add(key)
            todo += [need for needs in edges for need in needs[key]]
    return reached


def _in_a_circle(
    waiting: Mapping[Key, set[Key]],
    must: Mapping[Key, set[Key]],
    at_once: Mapping[Key, set[Key]],
) -> Key:
    """Return the first key whose needs are there as far as it goes: where all wait for each
    other."""
    for needs in (must, at_once):
        for key in waiting:
            if needs[key].isdisjoint(waiting):
                return key
    return next(iter(waiting))
