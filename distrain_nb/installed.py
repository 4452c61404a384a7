"""Entry points by which packages bring their parts; those of this package come first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any


def entry(group: str, name: str) -> EntryPoint | None:
    """Return the entry point of a group by its name; None if no installed package has it."""
    ours = points_of(group).get(name)
    if ours is None and name not in _others(group):
        _others.cache_clear()  # it may have been installed since
    return ours or _others(group).get(name)


def names(group: str) -> list[str]:
    """Return the names of a group's entry points: this package's own, then all others, sorted."""
    ours = sorted(points_of(group))
    return [*ours, *sorted(_others(group).keys() - set(ours))]


def points_of(group: str) -> Mapping[str, EntryPoint]:
    """Return this package's own entry points of a group by name.

    They are looked for first: to look through all installed packages takes longer than a warm start
    of a run.
    """
    return _points().get(group, {})


def loaded(group: str) -> Iterator[Any]:
    """Yield what this package's own entry points of a group stand for, in the order of names."""
    for name in sorted(points_of(group)):
        yield _load(points_of(group)[name])


@cache
def _load(point: EntryPoint) -> Any:
    return point.load()


@cache
def _points() -> Mapping[str, Mapping[str, EntryPoint]]:
    groups: dict[str, dict[str, EntryPoint]] = {}
    try:
        points = distribution("distrain-nb").entry_points
    except PackageNotFoundError:
        return {}
    for point in points:
        groups.setdefault(point.group, {})[point.name] = point
    return groups


@cache
def _others(group: str) -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}
