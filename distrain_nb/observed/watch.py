"""Wrappers around what asks for the world, which note the call before it is made."""

from __future__ import annotations

import os
import sys
from functools import wraps
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.questions import ASKED, asked_variable, package_of
from distrain_nb.worker.rank.on_import import on_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_VARIABLES = 4096


class Watch:
    """Calls `see` with what is asked, the frame that asks, and the package that answers, before
    it is answered."""

    def __init__(self, see: Callable[..., None]) -> None:
        self._see = see
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        """Be called first, from now on."""
        self._watch_environment()
        self._undo.append(on_import(dict.fromkeys(ASKED, self._watch_module)))

    def stop(self) -> None:
        """Put back what was there. What others have wrapped since stays, and notes nothing."""
        while self._undo:
            self._undo.pop()()

    def _watch_environment(self) -> None:
        cls = type(os.environ)
        get, names, see, known = cls.__getitem__, cls.__iter__, self._see, dict[Any, str]()

        def getitem(self: Any, key: Any) -> Any:
            try:
                asked = known[key]
            except (KeyError, TypeError):
                asked = asked_variable(key)
                if len(known) < _MOST_VARIABLES and isinstance(key, (str, bytes)):
                    known[key] = asked
            if asked:
                see(asked, sys._getframe(1))
            return get(self, key)

        def iterate(self: Any) -> Iterator[Any]:
            see("os.environ", sys._getframe(1))
            return names(self)

        self._replace(cls, "__getitem__", wraps(get)(getitem))
        self._replace(cls, "__iter__", wraps(names)(iterate))

    def _watch_module(self, module: Any) -> None:
        for path in ASKED[module.__name__]:
            owner, _, name = path.rpartition(".")
            holder = getattr(module, owner, None) if owner else module
            function = vars(holder).get(name) if holder else None
            what = f"{package_of(module.__name__)}.{name}()"
            if isinstance(function, FunctionType) and not function.__closure__:
                self._watch_function(function, what)
            elif function is not None and hasattr(function, "cache_info"):  # by `lru_cache`
                watched = wraps(function)(FunctionType(self._asking(function, what), {}))
                self._replace(holder, name, watched)

    def _watch_function(self, function: FunctionType, what: str) -> None:
        """Give a function another code: it stays the same object, whatever names it has."""
        before = function.__code__
        inner = FunctionType(before, function.__globals__, function.__name__, function.__defaults__)
        inner.__kwdefaults__ = function.__kwdefaults__
        function.__code__ = asking = self._asking(inner, what)
        function.__wrapped__ = inner  # type: ignore[attr-defined] # has signature and source

        def put_back() -> None:
            if function.__code__ is asking:
                function.__code__ = before
                del function.__wrapped__  # type: ignore[attr-defined]

        self._undo.append(put_back)

    def _asking(self, function: Callable[..., Any], what: str) -> CodeType:
        """Code that calls a function after the call was noted."""
        see, package = self._see, what.partition(".")[0]

        def noted(*args: Any, **kwargs: Any) -> Any:
            see(what, sys._getframe(2), package)
            return function(*args, **kwargs)

        code = _first.__code__
        return code.replace(co_consts=tuple(noted if c == _HERE else c for c in code.co_consts))

    def _replace(self, holder: Any, name: str, new: object) -> None:
        old = vars(holder)[name]
        setattr(holder, name, new)

        def put_back() -> None:
            if vars(holder).get(name) is new:
                setattr(holder, name, old)

        self._undo.append(put_back)


_HERE = "what is called"


def _first(*args: Any, **kwargs: Any) -> Any:
    """Return the code of watched functions, where a function stands in place of the text."""
    called: Any = "what is called"
    return called(*args, **kwargs)
