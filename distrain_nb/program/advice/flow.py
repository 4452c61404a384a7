"""Which expressions hold a rank, a local rank or the number of ranks, directly or through names.

Names are followed by their text back through assignments, parameters and returned values, without
regard to scopes and order: for advice it is better to see a rank where there is none than to
complain of a program that is right.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from distrain_nb.program.advice.reading import keyword, last, parameters

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
_ENVIRONMENT = {"environ[]", "get", "getenv", "pop"}


@dataclass(frozen=True)
class Origin:
    """Where something comes from: functions, names and attributes, environment variables, texts
    with all that begins so."""

    functions: frozenset[str]
    names: frozenset[str]
    variables: frozenset[str]
    texts: frozenset[str] = frozenset()


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
    """Follows what comes from some origins.

    `through` says whether whatever is made from it counts as well: a model on the device of a
    local rank does, a loss is no rank; functions in `passes` do in any case. With `under` so do
    names that are set under its test.
    """

    code: Code
    origins: tuple[Origin, ...]
    through: bool = False
    under: bool = False
    passes: frozenset[str] = frozenset()
    _without: set[ast.AST] = field(default_factory=set)  # what has been looked at in vain

    def holds(self, node: ast.AST | None) -> bool:
        """Whether an expression holds it."""
        todo, seen = [node] if node is not None else [], {*self._without}
        while todo:
            part = todo.pop()
            if part in seen:
                continue
            if self._is(part):
                return True
            seen.add(part)
            todo += self._from(part)
        self._without.update(seen)
        return False

    def _from(self, node: ast.AST) -> Iterator[ast.AST]:
        """What an expression has its value from: its parts, and what its names are set to."""
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
        """What a name is set to, and what a function of that name returns."""
        for key in (text, f"{text}[]"):
            for bound in self.code.bindings.get(key, ()):
                yield bound.value
                if self.under:
                    around = (outer for outer, _ in self.code.around(bound.by))
                    yield from (outer.test for outer in around if isinstance(outer, ast.If))
        for function in filter(None, [self.code.functions.get(text)]):
            returns = (n for n in ast.walk(function) if isinstance(n, ast.Return) and n.value)
            yield from (n for n in returns if self.code.function_of(n) is function)
        yield from filter(None, [self.code.classes.get(text)])

    @cached_property
    def _spawned(self) -> frozenset[str]:
        """The first parameter of what `mp.spawn` starts: the rank on this machine."""
        calls = self.code.called("spawn") if LOCAL_RANK in self.origins else []
        started = [s for c in calls for s in (*c.args[:1], *filter(None, [keyword(c, "fn")]))]
        functions = map(self.code.functions.get, map(self.code.name, started))
        return frozenset(p.arg for f in filter(None, functions) for p in parameters(f)[:1])

    def _is(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return any(self._calls(node, origin) for origin in self.origins)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return any(node.value.startswith(t) for o in self.origins for t in o.texts)
        if isinstance(node, ast.Subscript) and self._reads_environment(node, node.slice):
            return True
        if isinstance(node, (ast.Name, ast.Attribute)):
            text = ast.unparse(node)
            return text in self._spawned or any(last(text) in o.names for o in self.origins)
        return _is_modulo(node) and LOCAL_RANK in self.origins

    def _calls(self, call: ast.Call, origin: Origin) -> bool:
        name = self.code.name(call.func)
        if last(name) in _ENVIRONMENT and call.args:
            return self._reads_environment(call, call.args[0])
        plain = last(name) in origin.functions
        return plain and not (last(name) == "size" and not name.startswith("horovod"))

    def _reads_environment(self, node: ast.AST, key: ast.AST) -> bool:
        wanted = isinstance(key, ast.Constant) and any(
            key.value in o.variables for o in self.origins
        )
        return wanted and "env" in self.code.name(node)


def _is_modulo(node: ast.AST) -> bool:
    """`rank % gpus`: the rank on its own machine."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)):
        return False
    return not isinstance(node.left, ast.Constant) and "rank" in ast.unparse(node.left).lower()
