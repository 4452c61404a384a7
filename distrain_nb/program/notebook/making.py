"""The statements that made an object what it is, and whether they can run again in every rank."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from distrain_nb.observed.objects import CHANGING, is_model, memory_of
from distrain_nb.program.python.nodes import at_once
from distrain_nb.program.python.scopes import bound_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.program.notebook.history import Executed, Statement
    from distrain_nb.program.notebook.local_modules import OwnModule
    from distrain_nb.program.notebook.reach import Reaches
    from distrain_nb.program.notebook.seen_reads import SeenReads


# Methods that set an object up: as statements of their own they run again with it.
_SETS_UP = re.compile(
    r"(add|set|register|remove|append|extend|update|insert|pop|clear|discard|sort|reverse|apply|to"
    r"|cuda|cpu|half|float|double|bfloat16|eval|train|compile|freeze|unfreeze|include|mount|init"
    r"|configure|enable|disable|attach|merge|build|load|gradient_checkpointing)(_\w+)?"
    r"|\w*[a-z]_|__set\w+__|(set|add|remove)[A-Z]\w*"
)
# Methods that train: what they change can't be had by running them again.
_WORKS = {
    *("step", "fit", "train", "backward", "manual_backward", "train_step", "training_step"),
    *("train_on_batch", "minimize", "partial_fit", "learn", "apply_gradients", "train_batch"),
    *("train_epoch", "train_one_epoch"),
}
# Methods that give a model its weights, which travel with it.
_LOADS = {"load_state_dict", "load_weights", "set_weights"}
_MEASURES = {
    *("evaluate", "predict", "predict_proba", "validate", "test", "score", "generate", "inference")
}
_PLACES = (ast.Attribute, ast.Subscript)
_SETTERS = ("setattr", "delattr")


@dataclass(frozen=True)
class Making:
    """`chain`: the statements that make an object, in order.

    `work` is one of them that trains, `result` one that trains or evaluates: if the object
    is a number, it is a result.
    """

    chain: tuple[Executed, ...]
    work: Executed | None = None
    result: Executed | None = None


@dataclass
class Makings:
    """Answers for the names of one module, as they are during one capture."""

    module: OwnModule
    reaches: Reaches
    seen: SeenReads
    _known: dict[str, Making | None] = field(default_factory=dict)

    def of(self, name: str) -> Making | None:
        """Return how a name was made; None where no statement did.

        The statement that bound it, with earlier ones whose value it takes, and all since the first
        of them that was seen to fill it or that sets it up by its name.
        """
        if name not in self._known:
            self._known[name] = self._making(name)
        return self._known[name]

    def _making(self, name: str) -> Making | None:
        history = self.module.history
        latest = self.seen.replaced(name, history.executed)
        latest = latest or next(iter(history.of(name)), None)
        latest = latest or next(iter(self.fillings(name)), None)
        if latest is None or latest.statement.is_import or latest.statement.is_definition:
            return None
        chain = [latest]
        if name in latest.statement.binds:
            chain = history.built_on(name, latest, lambda statement: self._reads(statement, name))
        fillings = self.fillings(name, chain[0])
        before = self._used_before(name, chain[0], fillings)
        every = (*chain, *self._set_up_since(name, chain[0]), *before, *fillings)
        by_place = {executed.at: executed for executed in every}
        chain = [by_place[at] for at in sorted(by_place)]
        work = next((p for p in chain if self.works(p.statement)), None)
        result = work
        value = self.module.namespace.get(name)
        if work and self.seen.gives(work.statement, name) and not is_model(value):
            work = None  # it gives the same when it runs again
        return Making(
            tuple(chain),
            work,
            result or next((p for p in chain if _evaluates(p.statement)), None),
        )

    def _reads(self, statement: Statement, name: str) -> bool:
        """Return whether functions that a statement calls read a name."""
        return (self.module, name) in self.reaches.of(statement, self.module).inner

    def fillings(self, name: str, since: Executed | None = None) -> list[Executed]:
        """Return statements that asked for the world, while the object of that name changed.

        One that trains changes much, and what it asks is most often whether to print.
        """
        replay = self.seen.replay
        tried = replay.makers(name) if replay and replay.is_proven(name) else []
        if name not in self.seen.observer.filled() and not tried:
            return []
        is_trained = is_model(self.module.namespace.get(name))
        later = (p for p in self.module.history.executed if since is None or p.at > since.at)
        return [
            p
            for p in later
            if not (p.failed or p.statement.is_import)
            and self.seen.fills(p.statement, name)
            and not (self.works(p.statement) and (is_trained or p not in tried))
        ]

    def uses(self, statement: Statement) -> bool:
        """Return whether a statement trains or evaluates, so that what it changes is no setting."""
        return self.works(statement) or _evaluates(statement)

    def worked_on(self, name: str, making: Making) -> Executed | None:
        """Return the last statement since that trained or otherwise changed what a name stands
        for."""
        for executed in reversed(self.module.history.executed):
            if executed.at <= making.chain[0].at:
                return None
            if executed in making.chain or executed.statement.is_definition:
                continue
            if self.works(executed.statement) and name in self._reached(executed):
                return executed
        return None

    def works(self, statement: Statement) -> bool:
        """Return whether a statement trains, writes or the like, also through the user's
        functions."""
        return not _WORKS.isdisjoint(self.reaches.of(statement, self.module).attributes)

    def _set_up_since(self, name: str, latest: Executed) -> Iterator[Executed]:
        """Yield statements that changed the object; also through what it gave: argument groups."""
        memory = memory_of(self.module.namespace.get(name))
        names = {name, *(self._names_by_memory[memory] if memory else ())}
        is_changed = bool(self.seen.observer.changes.of(name))
        every = self.module.history.executed if is_changed else self._mentioning(names)
        by_place = {executed.at: executed for executed in every if executed.at > latest.at}
        waiting = sorted(by_place)
        while waiting:
            executed = by_place[heappop(waiting)]
            statement = executed.statement
            if executed.failed:
                continue
            sets_up = not names.isdisjoint(statement.mentions()) and self._sets_up(statement, names)
            other = statement.is_import or statement.is_definition
            changed = not other and self.seen.changed(statement, name)
            if sets_up or (changed and not self.uses(statement)):
                if (
                    isinstance(statement.node, ast.Assign)
                    and root_of(statement.node.value) in names
                ):
                    for later in self._mentioning(statement.binds - names):
                        if later.at > executed.at and later.at not in by_place:
                            by_place[later.at] = later
                            heappush(waiting, later.at)
                    names |= statement.binds
                yield executed

    @cached_property
    def _names_by_memory(self) -> dict[int, list[str]]:
        """The names of arrays, tensors and views by where their memory begins."""
        names: dict[int, list[str]] = {}
        for name, value in [*self.module.namespace.items()]:
            names.setdefault(memory_of(value), []).append(name)
        return names

    @cached_property
    def _mentions(self) -> dict[str, list[Executed]]:
        """The statements by the names that they mention."""
        mentions: dict[str, list[Executed]] = {}
        for executed in self.module.history.executed:
            for name in executed.statement.mentions():
                mentions.setdefault(name, []).append(executed)
        return mentions

    def _mentioning(self, names: Iterable[str]) -> Iterator[Executed]:
        return (executed for name in names for executed in self._mentions.get(name, ()))

    def _used_before(
        self, name: str, latest: Executed, fillings: list[Executed]
    ) -> Iterator[Executed]:
        """Yield what used an object before it knew the world, when nobody looked what it changed:
        `registry.on(f)`, `set_up(config)`."""
        for executed in self.module.history.executed if fillings else ():
            node, at = executed.statement.node, executed.at
            called = node.value if isinstance(node, ast.Expr) else None
            if not isinstance(called, ast.Call) or not latest.at < at < fillings[0].at:
                continue
            passive = executed.failed or ast.unparse(called.func) in ("print", "display")
            mentioned = name in executed.statement.mentions()
            if mentioned and not (passive or self.uses(executed.statement)):
                yield executed

    def _sets_up(self, statement: Statement, names: set[str], depth: int = 2) -> bool:
        """Return whether a statement plainly changes the object, in a way that can be repeated;
        also by the user's functions, so many calls deep."""
        if statement.is_definition:
            return any(root_of(d) in names for d in getattr(statement.node, "decorator_list", ()))
        if any(self.stores(statement, name) for name in names):
            return True
        helped = self._helped(statement, names) if depth else ()
        if any(self._sets_up(inner, {name}, depth - 1) for inner, name in helped):
            return True
        call = statement.node.value if isinstance(statement.node, ast.Expr) else None
        called = getattr(getattr(call, "func", None), "value", None)
        for changed, method in changed_by(at_once(statement.node)):
            name = root_of(changed)
            value = self.module.namespace.get(name)
            loads = method in _LOADS and is_model(value)
            fills = called is changed and isinstance(value, CHANGING)
            sets = fills or _SETS_UP.fullmatch(method)
            if name in names and method and sets and not loads:
                return True
        return False

    def _helped(self, statement: Statement, names: set[str]) -> Iterator[tuple[Statement, str]]:
        """Yield the statements of a function of the user that a statement calls for an object, with
        the name that the object has there: `lg.addHandler(h)` and `lg`, by `add(log)`."""
        call = statement.node.value if isinstance(statement.node, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return
        defined = next(iter(self.module.history.of(call.func.id)), None)
        function = defined.statement.node if defined else None
        if not isinstance(function, ast.FunctionDef):
            return
        arguments = dict(zip((a.arg for a in function.args.args), call.args, strict=False))
        arguments |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        for parameter, value in arguments.items():
            if isinstance(value, ast.Name) and value.id in names:
                yield from ((replace(statement, node=part), parameter) for part in function.body)

    def stores(self, statement: Statement, name: str) -> bool:
        """Return whether a statement stores something in an object itself, or in what it loops
        over, as `for group in optimizer.param_groups: group["lr"] *= 2` does."""
        of_loops = {
            target: {n.id for n in ast.walk(loop.iter) if isinstance(n, ast.Name)}
            for loop in at_once(statement.node)
            if isinstance(loop, ast.For) and not self.uses(statement)
            for target in bound_names([loop.target])
        }
        nodes = [*at_once(statement.node)]
        places = [place for place, method in changed_by(nodes) if not method]
        places += [node.target for node in nodes if isinstance(node, ast.AugAssign)]
        return any(name in of_loops.get(root, {root}) for root in map(root_of, places))

    def _reached(self, executed: Executed) -> set[str]:
        """Return the names that a statement reads, and those that their makers read in turn."""
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


def changed_by(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, str]]:
    """Yield what nodes may change: `a.b` of `a.b = 1` and of `setattr(a, "b", 1)`, and `a` of
    `a.append(1)`, with the method's name."""
    for node in nodes:
        if isinstance(node, _PLACES) and not isinstance(node.ctx, ast.Load):
            yield node, ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.value, node.func.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in _SETTERS and node.args:
            owner, *names = node.args
            key = names[0].value if names and isinstance(names[0], ast.Constant) else ""
            yield (ast.Attribute(owner, str(key)) if key else owner), ""


def _evaluates(statement: Statement) -> bool:
    return not _MEASURES.isdisjoint(statement.words()) and any(
        isinstance(node, ast.Attribute) and node.attr in _MEASURES
        for node in at_once(statement.node)
    )


def root_of(node: ast.AST) -> str:
    """Return `a` of `a.b[0].c()`, and of `vars(a)["b"]`."""
    while isinstance(node, (*_PLACES, ast.Call)):
        if isinstance(node, ast.Call):
            by_name = isinstance(node.func, ast.Name) and node.func.id in ("vars", "getattr")
            node = node.args[0] if by_name and node.args else node.func
        else:
            node = node.value
    return node.id if isinstance(node, ast.Name) else ""
