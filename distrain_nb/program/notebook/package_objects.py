"""Objects that a package keeps in a module: `torch.default_generator`, `plt.rcParams`,
`dataclasses.MISSING`. A copy would be another object than the one that the package uses."""

from __future__ import annotations

import dis
import sys
from enum import Enum
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.frames import is_package
from distrain_nb.program.notebook.code_objects import codes_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    Names: TypeAlias = "list[tuple[str, int]]"
    Places: TypeAlias = "dict[int, tuple[str, str]]"

_ANY = "builtins"  # of a bare `object()`, which any package may keep


# What packages keep, by packages, and how many names each of their modules had by then: PyTorch's
# 2,000 modules take 40 ms to look through, and 0.4 ms to count.
_places_of: dict[str, tuple[Names, Places]] = {}


class PackageObjects:
    """Finds where packages keep objects of their own classes, as it is during one capture."""

    def __init__(self) -> None:
        self._places: dict[str, Places] = {}  # by packages

    @cached_property
    def _modules(self) -> dict[str, dict[str, ModuleType]]:
        """Modules by their names, by packages."""
        modules: dict[str, dict[str, ModuleType]] = {}
        for name, loaded in sys.modules.copy().items():  # threads import
            if isinstance(loaded, ModuleType):
                modules.setdefault(name.partition(".")[0], {})[name] = loaded
        return modules

    def place(self, obj: object) -> tuple[str, str] | None:
        """Return the module and the name by which a package keeps an object; None for all others,
        for values, which are as good as their copies, and for what pickle finds by itself."""
        cls = type(obj)
        package = str(cls.__module__).partition(".")[0]
        if package == "__main__" or not _has_identity(cls, package):
            return None
        if package not in self._places:
            self._places[package] = self._kept_by(package)
        place = self._places[package].get(id(obj))
        if place is None or vars(sys.modules[place[0]]).get(place[1]) is not obj:
            return None
        return None if _has_global_name(obj) or _is_set_later(*place) else place

    def _kept_by(self, package: str) -> Places:
        """Look through the modules of a package, if names have come or gone since they were looked
        through. One that names another object by now may be missed, as `_is_set_later` says."""
        parts = self._modules.values() if package == _ANY else [self._modules.get(package, {})]
        modules = {name: loaded for part in parts for name, loaded in part.items()}
        names = [(name, len(vars(loaded))) for name, loaded in modules.items()]
        if package not in _places_of or _places_of[package][0] != names:
            _places_of[package] = names, _places_in(modules, package)
        return _places_of[package][1]


def _has_identity(cls: Any, package: str) -> bool:
    """Return whether objects of a class are told apart by what they are, not by what they say."""
    if package == _ANY:
        return cls is object
    return cls.__hash__ in (object.__hash__, None) and not issubclass(cls, (type, Enum))


def _places_in(modules: Mapping[str, ModuleType], package: str) -> Places:
    """Return where modules keep objects of a package's classes: of several places the one that
    users know best."""
    kinds: dict[type, bool] = {}
    installed: dict[str, bool] = {}  # by the first part of a module's name
    places: Places = {}
    for module, loaded in modules.items():
        named = list[tuple[str, int]]()
        for name, value in vars(loaded).copy().items():
            cls = type(value)
            if cls not in kinds:
                root = str(cls.__module__).partition(".")[0]
                kinds[cls] = root == package and _has_identity(cls, package)
            if kinds[cls]:
                named.append((name, id(value)))
        root = module.partition(".")[0]
        if named and root not in installed:
            installed[root] = is_package(module)
        if named and installed[root]:
            for name, identity in named:
                place = places.get(identity, (module, name))
                places[identity] = min(place, (module, name), key=_obscurity)
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
