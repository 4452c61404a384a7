"""Releases of frameworks. Tables and layouts write them as `pytorch-2.4`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from packaging.version import InvalidVersion, Version


@lru_cache(maxsize=1024)
def release(text: str | None) -> Version | None:
    """Return a version that can be compared; None if *text* is no version."""
    try:
        return Version(text or "")
    except InvalidVersion:
        return None


def releases(texts: Iterable[str], framework: str | None) -> tuple[str, ...]:
    """Return the release numbers of one framework.

    For `pytorch`, `pytorch-2.4` and `mxnet-1.9` give `("2.4",)`.
    """
    pairs = (text.rpartition("-") for text in texts)
    return tuple(number for name, _, number in pairs if name == framework)


def is_of(number: str, prefix: str | None) -> bool:
    """Return whether a version belongs to a release: 2.4.1 to 2.4, every version to None."""
    first, second = release(number), release(prefix)
    if first is None or second is None:
        return prefix is None
    return first.release[: len(second.release)] == second.release


def older(text: str | None, least: str | None) -> bool:
    """Return whether a version is older than *least*; False if either is not known."""
    first, second = release(text), release(least)
    return first is not None and second is not None and first < second
