"""What a statement reads while it runs: by its own text, and by the user's code that it calls.

Statements are looked at by their text, what they call by the names in its compiled code. Names
are looked up among the objects that they stand for at present, so that no alias hides one.
"""

from __future__ import annotations

import ast
import builtins
import sys
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Literal

from distrain_nb.observed.launcher_variables import asked_variable, is_launchers
from distrain_nb.observed.world_functions import ASKED
from distrain_nb.program.notebook.code_objects import codes_in, global_names
from distrain_nb.program.notebook.process_objects import is_bound, name_of
from distrain_nb.program.python.nodes import at_once
from distrain_nb.worker.fingerprint import own_name
from distrain_nb.worker.rank.caches import CACHED

if TYPE_CHECKING:
    from distrain_nb.program.notebook.history import Statement
    from distrain_nb.program.notebook.local_modules import OwnModule, OwnModules


Name = tuple["OwnModule", str]
NOTHING = object()
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MADE_WITH = ("__init__", "__new__", "__post_init__")
_ASKED = {f"{module}.{name}" for module, names in ASKED.items() for name in names}
# What asks for the machine, by the last part of its name.
MACHINE = {
    *("is_available", "device_count", "cpu_count", "process_cpu_count", "sched_getaffinity"),
    *("current_device", "current_accelerator", "get_device_name", "get_device_capability"),
    *("get_device_properties", "is_bf16_supported", "mem_get_info", "gethostname", "getpid"),
    *("list_physical_devices", "list_logical_devices", "get_visible_devices"),
    *("local_devices", "local_device_count", "default_backend"),
}
ASKS_MACHINE = MACHINE | {"environ", "getenv"}


def asks_machine(words: frozenset[str]) -> bool:
    """Return whether a statement with these words asks its machine or its environment."""
    return not ASKS_MACHINE.isdisjoint(words)


@dataclass(frozen=True)
class Dependence:
    """What was asked, and where: the call or variable as it is written, the cell and line."""

    kind: Literal["world", "device"]
    what: str
    where: str


@dataclass
class Reach:
    """What a statement reads.

    `names` are in its text, `inner` in code that it calls, `passed` in functions that it gives to
    others; `attributes` are all that are looked up, by their own names. `knows` is an object of one
    process that it takes from a package, `asks` what it asks for the world as far as texts tell,
    `passed_asks` what functions ask that it gives to others.
    """

    names: dict[Name, None] = field(default_factory=dict)
    inner: dict[Name, None] = field(default_factory=dict)
    passed: dict[Name, None] = field(default_factory=dict)
    attributes: set[str] = field(default_factory=set)
    knows: str = ""
    asks: list[str] = field(default_factory=list)
    passed_asks: list[str] = field(default_factory=list)

    @property
    def machine(self) -> str:
        """What asks for the machine."""
        return next(iter(sorted(MACHINE & self.attributes)), "")


@dataclass
class Reaches:
    """Looks at statements, each once."""

    modules: OwnModules
    _known: dict[Statement, Reach] = field(default_factory=dict)

    def of(self, statement: Statement, module: OwnModule) -> Reach:
        """Return the names that a statement of a module reads."""
        if statement not in self._known:
            self._known[statement] = self.within(statement.node, module)
        return self._known[statement]

    def within(self, node: ast.AST, module: OwnModule) -> Reach:
        """Return the names that a part of a module's text reads."""
        return _Look(self.modules, module).at(node)

    def reads(self, statement: Statement, name: str) -> bool:
        """Return whether a statement of the notebook, or code that it calls, reads a name of it."""
        notebook = self.modules.notebook
        reach = self.of(statement, notebook)
        return (notebook, name) in {**reach.names, **reach.inner}

    def read_inside(self, statement: Statement) -> set[str]:
        """Return the names of the notebook that functions read which a statement calls."""
        notebook = self.modules.notebook
        return {name for module, name in self.of(statement, notebook).inner if module is notebook}

    def reads_modules(self, node: ast.AST) -> bool:
        """Return whether an expression of the notebook, or code that it calls, reads a module
        beside it."""
        notebook = self.modules.notebook
        reach = self.within(node, notebook)
        return any(module is not notebook for module, _ in {**reach.names, **reach.inner})


@dataclass
class _Look:
    modules: OwnModules
    module: OwnModule
    reach: Reach = field(default_factory=Reach)
    _entered: set[int] = field(default_factory=set)

    def at(self, tree: ast.AST) -> Reach:
        for node in at_once(tree) if isinstance(tree, _DEFINITIONS) else ast.walk(tree):
            if isinstance(node, ast.Constant):
                self._text(node.value)
            elif isinstance(node, ast.Call):
                self._enter(resolve(node.func, self.module.namespace))
                self._look_up(node)
                inside = _Look(self.modules, self.module)
                for argument in (*node.args, *(k.value for k in node.keywords)):
                    function = resolve(argument, self.module.namespace)
                    if type(function) is FunctionType:
                        inside._enter(function)
                self.reach.passed |= inside.reach.inner
                self.reach.passed_asks += inside.reach.asks
            elif isinstance(node, _DEFINITIONS):
                self._define(node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.reach.attributes.add(node.id)
                if node.id in self.module.namespace:
                    self.reach.names[self.module, node.id] = None
                    self._imported(self.module.namespace[node.id])
            elif isinstance(node, ast.Attribute):
                base = resolve(node.value, self.module.namespace)
                # A model's `train()` trains nothing, nor does what `tf.train` holds.
                if node.attr != "train" or not (
                    hasattr(type(base), "named_parameters")
                    or isinstance(getattr(base, "train", None), ModuleType)
                ):
                    self.reach.attributes.add(node.attr)
                self._member(base, node.attr, node, self.reach.names)
        return self.reach

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Follow a definition: it calls its decorators, and what its bases do when a class is made
        of them."""
        for decorator in node.decorator_list:
            self._enter(resolve(decorator, self.module.namespace))
        for base in getattr(node, "bases", ()):
            cls = resolve(base, self.module.namespace)
            self._enter(type(cls))
            self._enter(member(cls, "__init_subclass__"))
        for keyword in getattr(node, "keywords", ()):
            self._enter(resolve(keyword.value, self.module.namespace))

    def _text(self, constant: object) -> None:
        asked = asked_variable(constant)
        if asked:
            self.reach.asks.append(asked)

    def _member(
        self, base: Any, name: str, written: ast.AST | str, names: dict[Name, None]
    ) -> None:
        found = member(base, name)
        # Lightning's `rank_zero_only.rank` was read as Lightning was imported
        if is_bound(found) or (type(base) is FunctionType and is_launchers(name.upper())):
            text = written if isinstance(written, str) else ast.unparse(written)
            self.reach.knows = self.reach.knows or text
        own = self.modules.of(base.__name__) if isinstance(base, ModuleType) else None
        if own:
            names[own, name] = None
        elif isinstance(found, property):
            self._enter(found.fget)

    def _imported(self, value: Any) -> None:
        """Add the definition of what the module has by an import."""
        own = self.modules.of(_module_of(value))
        name = own_name(value)
        if own not in (None, self.module) and own.namespace.get(name) is value:
            self.reach.names[own, name] = None

    def _look_up(self, call: ast.Call) -> None:
        """Add what `getattr` takes by a text that is written, and the names that it and `vars` may
        take from a module otherwise."""
        function = resolve(call.func, self.module.namespace)
        if function not in (vars, getattr) or not call.args:
            return
        base = resolve(call.args[0], self.module.namespace)
        own = self.modules.of(base.__name__) if isinstance(base, ModuleType) else None
        key = call.args[1] if call.args[1:] else None
        if function is getattr and isinstance(key, ast.Constant):
            self.reach.attributes.add(str(key.value))
            self._member(base, str(key.value), call, self.reach.names)
        elif own:
            self.reach.names |= {(own, name): None for name in own.history.bindings}

    # -- what is called -----------------------------------------------------------------------

    def _enter(self, target: Any) -> None:
        while isinstance(target, (partial, CACHED)):
            target = target.func if isinstance(target, partial) else target.__wrapped__
        if name_of(target) in _ASKED:
            self.reach.asks.append(f"{getattr(target, '__name__', '')}()")
        if id(target) in self._entered or self.modules.of(_module_of(target)) is None:
            return
        self._entered.add(id(target))
        if type(target) is FunctionType:
            self._function(target)
        elif isinstance(target, type):
            self._class(target)

    def _class(self, cls: type) -> None:
        """Look at what runs when an object is made, with the methods that this calls."""
        methods: dict[str, list[FunctionType]] = {}
        for base in cls.__mro__:
            if self.modules.of(base.__module__):
                for name, value in vars(base).items():
                    function = getattr(value, "__func__", getattr(value, "fget", value))
                    if type(function) is FunctionType:
                        methods.setdefault(name, []).append(function)
        waiting = list(_MADE_WITH)
        while waiting:
            for function in methods.pop(waiting.pop(), ()):
                waiting += self._function(function)

    def _function(self, function: FunctionType) -> set[str]:
        """Look at a function's code; gives every name that it looks up."""
        module = self.modules.of(function.__module__)
        if module is None:
            return set()
        codes = [*codes_in(function.__code__)]
        names = {name for code in codes for name in code.co_names}
        trainer = any("trainer" in name.lower() for code in codes for name in code.co_varnames)
        self.reach.attributes |= names if trainer else names - {"train"}
        for text in (constant for code in codes for constant in code.co_consts):
            self._text(text)
        for name in sorted(global_names(function.__code__) & module.namespace.keys()):
            self.reach.inner[module, name] = None
            value = module.namespace[name]
            self._enter(value)
            if isinstance(value, ModuleType):
                for attribute in sorted(names & vars(value).keys()):
                    self._member(value, attribute, f"{name}.{attribute}", self.reach.inner)
                    self._enter(vars(value)[attribute])
        for cell in function.__closure__ or ():
            try:
                self._enter(cell.cell_contents)
            except ValueError:  # it is empty
                continue
        return names


def _module_of(target: Any) -> str | None:
    return target.__module__ if isinstance(target, (type, FunctionType)) else None


def resolve(node: ast.AST, namespace: Any) -> Any:
    """Return the object that a dotted name stands for at present, or NOTHING; no code runs for
    it."""
    if isinstance(node, ast.Name):
        return namespace.get(node.id, getattr(builtins, node.id, NOTHING))
    if isinstance(node, ast.Attribute):
        return member(resolve(node.value, namespace), node.attr)
    return NOTHING


def member(base: Any, name: str) -> Any:
    """Return the attribute of a module, a class or an object's class by its name."""
    if base is NOTHING or is_bound(base):
        return NOTHING
    if isinstance(base, ModuleType):
        return vars(base).get(name, sys.modules.get(f"{base.__name__}.{name}", NOTHING))
    cls = base if isinstance(base, type) else type(base)
    found = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), NOTHING)
    if isinstance(found, cached_property):
        return property(found.func)
    return getattr(found, "__func__", found)
