"""What `functools.cache` and `lru_cache` have kept: read here, and filled in again in a rank.

The caches are C's. Their results are among what the garbage collector follows from them, and they
take results from nothing but the function: so that gives them for a moment.
"""

from __future__ import annotations

import functools
import gc
from types import FunctionType
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

CACHE = ".cache_info()"  # of a function, in the name of what it has cached
CACHED = type(functools.lru_cache(maxsize=None)(len))
_Call = Tuple[Tuple[Any, ...], Dict[str, Any], Any]


class CachedResults(NamedTuple):
    """The calls that a cache knows, the oldest first: arguments, keywords, result."""

    calls: List[_Call]

    def fill(self, cached: Any) -> None:
        """Have a cached function know these calls, and none of its code run for that."""
        function = cached.__wrapped__
        results: List[Any] = []
        saved = function.__code__, function.__defaults__, function.__kwdefaults__

        def give(*_: Any, _results: Any = results, **__: Any) -> Any:
            return _results[0]

        function.__code__ = give.__code__.replace(co_freevars=saved[0].co_freevars)
        function.__defaults__, function.__kwdefaults__ = None, give.__kwdefaults__
        try:
            for arguments, keywords, result in self.calls:
                results[:] = [result]
                cached(*arguments, **keywords)
        finally:
            function.__code__, function.__defaults__, function.__kwdefaults__ = saved


def caches_in(name: str, definition: Any) -> Iterator[Tuple[str, Any, CachedResults]]:
    """Yield a function, or those in a class, by their paths, with what they have cached."""
    inside = vars(definition).items() if isinstance(definition, type) else ()
    for path, part in [(name, definition), *((f"{name}.{n}", part) for n, part in inside)]:
        function = getattr(part, "__func__", part)
        results = cached_results(function)
        if results:
            yield path, function.__wrapped__, results


def cached_results(cached: Any) -> Optional[CachedResults]:
    """Return what a cached function knows; None for what is no such function, or knows nothing."""
    if not isinstance(cached, CACHED):
        return None
    function = getattr(cached, "__wrapped__", None)
    size = cached.cache_info().currsize
    if type(function) is not FunctionType or not size:
        return None
    try:
        calls = _calls(cached, function)
    except (StopIteration, IndexError, ValueError, TypeError):  # tried with Python 3.10 to 3.13
        return None
    return CachedResults(calls) if len(calls) == size else None


def _calls(cached: Any, function: FunctionType) -> List[_Call]:
    followed = gc.get_referents(cached)
    behind = next(n for n in reversed(range(len(followed))) if followed[n] is function)
    cache, mark = followed[behind - 1], followed[behind + 1]
    if cached.cache_info().maxsize is None:
        pairs = [*cache.items()]
    else:  # each key with its result before the cache
        keys = {id(key) for key in cache}
        first = next(n for n, part in enumerate(followed) if id(part) in keys)
        step = (behind - 1 - first) // len(cache)
        pairs = [(followed[n], followed[n + 1]) for n in range(first, behind - 1, step)]
    typed = cached.cache_parameters()["typed"]
    return [(*_arguments(key, mark, typed), result) for key, result in pairs]


def _arguments(key: Any, mark: Any, typed: bool) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Return arguments and keywords of a key. The types follow them in one that is typed."""
    if type(key) in (int, str):  # which stands for itself
        return (key,), {}
    marks = [n for n, part in enumerate(key) if part is mark]
    if not marks:
        return (key[: len(key) // 2] if typed else key), {}
    count, rest = marks[0], key[marks[0] + 1 :]
    if typed:
        rest = rest[: 2 * (len(rest) - count) // 3]
    return key[:count], dict(zip(rest[::2], rest[1::2]))
