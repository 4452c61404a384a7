"""Variants of a layout, one for each alternative machine: what is wrong with one of them, and its
repairs, in terms of the layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool

if TYPE_CHECKING:
    # A repair: its label, and the new values by their paths.
    Labelled: TypeAlias = "tuple[str, Mapping[str, Any]]"

_VARY = ("machine", "replicas", "accelerator", "accelerator_count")


def place_in(layout: Layout, number: int, where: str) -> str:
    """Return the place in a layout of what is at `where` in its variant of that number."""
    name, _, field = where.partition(".")
    return (
        f"{name}.alternatives"
        if number and field in _VARY and name in pools_with_alternatives(layout)
        else where
    )


def with_machine_name(layout: Layout, number: int, message: str) -> str:
    """Return a message about a variant with the name of its machine."""
    machine = _machine(layout, number)
    return message if number == 0 or machine in message else f"{machine}: {message}"


def combined_repairs(
    layout: Layout, repairs: Mapping[int, Sequence[Labelled]]
) -> Iterator[Labelled]:
    """Yield repairs of a layout from those of its variants, by number: each of them, those of all
    variants together, and the layout without these alternatives."""
    for number, offered in repairs.items():
        for label, changes in offered:
            yield label, _restored(layout, [(number, changes)])
    if len(repairs) > 1:
        for together in zip(*repairs.values(), strict=False):
            labels = dict.fromkeys(label for label, _ in together)
            steps = zip(repairs, (changes for _, changes in together), strict=True)
            yield " and ".join(labels), _restored(layout, steps)
    numbers = [number for number in repairs if number]
    label = f"Leave {' and '.join(_machine(layout, number) for number in numbers)} out"
    yield (
        label,
        {
            f"{n}.alternatives": _without(p, numbers)
            for n, p in pools_with_alternatives(layout).items()
        },
    )


def pools_with_alternatives(layout: Layout) -> dict[str, Pool]:
    """Return the pools that name alternatives to their machine, by role."""
    return {role.value: pool for role, pool in layout.pools() if pool.alternatives}


def _machine(layout: Layout, number: int) -> str:
    return next(
        (pool.taking(number).machine or "" for pool in pools_with_alternatives(layout).values()), ""
    )


def _without(pool: Pool, numbers: Sequence[int]) -> tuple[object, ...]:
    return tuple(it for n, it in enumerate(pool.alternatives, 1) if n not in numbers)


def _restored(layout: Layout, steps: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return changes of variants as changes of the layout: those of machines are changes of its
    alternatives."""
    pools, changes = pools_with_alternatives(layout), dict[str, Any]()
    for number, of_variant in steps:
        for path, value in of_variant.items():
            name, _, field = path.partition(".")
            if number and name in pools and field in ("machine", "replicas"):
                changed = list(changes.get(f"{name}.alternatives", pools[name].alternatives))
                place = min(number, len(changed)) - 1
                changed[place] = replace(changed[place], **{field: value})
                changes[f"{name}.alternatives"] = tuple(changed)
            else:
                changes[path] = value
    return changes
