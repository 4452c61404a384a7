"""Wrappers around what asks for the world. They note each call before it is made.

They wrap `os.environ`, the functions of `world_functions.py` and the start of other processes.
"""

from __future__ import annotations

import os
import sys
from functools import wraps
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.children import Children
from distrain_nb.observed.launcher_variables import asked_variable
from distrain_nb.observed.world_functions import ASKED, package_of
from distrain_nb.worker.rank.on_import import on_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from distrain_nb.observed.process import Variables


_MOST_VARIABLES = 4096
_HERE = "what is called"


class Watch:
    """Calls `see` with what is asked, the frame that asks, and the package that answers, before
    it is answered; `sets` with a variable of the environment and the frame that sets it; `starts`
    with the command of a process and the frame that starts it; `variables` note the others."""

    def __init__(
        self,
        see: Callable[..., None],
        sets: Callable[..., None],
        starts: Callable[..., None],
        variables: Variables,
    ) -> None:
        self._see, self._sets, self._starts, self._variables = see, sets, starts, variables
        self.children = Children()
        self.spawned = False  # a pool's processes, which tell nothing
        self._asked: dict[Any, str] = {}  # by the variable: how it is asked for, empty for others
        self._undo: list[Callable[[], None]] = []

    def learn(self, variables: Iterable[str]) -> None:
        """Take variables that the notebook has set by its rank for such as launchers set."""
        self._asked.update((name, f"os.environ[{name!r}]") for name in variables)

    def start(self) -> None:
        """Be called first, from now on."""
        self._watch_environment()
        modules = {"subprocess": self._watch_commands, **dict.fromkeys(ASKED, self._watch_module)}
        self._undo.append(on_import(modules))

    def stop(self) -> None:
        """Put back what was there. What others have wrapped since stays, and notes nothing."""
        while self._undo:
            self._undo.pop()()

    def _watch_environment(self) -> None:
        cls = type(os.environ)
        get, set_, names, shown = cls.__getitem__, cls.__setitem__, cls.__iter__, cls.__repr__
        see, sets, known = self._see, self._sets, self._asked
        note, read = self._variables.note, self._variables.noted

        def getitem(self: Any, key: Any) -> Any:
            __tracebackhide__ = True  # for IPython
            try:
                asked = known[key]
            except (KeyError, TypeError):
                asked = asked_variable(key)
                if len(known) < _MOST_VARIABLES and isinstance(key, (str, bytes)):
                    known[key] = asked
            if asked:
                see(asked, sys._getframe(1))
            elif type(key) is str and key not in read:
                note(key, sys._getframe(1))
            return get(self, key)

        def setitem(self: Any, key: Any, value: Any) -> None:
            __tracebackhide__ = True
            set_(self, key, value)
            sets(key, sys._getframe(1))

        def iterate(self: Any) -> Iterator[Any]:
            see("os.environ", sys._getframe(1))
            return names(self)

        def show(self: Any) -> str:
            see("os.environ", sys._getframe(1))
            return shown(self)

        self._replace(cls, "__getitem__", wraps(get)(getitem))
        self._replace(cls, "__setitem__", wraps(set_)(setitem))
        self._replace(cls, "__iter__", wraps(names)(iterate))
        self._replace(cls, "__repr__", wraps(shown)(show))

    def _watch_commands(self, module: Any) -> None:
        def note(frame: FrameType, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
            self._starts(named.get("args", "") if len(args) < 2 else args[1], frame)

        def note_command(frame: FrameType, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
            self._starts(args[0] if args else named.get("command", ""), frame)

        system = FunctionType(_asking(os.system, note_command), {})
        self._replace(os, "system", wraps(os.system)(system))
        self._watch_function(module.Popen.__init__, note)
        self._watch_pools()

    def _watch_pools(self) -> None:
        """Note that a pool starts interpreters: multiprocessing and joblib look this function up
        when they do; subprocess has taken it at its import."""
        import _posixsubprocess

        start = _posixsubprocess.fork_exec

        def fork_exec(*args: Any) -> int:
            self.spawned = True
            return start(*args)

        self._replace(_posixsubprocess, "fork_exec", wraps(start)(fork_exec))

    def _watch_module(self, module: Any) -> None:
        for path in ASKED[module.__name__]:
            owner, _, name = path.rpartition(".")
            holder = getattr(module, owner, None) if owner else module
            function = vars(holder).get(name) if holder else None
            what = f"{package_of(module.__name__)}.{name}()"
            if type(function) is FunctionType and not function.__closure__:
                self._watch_function(function, self._noting(what))
            elif function is not None and hasattr(function, "cache_info"):  # by `lru_cache`
                watched = wraps(function)(FunctionType(_asking(function, self._noting(what)), {}))
                self._replace(holder, name, watched)

    def _noting(self, what: str) -> Callable[..., None]:
        see, package = self._see, what.partition(".")[0]
        return lambda frame, *_: see(what, frame, package)

    def _watch_function(self, function: FunctionType, note: Callable[..., None]) -> None:
        """Give a function another code: it stays the same object, whatever names it has."""
        before = function.__code__
        inner = FunctionType(before, function.__globals__, function.__name__, function.__defaults__)
        inner.__kwdefaults__ = function.__kwdefaults__
        function.__code__ = asking = _asking(inner, note)
        function.__wrapped__ = inner  # type: ignore[attr-defined] # has signature and source

        def put_back() -> None:
            if function.__code__ is asking:
                function.__code__ = before
                del function.__wrapped__  # type: ignore[attr-defined]

        self._undo.append(put_back)

    def _replace(self, holder: Any, name: str, new: object) -> None:
        old = vars(holder)[name]
        setattr(holder, name, new)

        def put_back() -> None:
            if vars(holder).get(name) is new:
                setattr(holder, name, old)

        self._undo.append(put_back)


def _asking(function: Callable[..., Any], note: Callable[..., None]) -> CodeType:
    """Return code that calls a function after the call was noted, with the frame that calls."""

    def noted(*args: Any, **kwargs: Any) -> Any:
        note(sys._getframe(2), args, kwargs)
        return function(*args, **kwargs)

    code = _first.__code__
    return code.replace(co_consts=tuple(noted if c == _HERE else c for c in code.co_consts))


def _first(*args: Any, **kwargs: Any) -> Any:
    """Return the code of watched functions, where a function stands in place of the text."""
    called: Any = "what is called"
    return called(*args, **kwargs)
