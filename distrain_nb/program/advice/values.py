"""What an expression may stand for: names are followed back to what set them.

`Values` looks a name up in its function, then around it. Of several values it may have any that can
reach the place where it is read. `Flow` says whether a rank, a local rank or the number of ranks
is in an expression, without regard to scopes and order: for advice it is better to see a rank
where there is none than to complain of a program that is right.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.program.advice.reading import (
    ANY,
    LOOPS,
    Function,
    arguments,
    last,
    parameters,
    preceding,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.program.advice.reading import Binding, Code, Path

_LIGHT = {"int", "str", "bool", "float", "join", "Path", "format", "device", "Namespace", "range"}
# What gives paths below a path, or hands paths on.
LISTS = frozenset(
    {
        *("glob", "iglob", "rglob", "listdir", "scandir", "iterdir", "walk", "joinpath", "fspath"),
        *("sorted", "list", "tuple", "set", "enumerate", "zip", "reversed", "filter"),
    }
)


class Made(NamedTuple):
    """An expression that nothing leads further back from: a call, a literal, a name that is not
    bound here; with a path, an item of it."""

    node: ast.expr
    path: Path

    @property
    def key(self) -> tuple[object, ...]:
        """The same for the same value: names are the same by their text, calls by their place."""
        named = isinstance(self.node, (ast.Name, ast.Attribute))
        return (ast.unparse(self.node) if named else self.node, self.path)


@dataclass(frozen=True, eq=False)
class Values:
    """Follows values through names, parameters, returned values and the items of literals.

    `through` are methods that give what they are called on in another form; functions of PyTorch
    with such a name give their first argument.
    """

    code: Code
    through: frozenset[str] = frozenset()

    def of(self, node: ast.expr) -> list[Made]:
        """Return all that an expression may stand for."""
        return list(self._made(node, (), set()))

    def nodes(self, node: ast.expr | None) -> list[ast.expr]:
        """Return the same without the paths; empty for no expression."""
        return [made.node for made in self.of(node)] if node is not None else []

    def reaching(self, name: ast.expr) -> list[ast.expr]:
        """Return the values that a name is set to before it is read, one step back."""
        return [bound.value for bound in self._bound_to(name)]

    def stored(self, name: ast.expr) -> list[ast.expr]:
        """Return the values that are put under keys of a name: `state["model"] = …`."""
        return [bound.value for bound in self.code.bindings.get(f"{ast.unparse(name)}[]", ())]

    def arguments(self, name: ast.expr) -> list[tuple[ast.Call, ast.expr]]:
        """Return the calls that give a parameter its value, each with that value."""
        function = self.code.function_of(name)
        if not (function and isinstance(name, ast.Name)):
            return []
        calls = [call for call in self.code.calls if self.code.body_of(call) is function]
        given = [
            (call, argument) for call in calls for argument in arguments(call, function).items()
        ]
        return [(call, value) for call, (own, value) in given if own.arg == name.id]

    def _made(self, node: ast.expr, path: Path, seen: set[ast.expr]) -> Iterator[Made]:
        if node in seen:
            return
        seen.add(node)
        steps = list(self._back(node, path))
        if not steps:
            yield Made(node, path)
        for step, rest in steps:
            yield from self._made(step, rest, seen)

    def _back(self, node: ast.expr, path: Path) -> Iterable[tuple[ast.expr, Path]]:
        """Return the sources of an expression's value, or of an item's; none if that is open."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            items = node.values if isinstance(node, ast.Dict) else node.elts
            if path and path[0] is not ANY and not isinstance(node, ast.Dict):
                items = items[path[0] :][:1]
            return [(item, path[1:]) for item in items] if path else []
        if isinstance(node, ast.IfExp):
            return [(node.body, path), (node.orelse, path)]
        if isinstance(node, ast.BoolOp):
            return [(value, path) for value in node.values]
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Starred)):
            return [(node.value, path)]
        if isinstance(node, ast.Call):
            values = self._same(node) or self.code.returned(self.code.body_of(node))
            return [(value, path) for value in values]
        return self._named(node, path)

    def _named(self, node: ast.expr, path: Path) -> Iterable[tuple[ast.expr, Path]]:
        found = [(bound.value, (*bound.path, *path)) for bound in self._bound_to(node)]
        if found or not isinstance(node, ast.Subscript):
            return found
        if isinstance(node.slice, ast.Slice):
            return [(node.value, path)]
        index = node.slice.value if isinstance(node.slice, ast.Constant) else ANY
        return [(node.value, (index if isinstance(index, int) else ANY, *path))]

    def _same(self, call: ast.Call) -> list[ast.expr]:
        name = self.code.name(call.func)
        if last(name) not in self.through:
            return []
        if name.startswith("torch.") and "()" not in name:
            return call.args[:1]
        return [call.func.value] if isinstance(call.func, ast.Attribute) else []

    def _bound_to(self, node: ast.expr) -> list[Binding]:
        """Return the expressions that set a name, an attribute or an item, as far as they can be
        read."""
        found = self.code.bindings.get(ast.unparse(node), [])
        if not isinstance(node, ast.Name):
            holder = self.code.innermost(node, ast.ClassDef)
            of_class = (b for b in found if self.code.innermost(b.by, ast.ClassDef) is holder)
            return list(of_class) or found
        for scope in (outer for outer, _ in self.code.around(node)):
            if not isinstance(scope, (Function, ast.Lambda, ast.Module)):
                continue
            function = scope if isinstance(scope, Function) else None
            mine = [bound for bound in found if self.code.function_of(bound.by) is function]
            if mine and not isinstance(scope, ast.Lambda):
                return self._reaching(node, mine)
            own = (
                []
                if isinstance(scope, ast.Module)
                else [*parameters(scope), *scope.args.kwonlyargs]
            )
            if node.id in [parameter.arg for parameter in own]:
                return []
        return found  # set in another function, for all

    def _reaching(self, name: ast.Name, found: list[Binding]) -> list[Binding]:
        """Return the bindings that none other hides, of those in the function that a name is read
        in."""
        if self.code.function_of(name) is not self.code.function_of(found[0].by):
            return found
        around = self.code.around(name)
        sure = {before for outer, child in around for before in preceding(outer, child)}
        hiding = [b for b in found if b.by in sure and not isinstance(b.by, ast.AugAssign)]
        start = max(map(_end, hiding), default=(0, 0))
        return [b for b in found if _end(b) >= start and self._comes_first(b, name)]

    def _comes_first(self, bound: Binding, name: ast.Name) -> bool:
        if self.code.apart(bound.by, name):
            return False
        if _end(bound) <= (name.lineno, name.col_offset) or isinstance(bound.by, ast.comprehension):
            return True
        return not self.code.loops(name).isdisjoint(self.code.loops(bound.by))


def _end(bound: Binding) -> tuple[int, int]:
    """From where on a binding holds."""
    inner = (ast.NamedExpr, ast.withitem, *LOOPS)
    node = bound.value if isinstance(bound.by, inner) else bound.by
    return (node.end_lineno or 0, node.end_col_offset or 0)  # type: ignore[attr-defined]


# -- ranks and paths ------------------------------------------------------------------------------


class Origin(NamedTuple):
    """Where something comes from: functions, names and attributes, environment variables, texts
    with all that begins so."""

    functions: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    def __or__(self, other: Origin) -> Origin:
        return Origin(*(mine | its for mine, its in zip(self, other, strict=True)))


LOCAL_RANK = Origin(
    frozenset({"local_rank", "get_node_local_rank", "get_local_rank"}),
    frozenset({"local_rank", "local_process_index", "is_local_main_process"}),
    frozenset({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}),
)
RANK = Origin(
    frozenset({"rank", "get_rank", "Get_rank", "cross_rank"}),
    frozenset({"rank", "global_rank", "is_main_process", "is_chief", "is_master", "process_index"}),
    frozenset({"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}),
)
SIZE = Origin(
    frozenset({"size", "local_size", "get_world_size", "Get_size"}),
    frozenset({"world_size", "num_replicas_in_sync", "num_replicas"}),
    frozenset({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"}),
)


@dataclass(frozen=True, eq=False)
class Flow:
    """Follows what comes from an origin.

    `through` says whether whatever is made from it counts as well: a model on the device of a
    local rank does, a loss is no rank; functions in `passes` do in any case. With `under` so do
    names that are set under its test.
    """

    code: Code
    origin: Origin
    through: bool = False
    under: bool = False
    passes: frozenset[str] = frozenset()
    _without: set[ast.AST] = field(default_factory=set)  # what has been looked at in vain

    def holds(self, node: ast.AST | None) -> bool:
        """Return whether an expression holds it."""
        todo, seen = [node] if node is not None else [], set[ast.AST]()
        while todo:
            part = todo.pop()
            if part not in seen and part not in self._without:
                if self._is(part):
                    return True
                seen.add(part)
                todo += self._from(part)
        self._without.update(seen)
        return False

    def _from(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the sources of an expression's value: its parts, and what its names are set to."""
        if isinstance(node, ast.ClassDef):  # it may look at it itself, as a dataset does
            yield from ast.walk(node) if self.through else ()
            return
        if isinstance(node, ast.Call):
            name = last(self.code.name(node.func))
            yield from self._named(name)
            if not (self.through or name in _LIGHT | self.passes):
                return
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield from self._named(ast.unparse(node))
        yield from ast.iter_child_nodes(node)

    def _named(self, text: str) -> Iterator[ast.AST]:
        """Yield the values of a name, and those that a function of that name returns."""
        for key in (text, f"{text}[]"):
            for bound in self.code.bindings.get(key, ()):
                yield bound.value
                if self.under:
                    around = (outer for outer, _ in self.code.around(bound.by))
                    yield from (outer.test for outer in around if isinstance(outer, ast.If))
        yield from self.code.returned(self.code.functions.get(text))
        if text in self.code.classes:
            yield self.code.classes[text]

    def _is(self, node: ast.AST) -> bool:
        of_machine = self.origin.names >= LOCAL_RANK.names
        if isinstance(node, (ast.Call, ast.Subscript)):
            name = self.code.name(node.func if isinstance(node, ast.Call) else node)
            keys = node.args[:1] if isinstance(node, ast.Call) else [node.slice]
            variables = [k.value for k in keys if isinstance(k, ast.Constant)]
            others = last(name) == "size" and not name.startswith("horovod")
            asked = "env" in name and not self.origin.variables.isdisjoint(variables)
            return asked or (last(name) in self.origin.functions and not others)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value.startswith((*self.origin.texts,))
        if isinstance(node, (ast.Name, ast.Attribute)):
            text = ast.unparse(node)
            return last(text) in self.origin.names or (of_machine and text in self.code.spawned)
        if not (of_machine and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)):
            return False
        # `rank % gpus` is the rank on its own machine; `"rank %d" % n` is none.
        return not isinstance(node.left, ast.Constant) and "rank" in ast.unparse(node.left).lower()
