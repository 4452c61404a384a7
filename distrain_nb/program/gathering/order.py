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

    `before` must hold. `sometime` (what the bodies of functions read) holds too, except within a
    group of functions that call each other.
    """
    known = set(keys)
    every = {k: [d for d in (*before.get(k, ()), *sometime.get(k, ())) if d in known] for k in keys}
    groups = _groups(keys, every)
    home = {k: number for number, group in enumerate(groups) for k in group}
    rank = {k: position for position, k in enumerate(keys)}
    outer = {n: {home[d] for k in group for d in every[k]} - {n} for n, group in enumerate(groups)}
    sorted_groups = _by_rank(outer, [min(rank[k] for k in group) for group in groups])
    result = []
    for number in sorted_groups:
        group = sorted(groups[number], key=rank.__getitem__)
        inner = {
            n: {group.index(d) for d in before.get(k, ()) if d in group and d != k}
            for n, k in enumerate(group)
        }
        result += [group[n] for n in _by_rank(inner, list(range(len(group))))]
    return result


def _by_rank(needs: Mapping[int, set[int]], rank: Sequence[int]) -> list[int]:
    """Topological order, lowest rank first; a cycle is left in the order of ranks."""
    waiting = {n: set(d) for n, d in needs.items()}
    users: dict[int, list[int]] = {}
    for n, dependencies in needs.items():
        for d in dependencies:
            users.setdefault(d, []).append(n)
    ready = [(rank[n], n) for n, d in waiting.items() if not d]
    heapq.heapify(ready)
    result = []
    while waiting:
        _, n = heapq.heappop(ready) if ready else min((rank[n], n) for n in waiting)
        if waiting.pop(n, None) is None:
            continue
        result.append(n)
        for user in users.get(n, ()):
            if user in waiting:
                waiting[user].discard(n)
                if not waiting[user]:
                    heapq.heappush(ready, (rank[user], user))
    return result


def _groups(keys: Sequence[Key], edges: Mapping[Key, Sequence[Key]]) -> list[list[Key]]:
    """Strongly connected components (Tarjan), without recursion."""
    index: dict[Key, int] = {}
    low: dict[Key, int] = {}
    stack: list[Key] = []
    on_stack: set[Key] = set()
    groups = []
    for root in keys:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        while work:
            key, rest = work[-1]
            if key not in index:
                index[key] = low[key] = len(index)
                stack.append(key)
                on_stack.add(key)
            for following in rest:
                if following not in index:
                    work.append((following, iter(edges[following])))
                    break
                if following in on_stack:
                    low[key] = min(low[key], index[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[key])
                if low[key] == index[key]:
                    cut = stack.index(key)
                    groups.append(stack[cut:])
                    on_stack.difference_update(stack[cut:])
                    del stack[cut:]
    return groups
