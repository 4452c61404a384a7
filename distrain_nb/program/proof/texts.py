"""Texts of all that tells one object from another: which parts are one, and what can be trained."""

from __future__ import annotations

import re
from types import BuiltinFunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.program.notebook.process_objects import is_bound
from distrain_nb.worker.fingerprint import Fingerprint, settings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

VALUES = "the values of "
_WEIGHTS = re.compile(r".*\._(parameters|buffers)\[")
_OF_NO_OBJECT = (ModuleType, type(None))
_MUTABLE = (list, dict, set, bytearray)


class _Everything(Fingerprint):
    most_parts = 50_000

    def __init__(self, modules: Collection[str], *, with_classes: bool) -> None:
        super().__init__({"__main__", *modules}, set())
        self._paths: dict[int, str] = {}
        self._with_classes = with_classes

    def kind(self, path: str, obj: Any) -> Any:
        self._paths[id(obj)] = path
        cls = type(obj)
        if self._with_classes and cls.__module__ in self.modules and id(cls) not in self._paths:
            self.at(f"type({path})", cls)  # another one may have its name by now
        if hasattr(type(obj), "requires_grad"):
            self.parts[f"{path}.requires_grad"] = f"bool {obj.requires_grad}"
        if isinstance(obj, BuiltinFunctionType) and isinstance(obj.__self__, _OF_NO_OBJECT):
            return f"function {obj.__module__}.{obj.__qualname__}", ()
        if isinstance(obj, dict) and path.endswith("_hooks"):  # by numbers of this process
            return "dict", [(f"{path}[{n}]", hook) for n, hook in enumerate(obj.values())]
        text, inside = super().kind(path, obj)
        if hasattr(type(obj), "__array__") and ", " in text:
            text, _, values = text.rpartition(", ")
            self.parts[f"{VALUES}{path}"] = values
        return text, inside

    def again(self, path: str, obj: Any) -> None:
        # What is never changed may be one object or two: compilers join constants.
        if isinstance(obj, _MUTABLE) or hasattr(obj, "__dict__"):
            self.parts[path] = f"the same as {self._paths.get(id(obj), '')}"


def texts_of(
    name: str, obj: Any, modules: Collection[str] = (), *, with_classes: bool = False
) -> dict[str, str]:
    """Return texts of an object's parts by their paths, also of classes of the user's modules, and
    of the classes that its parts are of; of what belongs to a process its settings."""
    if is_bound(obj):
        return settings(name, obj)
    look = _Everything(modules, with_classes=with_classes)
    look.at(name, obj)
    return look.parts


def without_weights(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts but for the values of a model's weights, which travel."""
    return {p: t for p, t in texts.items() if not (p.startswith(VALUES) and is_of_weights(p))}


def is_of_weights(path: str) -> bool:
    """Return whether a part is one of a model's weights or buffers."""
    return _WEIGHTS.match(path) is not None


def difference(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return the shortest path at which texts differ; empty where they don't."""
    paths = (path for path in {**one, **other} if one.get(path) != other.get(path))
    return min(paths, key=lambda path: (path not in one, len(path), path), default="")
