"""Functions and classes that a notebook has defined anew reach the ranks of its session, as by
IPython's `%autoreload`.

Who holds the old function runs the new code from then on. Objects of the old class become objects
of the new one, unless their layout differs: those are named, and keep the old class.
"""

from __future__ import annotations

import gc
import sys
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Dict

# What a class has by itself, and what is made for its layout.
_OF_CLASS = ("__dict__", "__weakref__", "__module__", "__qualname__", "__slots__", "__classcell__")
_OF_LAYOUT = (GetSetDescriptorType, MemberDescriptorType)
_OF_FUNCTION = ("__code__", "__defaults__", "__kwdefaults__", "__doc__", "__dict__")


class Redefinitions:
    """Compares the definitions of a namespace before and after a cell's own begin."""

    def __init__(self, namespace: Dict[str, Any]) -> None:
        self._namespace = namespace
        module = namespace["__name__"]
        self._before = {
            name: value
            for name, value in namespace.items()
            if isinstance(value, (type, FunctionType)) and value.__module__ == module
        }

    def apply(self) -> None:
        """Give what was defined before what it is now, and say which objects it can't be given."""
        for name, old in self._before.items():
            new = self._namespace.get(name)
            if new is old:
                continue
            if isinstance(old, FunctionType) and isinstance(new, FunctionType):
                _update_function(old, new)
            elif isinstance(old, type) and isinstance(new, type):
                self._update_class(name, old, new)

    def _update_class(self, name: str, old: type, new: type) -> None:
        instances = [item for item in gc.get_referrers(old) if type(item) is old]
        for instance in instances:
            try:
                object.__setattr__(instance, "__class__", new)
            except TypeError:  # other slots, another base
                continue
        holders = [key for key, value in self._namespace.items() if type(value) is old]
        for key, now in list(vars(new).items()):  # whoever has the old class itself
            before = vars(old).get(key)
            if isinstance(before, FunctionType) and isinstance(now, FunctionType):
                _update_function(before, now)
            elif key not in _OF_CLASS and not isinstance(now, _OF_LAYOUT):
                try:
                    setattr(old, key, now)
                except (AttributeError, TypeError):  # a class of which nothing can be set
                    continue
        if holders:
            names = ", ".join(f"`{holder}`" for holder in holders)
            verb, them = ("keeps", "it") if len(holders) == 1 else ("keep", "them")
            print(
                f"distrain: {names} {verb} the earlier class `{name}`, whose layout differs: make "
                f"{them} again to have the new one",
                file=sys.stderr,
            )


def _update_function(old: FunctionType, new: FunctionType) -> None:
    """Have the old function do what the new one does. What it has from around it stays: its class,
    for `super()`. One that has other names from there stays as a whole."""
    if old.__code__.co_freevars != new.__code__.co_freevars:
        return
    for attribute in _OF_FUNCTION:
        try:
            setattr(old, attribute, getattr(new, attribute))
        except (AttributeError, TypeError, ValueError):
            return
