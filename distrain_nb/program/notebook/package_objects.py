"""Objects that a package keeps in a module: `torch.default_generator`, `plt.rcParams`,
`dataclasses.MISSING`. A copy would be another object than the one that the package uses."""

from __future__ import annotations

import dis
import sys
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Any

from distrain_nb.observed.frames import is_package
from distrain_nb.program.notebook.making import codes_in

_ANY = "builtins"  # of a bare `object()`, which any package may keep


@dataclass
class PackageObjects:
    """Finds where packages keep objects of their own classes, as it is during one capture."""

    _places: dict[str, dict[int, tuple[str, str]]] = field(default_factory=dict)  # by packages

    def place(self, obj: object) -> tuple[str, str] | None:
        """Return the module and the name by which a package keeps an object; None for all others,
        for values, which are as good as their copies, and for what pickle finds by itself."""
        cls = type(obj)
        package = str(cls.__module__).partition(".")[0]
        if package == "__main__" or not _has_identity(cls, package):
            return None
        if package not in self._places:
            self._places[package] = _kept_by(package)
        found = self._places[package].get(id(obj))
        if found is None or _has_global_name(obj) or _is_set_later(*found):
            return None
        return found


def _has_identity(cls: Any, package: str) -> bool:
    """Return whether objects of a class are told apart by what they are, not by what they say."""
    if package == _ANY:
        return cls is object
    return cls.__hash__ in (object.__hash__, None) and not issubclass(cls, (type, Enum))


def _kept_by(package: str) -> dict[int, tuple[str, str]]:
    """Return where a package's modules keep objects of its classes: of several places the one that
    users know best."""
    kinds: dict[type, bool] = {}
    installed: dict[str, bool] = {}  # by the first part of a module's name
    places: dict[int, tuple[str, str]] = {}
    for module, loaded in [*sys.modules.items()]:
        root = module.partition(".")[0]
        if not isinstance(loaded, ModuleType) or package not in (root, _ANY):
            continue
        kept = list[tuple[str, int]]()
        for name, value in [*vars(loaded).items()]:
            cls = type(value)
            if cls not in kinds:
                own = str(cls.__module__).partition(".")[0]
                kinds[cls] = own == package and _has_identity(cls, package)
            if kinds[cls]:
                kept.append((name, id(value)))
        if kept and root not in installed:
            installed[root] = is_package(module)
        if kept and installed[root]:
            for name, identity in kept:
                known = places.get(identity, (module, name))
                places[identity] = min(known, (module, name), key=_obscurity)
    return places


def _obscurity(place: tuple[str, str]) -> tuple[int, int]:
    path = ".".join(place)
    return sum(part.startswith("_") for part in path.split(".")), len(path)


def _is_set_later(module: str, name: str) -> bool:
    """Return whether a function of a module sets a name of it: its import alone doesn't give what
    that is now."""
    loader = getattr(sys.modules[module].__spec__, "loader", None)
    try:
        code = loader.get_code(module) if loader else None
    except Exception:  # there is no file any more
        return False
    inner = [c for c in codes_in(code) if name in c.co_names] if code else []
    every = (instruction for c in inner for instruction in dis.get_instructions(c))
    return any(i.opname == "STORE_GLOBAL" and i.argval == name for i in every)


def _has_global_name(obj: Any) -> bool:
    try:
        return isinstance(obj.__reduce_ex__(4), str)
    except Exception:  # it can't be pickled, or says so
        return False
