"""Code as the checks see it: its calls by full names, and what stands around each."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Function = ast.FunctionDef | ast.AsyncFunctionDef
LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)

# What a name means by custom, where the code that is seen does not say.
_CUSTOMARY = {
    "hvd": "horovod",
    "tf": "tensorflow",
    "keras": "tensorflow.keras",
    "dist": "torch.distributed",
    "wds": "webdataset",
    "DDP": "torch.nn.parallel.DistributedDataParallel",
    "FSDP": "torch.distributed.fsdp.FullyShardedDataParallel",
}


@dataclass(frozen=True, eq=False)
class Code:
    """A parsed program; all of it is read as one, whatever function or cell it stands in."""

    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """What each imported name stands for: `hvd` is `horovod.torch`."""
        found = dict(_CUSTOMARY)
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {a.asname or _top(a.name): _meant(a) for a in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        return found

    @cached_property
    def modules(self) -> Mapping[str, int]:
        """The dotted names that imports bring, each with the line where it is first imported."""
        found: dict[str, int] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found.setdefault(alias.name, node.lineno)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found.setdefault(f"{node.module}.{alias.name}", node.lineno)
        return found

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """The functions and methods that the code defines, by their plain names."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return {node.name: node for node in self.nodes if isinstance(node, kinds)}

    @cached_property
    def classes(self) -> Mapping[str, ast.ClassDef]:
        return {node.name: node for node in self.nodes if isinstance(node, ast.ClassDef)}

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        found = (node for node in self.nodes if isinstance(node, ast.Call))
        return tuple(sorted(found, key=lambda call: (call.lineno, call.col_offset)))

    def name(self, node: ast.AST) -> str:
        """The full dotted name: `horovod.torch.init`; calls inside are `()`, the unknown `?`."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self.name(node.value)}.{node.attr}"
        if isinstance(node, ast.Call):
            return f"{self.name(node.func)}()"
        return f"{self.name(node.value)}[]" if isinstance(node, ast.Subscript) else "?"

    def called(self, *lasts: str, start: str = "") -> list[ast.Call]:
        """The calls whose full name begins with `start` and ends in one of `lasts`, in order."""
        return [
            call
            for call in self.calls
            if last(self.name(call.func)) in lasts and self.name(call.func).startswith(start)
        ]

    def body_of(self, call: ast.Call) -> Function | None:
        """What a call runs, where the code defines it: a function, a method, a constructor."""
        name = last(self.name(call.func))
        if name in self.classes:
            body = self.classes[name].body
            return next((f for f in body if isinstance(f, Function) and f.name == "__init__"), None)
        return self.functions.get(name)

    def runs(self, node: ast.AST) -> bool:
        """Whether a node is at the top or in what the code uses; `main` counts as used."""
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        outer = [o for o, _ in self.around(node) if isinstance(o, definitions)]
        return not outer or outer[-1].name == "main" or self.says(outer[-1].name)

    def calls_of(self, function: str) -> list[ast.Call]:
        """The calls of a function or method that the code defines."""
        return [call for call in self.calls if last(self.name(call.func)) == function]

    def around(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Each node around this one, from inside out, with its child that holds this one."""
        while node in self.parents:
            yield self.parents[node], node
            node = self.parents[node]

    def conditions(self, node: ast.AST) -> Iterator[ast.expr]:
        """The tests on which it depends whether a node runs, as far as it is not called."""
        for outer, child in self.around(node):
            if isinstance(outer, (ast.If, ast.IfExp, ast.While)) and child is not outer.test:
                yield outer.test
            elif isinstance(outer, ast.BoolOp):
                yield from outer.values[: outer.values.index(child)]  # type: ignore[arg-type]
            elif isinstance(outer, ast.Match) and child is not outer.subject:
                yield outer.subject
            for before in preceding(outer, child):
                if isinstance(before, ast.If) and leaves(before.body[-1]):
                    yield before.test

    def on_every_way(
        self, node: ast.AST, holds: Callable[[ast.AST], bool], seen: frozenset[str] = frozenset()
    ) -> bool:
        """Whether something holds for a node, or for all calls of the function it stands in."""
        if holds(node):
            return True
        function = self.function_of(node)
        if function is None or function.name in seen:
            return False
        calls, seen = self.calls_of(function.name), seen | {function.name}
        return bool(calls) and all(self.on_every_way(call, holds, seen) for call in calls)

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function that a node stands in."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return next((outer for outer, _ in self.around(node) if isinstance(outer, kinds)), None)

    def statement_of(self, node: ast.AST) -> ast.AST:
        """The innermost statement that an expression stands in."""
        return next(outer for outer, _ in self.around(node) if isinstance(outer, ast.stmt))

    def set_to(self, name: ast.expr) -> list[ast.expr]:
        """What a name is set to anywhere."""
        text, nodes = ast.unparse(name), (n for n in self.nodes if isinstance(n, ast.Assign))
        return [node.value for node in nodes if text in map(ast.unparse, node.targets)]

    def apart(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether two nodes stand in different arms of a condition, so that one of them runs."""
        arms = {outer: _arm(outer, child) for outer, child in self.around(one)}
        pairs = ((arms.get(outer), _arm(outer, child)) for outer, child in self.around(other))
        return any(arm and its and arm != its for arm, its in pairs)

    def uses(self, module: str) -> bool:
        """Whether a module, or one inside it, is imported."""
        return any(f"{name}.".startswith(f"{module}.") for name in self.modules)

    def says(self, attribute: str) -> bool:
        """Whether an attribute or name is written anywhere."""
        return any(
            (isinstance(node, ast.Attribute) and node.attr == attribute)
            or (isinstance(node, ast.Name) and node.id == attribute)
            for node in self.nodes
        )

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The strings that are written out, the fixed parts of f-strings included."""
        constants = (node.value for node in self.nodes if isinstance(node, ast.Constant))
        return tuple(value for value in constants if isinstance(value, str))


def last(name: str) -> str:
    """`init` of `horovod.torch.init`."""
    return name.rpartition(".")[2]


def given(call: ast.Call) -> list[ast.expr]:
    """All that a call is given, by position and by name."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    """What a call is given under one of these names."""
    return next((k.value for k in call.keywords if k.arg in names), None)


def is_constant(node: ast.expr | None, value: object) -> bool:
    """Whether a node writes out True, False or None."""
    return isinstance(node, ast.Constant) and node.value is value


def preceding(outer: ast.AST, child: ast.AST) -> list[ast.stmt]:
    """The statements that stand before a child in its own block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(outer, name, None)
        if isinstance(block, list) and child in block:
            return block[: block.index(child)]
    return []


def bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target that a node binds, with its value; that of a loop is one item of the value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value:
        yield node.target, node.value
    elif isinstance(node, LOOPS):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield node.optional_vars, node.context_expr


def _pairs(target: ast.expr, value: ast.expr) -> Iterable[tuple[ast.expr, ast.expr]]:
    both = (ast.Tuple, ast.List)
    if isinstance(target, both) and isinstance(value, both):
        return zip(target.elts, value.elts)  # noqa: B905
    return [(target, value)]


def parameters(function: Function | ast.Lambda) -> list[str]:
    """The names of a function's parameters by position, without `self`."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] == ["self"] else names


def leaves(statement: ast.stmt) -> bool:
    """Whether code does not go on behind a statement."""
    exits = isinstance(statement, ast.Expr) and "exit" in ast.unparse(statement)
    return exits or isinstance(statement, (ast.Return, ast.Continue, ast.Break, ast.Raise))


def _arm(outer: ast.AST, child: ast.AST) -> object:
    """The arm of a condition that a child of it stands in; None for its test."""
    if isinstance(outer, ast.If):
        return next((arm for arm in ("body", "orelse") if child in getattr(outer, arm)), None)
    if isinstance(outer, ast.Try):
        return child if isinstance(child, ast.ExceptHandler) else "body"
    whole = isinstance(outer, ast.IfExp) and child is not outer.test
    return child if whole or isinstance(child, ast.match_case) else None


def _top(module: str) -> str:
    return module.partition(".")[0]


def _meant(alias: ast.alias) -> str:
    return alias.name if alias.asname else _top(alias.name)
