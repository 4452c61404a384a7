"""Which objects a statement may change: those that its code leads to."""

from __future__ import annotations

import builtins
import gc
from dis import opmap
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.frames import is_package, run_by

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_PLAIN = {int, float, complex, bool, str, bytes, type(None)}
# What they do with plain values concerns nothing else.
_HARMLESS = {
    *("print", "len", "range", "round", "abs", "min", "max", "sum", "divmod", "repr", "format"),
    *("int", "float", "str", "bool", "complex", "bytes", "ord", "chr", "pow", "isinstance"),
}
# What finds names by text, or objects that nothing names.
_BY_TEXT = {
    *("exec", "eval", "globals", "locals", "vars", "get_ipython", "modules", "__main__"),
    *("_getframe", "currentframe", "f_globals", "get_objects", "get_referrers", "__subclasses__"),
}
_IMPORT = opmap["IMPORT_NAME"]
_MOST = 5000  # objects that are looked at for a statement, and items of one
_CONTAINERS = (dict, list, tuple, set, frozenset)


def is_idle(code: CodeType, names: Mapping[str, Any], followed: Collection[str]) -> bool:
    """Return whether a statement deals with plain values alone, none of them `followed`, so that it
    can neither ask nor change anything but the names that it binds. It takes a microsecond."""
    for name in code.co_names:
        if name in followed:
            return False
        if name in names:
            if type(names[name]) not in _PLAIN:
                return False
        elif hasattr(builtins, name) and not _is_harmless(name):
            return False
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        return False
    return _IMPORT not in code.co_code[::2]


def _is_harmless(name: str) -> bool:
    value = getattr(builtins, name)
    is_pythons = isinstance(value, (type, BuiltinFunctionType)) and value.__module__ == "builtins"
    return name in _HARMLESS and is_pythons


def touched(code: CodeType, names: Mapping[str, Any]) -> set[int] | None:
    """Return the identities of the objects to which the code of a statement leads, as far as names,
    containers, attributes and closures tell; None where these are too many to look at, and where
    code may find a name by its text."""
    run = [*run_by(code, names)]
    if any(not _BY_TEXT.isdisjoint(part.co_names) for part, _ in run):
        return None
    read = {name for _, there in run for name in there}
    waiting = [names[name] for name in read if name in names]
    visited: set[int] = set()
    while waiting:
        thing = waiting.pop()
        if type(thing) in _PLAIN or id(thing) in visited or _is_packages(thing):
            continue
        visited.add(id(thing))
        if type(thing) is dict and not gc.is_tracked(thing):
            continue  # it has plain values alone
        if len(visited) > _MOST or (isinstance(thing, _CONTAINERS) and len(thing) > _MOST):
            return None
        if isinstance(thing, ModuleType):
            waiting.append(vars(thing))
        elif isinstance(thing, FunctionType):  # as a hook, which no statement names
            waiting += [thing.__closure__, thing.__defaults__, thing.__kwdefaults__, vars(thing)]
            around = thing.__globals__
            waiting += [around[name] for name in thing.__code__.co_names if name in around]
        elif getattr(getattr(thing, "dtype", None), "hasobject", False):
            waiting += thing.ravel()[:_MOST].tolist()  # of which NumPy tells the collector nothing
        else:
            waiting += gc.get_referents(thing)
    return visited


def _is_packages(thing: object) -> bool:
    """Return whether something is a package's module, class or function, which holds nothing of the
    notebook's."""
    if isinstance(thing, ModuleType):
        return is_package(thing.__name__)
    if isinstance(thing, (type, FunctionType)):
        return is_package(str(thing.__module__))
    return isinstance(thing, BuiltinFunctionType) and isinstance(thing.__self__, ModuleType)
