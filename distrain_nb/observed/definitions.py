"""How definitions were when their statement had run, so that what has changed since is known.

Which statements changed modules beside the notebook while they knew the world.
"""

from __future__ import annotations

import re
import sys
from dis import get_instructions
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ReferenceType, ref

from distrain_nb.observed.changes import first_change, identity, leaves, stored
from distrain_nb.observed.frames import is_installed, methods_of, root_of, run_by, stored_by
from distrain_nb.observed.objects import ANSWERS
from distrain_nb.worker.fingerprint import dict_of, is_own
from distrain_nb.worker.functions import NoAttribute

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

_State = dict[str, dict[str, Any]]
OF_CLASSES = (
    "__doc__",
    "__annotations__",
    "__match_args__",
)  # which their statements give them, and may change
_METHODS = (FunctionType, staticmethod, classmethod, property)


def parts(name: str, definition: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a definition by their paths; also those of classes inside it, and of
    its own instances among them, such as an enum's members: these are made with it."""
    waiting, seen = [(name, definition)], set()
    while waiting:
        path, owner = waiting.pop()
        seen.add(id(owner))
        text = _of_function(owner) if type(owner) is FunctionType else {}
        for attribute, value in [*vars(owner).items(), *text.items()]:
            is_given = attribute.startswith("__") and attribute.endswith("__")
            is_of_class = attribute in OF_CLASSES and value is not None
            if is_given and not (is_of_class or isinstance(value, _METHODS)):
                continue
            inner = f"{path}.{attribute}"
            yield inner, value
            if id(value) not in seen and _is_made_with(value, owner):
                waiting.append((inner, value))


def _of_function(function: FunctionType) -> dict[str, Any]:
    """Return what a function's statement gives it beside its code; Python 3.14 works annotations
    out when they are asked for."""
    early = sys.version_info < (3, 14) and function.__annotations__
    return {"__doc__": function.__doc__, **({"__annotations__": early} if early else {})}


def is_definition(value: Any) -> bool:
    """Return whether a value is a class or a function, be it one that `lru_cache` or the like has
    made."""
    return isinstance(value, (type, FunctionType)) or "__wrapped__" in dict_of(value)


def _is_made_with(value: Any, owner: Any) -> bool:
    if isinstance(value, type):
        return value.__module__ == owner.__module__ and value.__qualname__.startswith(
            f"{owner.__qualname__}."
        )
    return owner in type(value).__mro__ and hasattr(value, "__dict__")


class Originals:
    """The definitions of one notebook, as their statements left them; `filled` are those that
    statements gave something of the world, with the places of these."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self._known: dict[str, tuple[ReferenceType[Any], _State]] = {}
        self.filled: dict[str, list[tuple[str, int, int]]] = {}
        self._asking: dict[str, _State] = {}
        self._given: list[tuple[ReferenceType[Any], tuple[str, int, int]]] = []

    def keep(self) -> None:
        """Keep all definitions as they were before a statement that asks for the world, or reads
        what depends on it."""
        for name in self._known.keys() - self._asking.keys():
            definition = self._still(name)
            if definition is not None:
                self._asking[name] = {**_state(name, definition), _HELD: _held(definition)}

    def look(self, code: CodeType, at: tuple[str, int, int]) -> None:
        """Keep how a statement's definitions are after it has run, and what it gave others of the
        world, which each rank has otherwise."""
        asking, self._asking = self._asking, {}
        for name, before in asking.items():
            definition = self._still(name)
            now = before
            if definition is not None:
                now = {**_state(name, definition), _HELD: _held(definition)}
            changed = [p for p in {**before, **now} if before.get(p) != now.get(p)]
            new = {path: now.get(path, {}) for path in changed if path != _HELD}
            self._known[name][1].update(new)
            if changed:
                self.filled.setdefault(name, []).append(at)
                owners = {name: definition, **dict(parts(name, definition))}
                changed_in = {p.rpartition(".")[0] if p != _HELD else name for p in changed}
                given = (owners[path] for path in changed_in if path in owners)
                self._given += [(ref(owner), at) for owner in given if is_definition(owner)]
        own = [n for n in code.co_names if self._is_own(self.namespace.get(n))]
        for name in stored(code).intersection(own) if own else ():
            value = self.namespace[name]
            known = self._known.get(name)
            if known is None or known[0]() is not value:
                self._known[name] = ref(value), _state(name, value)
                self.filled.pop(name, None)

    def changed(
        self, name: str, definition: Any
    ) -> dict[str, tuple[Any, tuple[str, str, str]]] | None:
        """Return what has changed in a definition, by the path, with the part that tells, what that
        was and became; NoAttribute for what is gone. None where nobody saw its statement."""
        known = self._known.get(name)
        if known is None or known[0]() is not definition:
            return None
        before, now, values = known[1], _state(name, definition), dict(parts(name, definition))
        paths = [p for p in {**now, **before} if now.get(p) != before.get(p)]
        outer = [p for p in paths if not any(p.startswith(f"{other}.") for other in paths)]
        return {
            p: (values.get(p, NoAttribute), first_change(before.get(p, {}), now.get(p, {})))
            for p in outer
        }

    def given_by(self, definition: Any) -> tuple[str, int, int] | None:
        """Return the place of the statement that last gave a definition something of the world,
        whatever names stand for it since."""
        places = (at for owner, at in reversed(self._given) if owner() is definition)
        return next(places, None)

    def _still(self, name: str) -> Any:
        """Return the definition, while a name stands for the one that was seen."""
        value = self.namespace.get(name)
        return value if value is not None and self._known[name][0]() is value else None

    def _is_own(self, value: Any) -> bool:
        main = self.namespace.get("__name__")
        if isinstance(value, type):
            return is_own(value, (main,))
        return is_definition(value) and value.__module__ == main


_HELD = "its defaults and closure"


def _held(definition: Any) -> dict[str, Any]:
    function = getattr(definition, "__wrapped__", definition)
    if type(function) is not FunctionType:
        return {}
    held = [function.__defaults__, function.__kwdefaults__]
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # it is empty
            continue
    return leaves("", held)


def _state(name: str, definition: Any) -> _State:
    """Return what shows changes: the parts of an attribute, or its object's identity."""
    state: _State = {}
    for path, value in parts(name, definition):
        state[path] = {**leaves(path, value)}
        state[path].setdefault(path, identity(value))
    return state


_PLAIN = {bool, int, float, complex, str, bytes, type(None)}  # which many names stand for
_Leaves = dict[str, dict[str, Any]]  # of modules, by their names
_NOTHING = object()


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

    def keep(self) -> None:
        """Keep the state before a statement that asks for the world, or reads what knows it."""
        if self._before is None:
            self._before = {name: _leaves(module) for name, module in _own_modules()}

    def look(self, code: CodeType, at: tuple[str, int, int]) -> None:
        """Look what a statement has changed. It may also have set what was the same before, as the
        kernel's rank is 0."""
        before, self._before = self._before, None
        if before is None:
            return
        users = dict(_own_modules())
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
        return {
            name
            for name in {name for _, read in run for name in read}
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
        now = {name: _leaves(module) for name, module in _own_modules() if name in modules}
        for change in self._found:
            module = now.get(change.module)
            if module is not None and module.get(change.path, _NOTHING) == change.after:
                yield change


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


# A kernel with frameworks has thousands of modules, and few are the user's.
_others: dict[str, ReferenceType[ModuleType]] = {}


def _nothing() -> None:
    return None


def _own_modules() -> Iterator[tuple[str, ModuleType]]:
    modules = sys.modules.copy().items()
    for name, module in [(n, m) for n, m in modules if _others.get(n, _nothing)() is not m]:
        if type(module) is not ModuleType or name == "__main__":
            continue
        names = vars(module)
        if is_installed(names) or root_of(names) in sys.stdlib_module_names:
            _others[name] = ref(module)
        elif _is_complete(names):
            yield name, module


def is_users(module: object) -> bool:
    """Return whether a module is of a file of the user's."""
    if type(module) is not ModuleType:
        return False
    names = vars(module)
    theirs = is_installed(names) or root_of(names) in sys.stdlib_module_names
    return not theirs and str(names.get("__file__") or "").endswith(".py")


def _is_complete(names: Mapping[str, Any]) -> bool:
    """Return whether it is a file's that has run; one that is being imported asks itself."""
    of_file = str(names.get("__file__") or "").endswith(".py")
    return of_file and not getattr(names.get("__spec__"), "_initializing", False)


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
