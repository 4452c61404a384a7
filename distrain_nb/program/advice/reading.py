"""Code as the checks see it: its calls by full names, and what stands around each."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from distrain_nb.program.python.imports import imports_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
_LEAVE = (ast.Return, ast.Continue, ast.Break, ast.Raise)
Node = TypeVar("Node", bound=ast.AST)

# What notebooks call these by custom, where the code that is seen does not say.
CUSTOMARY = {
    "DDP": "torch.nn.parallel.DistributedDataParallel",
    "F": "torch.nn.functional",
    "FSDP": "torch.distributed.fsdp.FullyShardedDataParallel",
    "dist": "torch.distributed",
    "hvd": "horovod.torch",
    "idist": "ignite.distributed",
    "jnp": "jax.numpy",
    "keras": "tensorflow.keras",
    "mp": "torch.multiprocessing",
    "nn": "torch.nn",
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "sns": "seaborn",
    "tf": "tensorflow",
    "wds": "webdataset",
    "xmp": "torch_xla.distributed.xla_multiprocessing",
}


class Binding(NamedTuple):
    """What sets a name: a value or, with a depth, an item of it, and the node that does so; a
    parameter by a `call`."""

    value: ast.expr
    depth: int
    by: ast.AST
    call: ast.Call | None = None


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
        found = dict(CUSTOMARY)
        for node in self.nodes:
            if isinstance(node, ast.Import):
                tops = (alias.name.partition(".")[0] for alias in node.names if not alias.asname)
                found |= {top: top for top in tops}
                found |= {alias.asname: alias.name for alias in node.names if alias.asname}
            elif isinstance(node, ast.ImportFrom):
                found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        return found

    @cached_property
    def modules(self) -> Mapping[str, int]:
        """The dotted names that imports bring, each with the line where it is first imported."""
        imports = reversed(imports_of(self.tree))
        return {dotted: item.line for item in imports for dotted in item.dotted}

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """The functions and methods that the code defines, by their plain names."""
        return {node.name: node for node in self.nodes if isinstance(node, Function)}

    @cached_property
    def classes(self) -> Mapping[str, ast.ClassDef]:
        return {node.name: node for node in self.nodes if isinstance(node, ast.ClassDef)}

    @cached_property
    def spawned(self) -> frozenset[str]:
        """The first parameters of what `mp.spawn` starts: ranks on this machine."""
        started = [s for c in self.called("spawn") for s in (*c.args[:1], keyword(c, "fn")) if s]
        functions = [self.functions.get(self.name(function)) for function in started]
        return frozenset(p.arg for f in functions if f for p in parameters(f)[:1])

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        nodes = (node for node in self.nodes if isinstance(node, ast.Call))
        return tuple(sorted(nodes, key=lambda call: (call.lineno, call.col_offset)))

    @cached_property
    def bindings(self) -> Mapping[str, list[Binding]]:
        """What each name, attribute or item is set to anywhere, by its text: parameters by the
        calls of their functions, `state[]` by what is put under keys of `state`."""
        found: dict[str, list[Binding]] = {}
        for node in self.nodes:
            for target, value in _sets(node):
                for text, part, depth in _spread(target, value, int(isinstance(node, _LOOPS))):
                    found.setdefault(text, []).append(Binding(part, depth, node))
        for call in self.calls:
            for parameter, value in arguments(call, self.body_of(call)).items():
                found.setdefault(parameter.arg, []).append(Binding(value, 0, parameter, call))
        return found

    def name(self, node: ast.AST) -> str:
        """Return the full dotted name: `horovod.torch.init`; calls inside are `()`, the unknown
        `?`."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self.name(node.value)}.{node.attr}"
        if isinstance(node, ast.Call):
            return f"{self.name(node.func)}()"
        return f"{self.name(node.value)}[]" if isinstance(node, ast.Subscript) else "?"

    def called(self, *lasts: str, start: str = "") -> list[ast.Call]:
        """Return the calls whose full name begins with `start` and ends in one of `lasts`, in
        order."""
        return [
            call
            for call in self.calls
            if last(self.name(call.func)) in lasts and self.name(call.func).startswith(start)
        ]

    def body_of(self, call: ast.Call) -> Function | None:
        """Return the definition that a call runs, where the code has it: a function, a method, a
        constructor."""
        name = last(self.name(call.func))
        if name in self.classes:
            body = self.classes[name].body
            return next((f for f in body if isinstance(f, Function) and f.name == "__init__"), None)
        return self.functions.get(name)

    def returned(self, function: Function | None) -> list[ast.expr]:
        """Return the expressions that a function returns; none for a constructor."""
        if function is None or function.name == "__init__":
            return []
        returns = (node for node in ast.walk(function) if isinstance(node, ast.Return))
        mine = (node for node in returns if self.function_of(node) is function)
        return [node.value for node in mine if node.value is not None]

    def target(self, call: ast.Call) -> str:
        """Return the name that what a call makes is given; empty if it has none."""
        outer = self.parents.get(call)
        targets = getattr(outer, "targets", None) or [getattr(outer, "target", None)]
        return ast.unparse(targets[0]) if isinstance(outer, (ast.Assign, ast.AnnAssign)) else ""

    def runs(self, node: ast.AST) -> bool:
        """Return whether a node is at the top or in what the code uses; `main` counts as used."""
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        outer = [o for o, _ in self.around(node) if isinstance(o, definitions)]
        return not outer or outer[-1].name == "main" or self.says(outer[-1].name)

    def around(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield each node around this one, from inside out, with its child that holds this one."""
        while node in self.parents:
            yield self.parents[node], node
            node = self.parents[node]

    def loops(self, node: ast.AST) -> set[ast.AST]:
        """Return the loops around a node."""
        return {outer for outer, _ in self.around(node) if isinstance(outer, (ast.For, ast.While))}

    def conditions(self, node: ast.AST) -> Iterator[ast.expr]:
        """Yield the tests on which it depends whether a node runs, as far as it is not called."""
        for outer, child in self.around(node):
            if isinstance(outer, (ast.If, ast.IfExp, ast.While)) and child is not outer.test:
                yield outer.test
            elif isinstance(outer, ast.BoolOp):
                yield from outer.values[: outer.values.index(child)]  # type: ignore[arg-type]
            elif isinstance(outer, ast.Match) and child is not outer.subject:
                yield outer.subject
            for before in preceding(outer, child):
                last_one = before.body[-1] if isinstance(before, ast.If) else before
                exits = isinstance(last_one, ast.Expr) and "exit" in ast.unparse(last_one)
                if isinstance(before, ast.If) and (exits or isinstance(last_one, _LEAVE)):
                    yield before.test

    def on_every_way(
        self, node: ast.AST, holds: Callable[[ast.AST], bool], seen: frozenset[str] = frozenset()
    ) -> bool:
        """Return whether something holds for a node, or for all calls of the function it stands
        in."""
        if holds(node):
            return True
        function = self.function_of(node)
        if function is None or function.name in seen:
            return False
        calls, seen = self.called(function.name), seen | {function.name}
        return bool(calls) and all(self.on_every_way(call, holds, seen) for call in calls)

    def innermost(self, node: ast.AST, kind: type[Node]) -> Node | None:
        """Return the innermost node of a kind around a node."""
        return next((outer for outer, _ in self.around(node) if isinstance(outer, kind)), None)

    def function_of(self, node: ast.AST) -> Function | None:
        """Return the innermost function that a node stands in."""
        return next((outer for outer, _ in self.around(node) if isinstance(outer, Function)), None)

    def apart(self, one: ast.AST, other: ast.AST) -> bool:
        """Return whether two nodes stand in different arms of a condition, so that one of them
        runs."""
        arms = {outer: _arm(outer, child) for outer, child in self.around(one)}
        pairs = ((arms.get(outer), _arm(outer, child)) for outer, child in self.around(other))
        return any(arm and its and arm != its for arm, its in pairs)

    def uses(self, module: str) -> bool:
        """Return whether a module, or one inside it, is imported."""
        return any(f"{name}.".startswith(f"{module}.") for name in self.modules)

    def says(self, attribute: str) -> bool:
        """Return whether an attribute or name is written anywhere."""
        return attribute in self._words

    @cached_property
    def _words(self) -> frozenset[object]:
        return frozenset(getattr(n, "attr", None) or getattr(n, "id", None) for n in self.nodes)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The strings that are written out, the fixed parts of f-strings included."""
        constants = (node.value for node in self.nodes if isinstance(node, ast.Constant))
        return tuple(value for value in constants if isinstance(value, str))


def used(
    definitions: Iterable[ast.stmt], start: Iterable[ast.AST]
) -> tuple[list[ast.stmt], set[str]]:
    """Return the functions and classes that nodes name, also through others of these, and all words
    in them and in the nodes."""
    named = [d for d in definitions if isinstance(d, (*_FUNCTIONS, ast.ClassDef))]
    waiting, chosen, words = [*start], list[ast.stmt](), set[str]()
    while waiting:
        nodes = [*ast.walk(waiting.pop())]
        texts = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}
        texts |= {a.name for node in nodes if isinstance(node, ast.ImportFrom) for a in node.names}
        new = [d for d in named if d.name in texts]
        named = [d for d in named if d.name not in texts]
        chosen, waiting, words = [*chosen, *new], [*waiting, *new], words | texts
    return chosen, words


def last(name: str) -> str:
    """`init` of `horovod.torch.init`."""
    return name.rpartition(".")[2]


def given(call: ast.Call) -> list[ast.expr]:
    """Return all that a call is given, by position and by name."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    """Return the argument of a call under one of these names."""
    return next((k.value for k in call.keywords if k.arg in names), None)


def is_constant(node: ast.expr | None, value: object) -> bool:
    """Return whether a node writes out True, False or None."""
    return isinstance(node, ast.Constant) and node.value is value


def preceding(outer: ast.AST, child: ast.AST) -> list[ast.stmt]:
    """Return the statements that stand before a child in its own block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(outer, name, None)
        if isinstance(block, list) and child in block:
            return block[: block.index(child)]
    return []


def _sets(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target that a node binds, with its value; that of a loop is one item of the
    value."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value:
        yield node.target, node.value
    elif isinstance(node, _LOOPS):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield node.optional_vars, node.context_expr


def _spread(target: ast.expr, value: ast.expr, depth: int) -> Iterator[tuple[str, ast.expr, int]]:
    """Yield the texts of what a target binds, each with the value, and how deep it is in there."""
    if isinstance(target, (ast.Tuple, ast.List)):
        whole = isinstance(value, (ast.Tuple, ast.List)) and not depth
        items = value.elts if whole else []  # type: ignore[attr-defined]
        for number, item in enumerate(target.elts):
            written = items[number : number + 1]
            yield from _spread(item, *((written[0], 0) if written else (value, depth + 1)))
        return
    target = target.value if isinstance(target, ast.Starred) else target
    yield ast.unparse(target), value, depth
    while isinstance(target, ast.Subscript):
        target = target.value
        yield f"{ast.unparse(target)}[]", value, depth


def parameters(function: Function | ast.Lambda) -> list[ast.arg]:
    """Return the parameters of a function by position, without `self`."""
    every = [*function.args.posonlyargs, *function.args.args]
    return every[1:] if every and every[0].arg == "self" else every


def arguments(call: ast.Call, function: Function | None) -> dict[ast.arg, ast.expr]:
    """Return a call's arguments by parameter, whether by name, by position or by default."""
    if function is None:
        return {}
    placed, named = parameters(function), {k.arg: k.value for k in call.keywords}
    kwonly = function.args.kwonlyargs
    every = {p.arg: p for p in (*placed, *kwonly)}
    values = dict(zip(reversed(placed), reversed(function.args.defaults), strict=False))
    values |= {p: v for p, v in zip(kwonly, function.args.kw_defaults, strict=True) if v}
    values |= dict(zip(placed, call.args, strict=False))
    return values | {every[name]: value for name, value in named.items() if name in every}


def _arm(outer: ast.AST, child: ast.AST) -> object:
    """Return the arm of a condition that a child of it stands in; None for its test."""
    if isinstance(outer, ast.If):
        return next((arm for arm in ("body", "orelse") if child in getattr(outer, arm)), None)
    if isinstance(outer, ast.Try):
        return child if isinstance(child, ast.ExceptHandler) else "body"
    whole = isinstance(outer, ast.IfExp) and child is not outer.test
    return child if whole or isinstance(child, ast.match_case) else None
