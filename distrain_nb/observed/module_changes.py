"""Which statements changed modules beside the notebook while they knew the world, and which read
that."""

from __future__ import annotations

import re
import sys
from dis import get_instructions
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard
from weakref import ReferenceType, ref

from distrain_nb.observed.changes import identity, leaves
from distrain_nb.observed.definitions import parts
from distrain_nb.observed.frames import is_installed, methods_of, root_of, run_by, stored_by
from distrain_nb.observed.imported_modules import ImportedModules
from distrain_nb.observed.objects import ANSWERS
from distrain_nb.worker.fingerprint import dict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

_PLAIN = {bool, int, float, complex, str, bytes, type(None)}  # which many names stand for
_Leaves = dict[str, dict[str, Any]]  # of modules, by their names
_NOTHING = object()

# A kernel with frameworks has thousands of modules, and few are the user's.
_others: dict[str, ReferenceType[ModuleType]] = {}


class ModuleChange(NamedTuple):
    """A part of a module that a statement changed: where that stands, and what it became."""

    label: str
    line: int
    column: int
    module: str
    path: str
    after: object


class Modules:
    """The modules of the user's own, before a statement that knows the world and after it."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self._before: _Leaves | None = None
        self._imported: _Leaves = {}
        self._found: list[ModuleChange] = []
        self.imported = ImportedModules(own_modules)

    def keep(self) -> None:
        """Keep the state before a statement that asks for the world, or reads what knows it."""
        if self._before is None:
            self._before = {name: _leaves(module) for name, module in own_modules()}

    def look(self, code: CodeType, at: tuple[str, int, int]) -> None:
        """Look what a statement has changed. It may also have set what was the same before, as the
        kernel's rank is 0."""
        self.imported.look()
        before, self._before = self._before, None
        if before is None:
            return
        users = dict(own_modules())
        for module in map(self.namespace.get, code.co_names):  # packages' too
            if type(module) is ModuleType and module.__name__ not in users:
                for path in stored_by(code):
                    value = vars(module).get(path)
                    if isinstance(value, (*ANSWERS, float)):
                        self._found.append(ModuleChange(*at, module.__name__, path, value))
        for name, module in users.items():
            now = _leaves(module)
            if name not in before:  # it has just been imported, which is the file's own matter
                self._imported[name] = now
                continue
            then = before[name]
            changed = {p for p in {**then, **now} if then.get(p, _NOTHING) != now.get(p)}
            changed |= {p for p in may_set(code, module, self.namespace) if p in now}
            self._found += [
                ModuleChange(*at, name, p, now.get(p, _NOTHING)) for p in sorted(changed)
            ]

    def read_by(self, code: CodeType) -> set[str]:
        """Return the names of the notebook by which a statement reads what another one, which knew
        the world, has changed in a module."""
        changed: dict[str, set[str]] = {}
        for change in self._found:
            changed.setdefault(change.module, set()).add(_root(change.path))
        run = [*run_by(code, self.namespace)] if changed else []
        words = {name for inner, _ in run for name in inner.co_names}
        names = {name for _, read in run for name in read}
        taken = {*_imports_from(code)} if changed else set()
        for module, roots in changed.items():
            of_module = {name for other, name in taken if other == module}
            if not roots.isdisjoint(of_module) or "*" in of_module:
                words |= roots
                names |= {*self.namespace}  # any that leads to it, as the module itself
        return {
            name
            for name in names
            for module, roots in changed.items()
            if not roots.isdisjoint(_led_to(self.namespace.get(name), module, words))
        }

    def since_import(self, name: str) -> Callable[[str], str]:
        """Return what tells by the path of a part what has happened to it since a statement that
        asked for the world imported the module: `set` to another value, `changed` in parts, or
        nothing."""
        is_known = name in self._imported and name in sys.modules
        imported = self._imported[name] if is_known else {}
        present = _leaves(sys.modules[name]) if is_known else {}

        def since(path: str) -> str:
            then, now = ({p: v for p, v in state.items() if _is_part(p, path)}
                         for state in (imported, present))  # fmt: skip
            if then == now:
                return ""
            return "set" if not then or {*then, *now} == {path} else "changed"

        return since

    def changes(self, modules: Collection[str]) -> Iterator[ModuleChange]:
        """Yield what statements that knew the world changed in modules, and nothing has since."""
        now = {name: _leaves(module) for name, module in own_modules() if name in modules}
        for change in self._found:
            module = now.get(change.module)
            if module is not None and module.get(change.path, _NOTHING) == change.after:
                yield change


def _imports_from(code: CodeType) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each `from module import name` that code runs itself; `*`
    for all names."""
    module = ""
    for instruction in get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            module = str(instruction.argval)
        elif instruction.opname == "IMPORT_FROM":
            yield module, str(instruction.argval)
        elif "IMPORT_STAR" in (instruction.opname, instruction.argrepr.partition("_")[2]):
            yield module, "*"


def _root(path: str) -> str:
    """Return the name of a module that has a part with this path."""
    return re.split(r"[.\[)]", path.removeprefix("len("))[0]


def _led_to(value: Any, module: str, words: Collection[str]) -> set[str]:
    """Return the names of a module to which code leads that has such a value, and says these words:
    the module, a function or class of it or an instance, or an object that the module has too."""
    names = vars(sys.modules[module]) if module in sys.modules else {}
    if isinstance(value, ModuleType):
        waiting = [*words] if vars(value) is names else []
    else:
        is_there = type(value) not in _PLAIN
        waiting = [name for name, other in names.items() if is_there and other is value]
        waiting += _names_in(value, module)
    reached = set[str]()
    while waiting:
        name = waiting.pop()
        if name in names and name not in reached:
            reached.add(name)
            waiting += _names_in(names[name], module)
    return reached


def _names_in(value: Any, module: str) -> set[str]:
    """Return the names that code of a module says: that of a function, or of a class's methods."""
    function, names = dict_of(value).get("__wrapped__", value), set[str]()
    of_function = [function.__code__] if type(function) is FunctionType else []
    codes = of_function or [code for _, code in methods_of(value, module)]
    while codes:
        code = codes.pop()
        names |= {*code.co_names}
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return names


def _is_part(path: str, outer: str) -> bool:
    path = path.removeprefix("len(").rstrip(")")
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def may_set(code: CodeType, module: ModuleType, namespace: Mapping[str, Any]) -> set[str]:
    """Return the plain globals of a module that code sets, itself or by the module's functions,
    whatever it calls them."""
    names = vars(module)
    set_here = (
        {*stored_by(code)} if any(namespace.get(n) is module for n in code.co_names) else set()
    )
    waiting, visited = [*code.co_names], set[str]()
    while waiting:
        name = waiting.pop()
        if name in visited:
            continue
        visited.add(name)
        for value in (names.get(name), namespace.get(name)):  # the notebook may call it otherwise
            if type(value) is FunctionType and value.__globals__ is names:
                waiting += value.__code__.co_names
                stores = get_instructions(value.__code__)
                set_here |= {str(i.argval) for i in stores if i.opname == "STORE_GLOBAL"}
    return {name for name in set_here if isinstance(names.get(name, names), (*ANSWERS, float))}


def _nothing() -> None:
    return None


def own_modules() -> Iterator[tuple[str, ModuleType]]:
    """Yield the modules of the user's files, by their names; one that is being imported asks
    itself."""
    # Each statement that knows the world asks twice. A loop over 10,000 modules takes 2 ms, their
    # names as a key 0.3 ms.
    for name in _not_packages(tuple(sys.modules)):
        module = sys.modules.get(name)
        if name == "__main__" or not is_users(module):
            continue
        if not getattr(module.__spec__, "_initializing", False):
            yield name, module


@lru_cache(maxsize=1)
def _not_packages(_names: tuple[str, ...]) -> list[str]:
    """Return the names of the modules that are no package's, when these are loaded."""
    names = []
    for name, module in sys.modules.copy().items():
        if _others.get(name, _nothing)() is module is not None:
            continue
        if type(module) is ModuleType and _is_packages(vars(module)):
            _others[name] = ref(module)
        else:
            names.append(name)
    return names


def is_users(module: object) -> TypeGuard[ModuleType]:
    """Return whether a module is of a file of the user's."""
    if type(module) is not ModuleType:
        return False
    names = vars(module)
    return not _is_packages(names) and str(names.get("__file__") or "").endswith(".py")


def _is_packages(names: Mapping[str, Any]) -> bool:
    return is_installed(names) or root_of(names) in sys.stdlib_module_names


def _leaves(module: ModuleType) -> dict[str, Any]:
    identities: dict[str, Any] = {}
    for name, value in [*vars(module).items()]:
        if name.startswith("__") or isinstance(value, ModuleType):
            continue
        if isinstance(value, (type, FunctionType)):
            identities[name] = identity(value)
            if value.__module__ == module.__name__:
                for path, part in parts(name, value):
                    identities.update({path: identity(part), **leaves(path, part)})
        else:
            identities.update(leaves(name, value))
    return identities
