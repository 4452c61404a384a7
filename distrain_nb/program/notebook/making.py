"""The statements that made an object what it is, and whether they can run again in every rank."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from distrain_nb.program.notebook.history import Executed, Statement
    from distrain_nb.program.notebook.own_modules import OwnModule, OwnModules
    from distrain_nb.program.notebook.seen import SeenReads

# Methods that set an object up: as statements of their own they run again with it.
_SETS_UP = re.compile(
    r"(add|set|register|remove|append|extend|update|insert|pop|clear|discard|sort|reverse|apply|to"
    r"|cuda|cpu|half|float|double|bfloat16|eval|train|compile|freeze|unfreeze|include|mount|init"
    r"|configure|enable|disable|attach|merge|build|load|gradient_checkpointing)(_\w+)?"
    r"|\w*[a-z]_|__set\w+__|(set|add|remove)[A-Z]\w*"
)
# Methods that train: what they change can't be had by running them again.
_WORKS = re.compile(
    r"step|fit|train|backward|manual_backward|train_step|training_step|train_on_batch|minimize"
    r"|partial_fit|learn|apply_gradients|train_batch|train_epoch|train_one_epoch"
)
# Methods that give a model its weights, which travel with it.
_LOADS = re.compile(r"load_state_dict|load_weights|set_weights")
_MEASURES = re.compile(r"evaluate|predict|predict_proba|validate|test|score|generate|inference")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_PLACES = (ast.Attribute, ast.Subscript)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Making:
    """`chain`: the statements that make an object, in order.

    `work` is one of them that trains, `result` one that trains, loops or evaluates: if the object
    is a number, it is a result.
    """

    chain: tuple[Executed, ...]
    work: Executed | None = None
    result: Executed | None = None


@dataclass
class Makings:
    """Answers for the names of one module, as they are during one capture."""

    module: OwnModule
    modules: OwnModules
    seen: SeenReads
    _known: dict[str, Making | None] = field(default_factory=dict)
    _called: dict[Statement, list[ast.FunctionDef]] = field(default_factory=dict)

    def of(self, name: str) -> Making | None:
        """How a name was made; None where no statement did."""
        if name not in self._known:
            self._known[name] = self._making(name)
        return self._known[name]

    def _making(self, name: str) -> Making | None:
        history = self.module.history
        latest = next(iter(history.of(name)), None) or self._setter(name)
        latest = latest or next(iter(self.fillings(name)), None)
        if latest is None or latest.statement.is_import or latest.statement.is_definition:
            return None
        chain = [latest]
        while name in latest.statement.binds and _takes(name, chain[0]):
            earlier = history.of(name, before=chain[0].at)
            if not earlier:
                break
            chain.insert(0, earlier[0])
        since = {p.at: p for p in (*self._set_up_since(name, latest), *self.fillings(name, latest))}
        chain += [since[at] for at in sorted(since)]
        work = next((p for p in chain if self.works(p.statement)), None)
        return Making(tuple(chain), work, work or next((p for p in chain if _measures(p)), None))

    def fillings(self, name: str, since: Executed | None = None) -> list[Executed]:
        """Statements that asked for the world, while the object of that name changed.

        One that trains changes much, and what it asks is most often whether to print.
        """
        if name not in self.seen.filled():
            return []
        later = (p for p in self.module.history.executed if since is None or p.at > since.at)
        return [
            p
            for p in later
            if self.seen.fills(p.statement, name)
            and not (p.statement.is_import or p.statement.is_definition or self.works(p.statement))
        ]

    def _set_up_since(self, name: str, latest: Executed) -> Iterator[Executed]:
        """Statements that changed the object; also through what it gave: argument groups."""
        names = {name}
        for executed in self.module.history.executed:
            statement = executed.statement
            if executed.at <= latest.at:
                continue
            mentioned = names & statement.mentions()
            if (
                (mentioned and self._sets_up(statement, names))
                or self._set_inside(statement, names)
                or self._was_changed(statement, name)
            ):
                if isinstance(statement.node, ast.Assign) and _root(statement.node.value) in names:
                    names |= statement.binds
                yield executed

    def _was_changed(self, statement: Statement, name: str) -> bool:
        """Whether a statement was seen to change the object, and not by training or measuring."""
        if statement.is_import or statement.is_definition or not self.seen.changed(statement, name):
            return False
        return not self.uses(statement)

    def uses(self, statement: Statement) -> bool:
        """Whether a statement trains or evaluates, so that what it changes is no setting."""
        return self.works(statement) or _evaluates(statement.node)

    def worked_on(self, name: str, making: Making) -> Executed | None:
        """The last statement since that trained or otherwise changed what a name stands for."""
        for executed in reversed(self.module.history.executed):
            if executed.at <= making.chain[0].at:
                return None
            if executed in making.chain or executed.statement.is_definition:
                continue
            if self.works(executed.statement) and name in self._reached(executed):
                return executed
        return None

    def works(self, statement: Statement) -> bool:
        """Whether a statement trains, writes or the like, also through the user's functions."""
        return self._works(statement.node, self.module, set())

    # -- statements ---------------------------------------------------------------------------

    def _setter(self, name: str) -> Executed | None:
        """The statement that called a function which declares the name `global`."""
        late = self.module.history.late_annotations
        setters = {
            executed.statement.node.name
            for executed in self.module.history.executed
            if isinstance(executed.statement.node, _DEFINITIONS)
            and name in executed.statement.names(late).binds - executed.statement.binds
        }
        for executed in reversed(self.module.history.executed):
            calls = () if executed.statement.is_definition else _calls(executed.statement.node)
            if any(isinstance(c.func, ast.Name) and c.func.id in setters for c in calls):
                return executed
        return None

    def _sets_up(self, statement: Statement, names: set[str]) -> bool:
        """Whether a statement changes the object in a way that can be repeated."""
        if statement.is_definition:
            return any(_root(d) in names for d in getattr(statement.node, "decorator_list", ()))
        for node in _walk(statement.node):
            if isinstance(node, _PLACES) and not isinstance(node.ctx, ast.Load):
                if _root(node) in names:
                    return True
            elif isinstance(node, ast.Call) and self._call_sets_up(node, names):
                return True
        return False

    def _set_inside(self, statement: Statement, names: set[str]) -> bool:
        """Whether a statement calls a function of the user that changes what it knows by name."""
        if statement not in self._called:
            calls = () if statement.is_definition else _calls(statement.node)
            self._called[statement] = [f for f in (self._function(c.func) for c in calls) if f]
        return any(
            _changes(f, name, is_model(self.module.namespace.get(name)))
            for f in self._called[statement]
            for name in names
        )

    def _call_sets_up(self, call: ast.Call, names: set[str]) -> bool:
        if isinstance(call.func, ast.Attribute) and _root(call.func) in names:
            value = self.module.namespace.get(_root(call.func))
            return _is_set_up(call.func.attr, is_model(value))
        passed = [a for a in [*call.args, *[k.value for k in call.keywords]] if _is_one(a, names)]
        if not passed:
            return False
        if isinstance(call.func, ast.Name) and call.func.id in ("setattr", "delattr"):
            return call.args[0] in passed
        function = self._function(call.func)
        of_model = all(is_model(self.module.namespace.get(_root(a))) for a in passed)
        return function is not None and any(
            _changes(function, parameter, of_model)
            for parameter in _parameters(function, call, passed)
        )

    def _function(self, node: ast.expr) -> ast.FunctionDef | None:
        """The user's own function that an expression names."""
        target: Any = None
        if isinstance(node, ast.Name):
            target = self.module.namespace.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            base = self.module.namespace.get(node.value.id)
            target = getattr(base, "__dict__", {}).get(node.attr)
        if not isinstance(target, FunctionType):
            return None
        module = self.modules.of(target.__module__)
        found = module.definition(target.__qualname__) if module else None
        return found[1] if found and isinstance(found[1], ast.FunctionDef) else None

    # -- work ---------------------------------------------------------------------------------

    def _works(self, node: ast.AST, module: OwnModule, seen: set[str]) -> bool:
        for call in _calls(node):
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if _WORKS.fullmatch(method) and not _sets_mode(call, module.namespace):
                return True
            target = module.namespace.get(call.func.id) if isinstance(call.func, ast.Name) else None
            name = getattr(target, "__qualname__", "")
            inner = self.modules.of(getattr(target, "__module__", None)) if target else None
            found = inner.definition(name) if inner and isinstance(target, FunctionType) else None
            if inner and found and name not in seen:
                seen.add(name)
                if self._works(found[1], inner, seen):
                    return True
        return False

    def _reached(self, executed: Executed) -> set[str]:
        """The names that a statement reads, and those that their makers read in turn."""
        late = self.module.history.late_annotations
        reached: set[str] = set()
        waiting = list(executed.statement.names(late).needs)
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            before = self.module.history.of(name, before=executed.at)
            if before:
                waiting += before[0].statement.names(late).needs
        return reached


def _measures(executed: Executed) -> bool:
    node = executed.statement.node
    return isinstance(node, _LOOPS) or _evaluates(node)


def _evaluates(node: ast.stmt) -> bool:
    methods = {c.func.attr for c in _calls(node) if isinstance(c.func, ast.Attribute)}
    return any(map(_MEASURES.fullmatch, methods))


def _takes(name: str, executed: Executed) -> bool:
    use = executed.statement.names().needs.get(name)
    return use is not None and use.at_once


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A statement's nodes, without the bodies of functions and classes."""
    yield node
    if not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    inside = node.body if isinstance(node, _DEFINITIONS) else [node]
    yield from (n for top in inside for n in _walk(top) if isinstance(n, ast.Call))


def _root(node: ast.AST) -> str:
    """`a` of `a.b[0].c()`."""
    while isinstance(node, (*_PLACES, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_one(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _parameters(
    function: ast.FunctionDef, call: ast.Call, passed: Sequence[ast.expr]
) -> Iterator[str]:
    """The function's names for what a call passes."""
    names = [a.arg for a in [*function.args.posonlyargs, *function.args.args]]
    yield from (name for name, given in zip(names, call.args, strict=False) if given in passed)
    yield from (k.arg for k in call.keywords if k.value in passed and k.arg)


def is_model(value: object) -> bool:
    """Whether an object is a model, whose weights travel where it is made again."""
    return hasattr(value, "named_parameters") or hasattr(value, "trainable_variables")


def _is_set_up(method: str, of_model: bool) -> bool:
    return bool(_SETS_UP.fullmatch(method)) and not (of_model and bool(_LOADS.fullmatch(method)))


def _changes(function: ast.FunctionDef, parameter: str, of_model: bool) -> bool:
    """Whether a function sets attributes or items of what it is given, or sets it up."""
    for node in ast.walk(function):
        if isinstance(node, _PLACES) and not isinstance(node.ctx, ast.Load):
            if _root(node) == parameter:
                return True
        elif isinstance(node, ast.Call):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if _root(node.func) == parameter and _is_set_up(method, of_model):
                return True
            setter = isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr")
            if setter and _root(node.args[0]) == parameter:
                return True
    return False


def _sets_mode(call: ast.Call, namespace: Mapping[str, Any]) -> bool:
    """`model.train()` and `model.train(False)`, which train nothing; a trainer's does."""
    if call.func.attr != "train" or len(call.args) > 1 or call.keywords:  # type: ignore[attr-defined]
        return False
    root = _root(call.func)
    if root in namespace:
        return hasattr(type(namespace[root]), "named_parameters")
    return "trainer" not in ast.unparse(call.func).lower()
