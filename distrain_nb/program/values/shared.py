"""Lists, dicts and sets that something else refers to as well.

A literal in the program's text would make another one of each.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


CHANGING = (list, dict, set)
_DEEPEST = 4


def shared_names(namespace: Mapping[str, Any], held: Iterable[int] = ()) -> set[str]:
    """Return the names of lists, dicts and sets that more than the name refers to, or to a part of
    which more does than what it is in. To be called before anything else holds them but what has
    `held` some, by their identities."""
    ours = Counter(held)
    names = [n for n in namespace if type(namespace[n]) in (*CHANGING, tuple)]
    return {
        name
        for name in names
        if _is_shared(namespace, name, ours[id(namespace[name])])
        or _shares(namespace[name], _DEEPEST)
    }


def _shares(holder: Any, depth: int) -> bool:
    """Return whether more than the holder refers to something that it holds."""
    return any(
        _is_shared(holder, key)
        or (type(holder[key]) in (list, dict, tuple) and depth and _shares(holder[key], depth - 1))
        for key in _keys(holder)
    )


def _keys(holder: Any) -> Iterator[Any]:
    if isinstance(holder, (list, tuple)):
        yield from range(len(holder))
    elif isinstance(holder, dict):
        yield from holder


def _is_shared(holder: Any, key: Any, more: int = 0) -> bool:
    return type(holder[key]) in CHANGING and _references(holder, key) > _ALONE + more


def _references(holder: Any, key: Any) -> int:
    return sys.getrefcount(holder[key])


_ALONE = _references({"": []}, "")  # which depends on the version of Python
