"""The observer of a notebook: one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.observed.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Observer", "observe", "observer_of", "stop"]

_current: list[Observer] = []


def observe(observer: Observer) -> None:
    """Have an observer note what is asked from now on, in place of the one that did."""
    stop()
    _current.append(observer)
    observer.start()


def stop() -> None:
    """Note nothing more."""
    while _current:
        _current.pop().stop()


def observer_of(namespace: Mapping[str, Any]) -> Observer | None:
    """Return the one that watches what these names' notebook asks."""
    return next((item for item in _current if item.namespace is namespace), None)
