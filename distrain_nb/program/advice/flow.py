"""Whether what comes from an origin, such as the rank or the number of ranks, is in an expression.

The order of statements is not regarded: for advice it is better to see a rank where there is none
than to complain of a program that is right.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.program.advice.reading import last

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code

_LIGHT = {"int", "str", "bool", "float", "join", "Path", "format", "device", "Namespace", "range"}
# What gives paths below a path, or hands paths on.
LISTS = frozenset(
    {
        *("glob", "iglob", "rglob", "listdir", "scandir", "iterdir", "walk", "joinpath", "fspath"),
        *("sorted", "list", "tuple", "set", "enumerate", "zip", "reversed", "filter"),
    }
)

# The rank, also the one on its machine.
_FUNCTIONS = ("rank", "get_rank", "Get_rank", "cross_rank", "local_rank", "get_node_local_rank")
_NAMES = ("rank", "global_rank", "process_index", "local_rank", "local_process_index")
_TESTS = ("is_main_process", "is_local_main_process", "is_chief", "is_master")
_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "SLURM_LOCALID", "LOCAL_RANK")


class Origin(NamedTuple):
    """Where something comes from: functions, names and attributes, environment variables, texts
    with all that begins so."""

    functions: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    def __or__(self, other: Origin) -> Origin:
        return Origin(*(mine | its for mine, its in zip(self, other, strict=True)))


RANK = Origin(
    frozenset((*_FUNCTIONS, "get_local_rank")),
    frozenset((*_NAMES, *_TESTS)),
    frozenset((*_VARIABLES, "OMPI_COMM_WORLD_LOCAL_RANK")),
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
        seen = []
        for part in self.reached(node):
            if self._is(part):
                return True
            seen.append(part)
        self._without.update(seen)
        return False

    def reached(self, node: ast.AST | None) -> Iterator[ast.AST]:
        """Yield an expression, and all that its value comes from."""
        todo, seen = [node] if node is not None else [], set[ast.AST]()
        while todo:
            part = todo.pop()
            if part not in seen and part not in self._without:
                seen.add(part)
                yield part
                todo += self._from(part)

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
        of_rank = self.origin.names >= RANK.names
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
            return last(text) in self.origin.names or (of_rank and text in self.code.spawned)
        return False
