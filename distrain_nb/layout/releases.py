"""Releases of frameworks, which the tables and layouts write as `pytorch-2.4`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from collections.abc import Iterable


@lru_cache(maxsize=1024)
def release(text: str | None) -> Version | None:
    """Return the version as one that compares; None if there is none, or nothing that is a
    version."""
    try:
        return Version(text or "")
    except InvalidVersion:
        return None


def releases(texts: Iterable[str], framework: str | None) -> tuple[str, ...]:
    """Return the release numbers of a framework: `("2.4",)` of `pytorch-2.4` and `mxnet-1.9`, for
    `pytorch`."""
    pairs = (text.rpartition("-") for text in texts)
    return tuple(number for name, _, number in pairs if name == framework)


def is_of(number: str, prefix: str | None) -> bool:
    """Return whether a version is of a release: 2.4.1 is of 2.4, and everything of None."""
    first, second = release(number), release(prefix)
    if first is None or second is None:
        return prefix is None
    return first.release[: len(second.release)] == second.release


def older(text: str | None, least: str | None) -> bool:
    """Return whether a version is older than another one; False where either is not known."""
    first, second = release(text), release(least)
    return first is not None and second is not None and first < second
