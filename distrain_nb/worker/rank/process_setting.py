"""One setting of a process: how it is read, set and compared."""

from __future__ import annotations

import os
import sys
from types import FunctionType
from typing import Any, Callable, Mapping, NamedTuple, Optional

FIRST = object()  # stands for the value at the first reading
_DIFFERENT = object()  # unequal to every value

_PYTHON = os.path.dirname(os.__file__)


class ProcessState(NamedTuple):
    """One setting of a process.

    `usual` is its value in a new process. `set_by` is a pattern of the functions and attributes
    that set it: below the module's package, or with the name of another package. If the value is a
    dict, its items are compared one by one. `new` is the usual value of an item that `usual` lacks.
    """

    read: Callable[[Any], Any]
    write: Optional[Callable[[Any, Any], object]]
    usual: Any
    set_by: str = ""
    new: Any = _DIFFERENT

    def differs(self, value: Any, first: Any) -> Any:
        """Return what differs from the usual value, or from *first*; None if nothing does."""
        usual = first if self.usual is FIRST else self.usual
        if isinstance(usual, dict):
            return {k: v for k, v in value.items() if v != usual.get(k, self.new)} or None
        return None if value == usual or value is None else value


def called(get: str, put: str, usual: Any, set_by: str = "") -> ProcessState:
    """Return a setting that function *get* of a module returns and *put* sets."""
    return ProcessState(
        lambda module: getattr(module, get)(),
        lambda module, value: getattr(module, put)(value),
        usual,
        set_by or put,
    )


def attribute(path: str, usual: Any) -> ProcessState:
    """Return a setting that is an attribute of a module."""
    return ProcessState(
        lambda module: getattr(module, path),
        lambda module, value: setattr(module, path, value),
        usual,
        path,
    )


def keywords(get: str, put: str, usual: Mapping[str, Any]) -> ProcessState:
    """Return a setting that is a dict from *get* and keyword arguments of *put*."""
    return ProcessState(
        lambda module: getattr(module, get)(),
        lambda module, values: getattr(module, put)(**values),
        usual,
        put,
    )


def hook(name: str) -> ProcessState:
    """Return a setting that is a function of a module, which the user may replace."""
    return attribute(name, FIRST)._replace(read=lambda module: of_user(getattr(module, name, None)))


def of_user(function: Any) -> Any:
    """Return *function* if the user has written it, else None."""
    if type(function) is not FunctionType or is_of_package(function):
        return None
    file = _file(function)
    of_python = function.__module__ != "__main__" and (not file or file.startswith(_PYTHON))
    return None if of_python else function


def is_of_package(definition: Any) -> bool:
    """Return whether an installed package defines a function or class."""
    return definition.__module__ != "__main__" and "-packages" in _file(definition)


def _file(definition: Any) -> str:
    return str(getattr(sys.modules.get(definition.__module__ or ""), "__file__", None) or "")
