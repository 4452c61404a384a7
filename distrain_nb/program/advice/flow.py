"""Which expressions hold a rank, a local rank or the number of ranks, directly or through names.

Names are followed by their text through assignments, parameters and returned values, without
regard to scopes and order: for advice it is better to see a rank where there is none than to
complain of a program that is right.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from distrain_nb.program.advice.reading import bindings, last, parameters

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

    def holds(self, node: ast.AST | None) -> bool:
        """Whether an expression holds it."""
        return node is not None and self._holds(node, self.names)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names, dotted ones too, and the functions and classes, that hold it."""
        known = frozenset(self._spawned()) if LOCAL_RANK in self.origins else frozenset()
        while True:
            grown = known | frozenset(self._grown(known))
            if grown == known:
                return known
            known = grown

    def _spawned(self) -> Iterator[str]:
        """The first parameter of what `mp.spawn` starts: the rank on this machine."""
        for call in self.code.called("spawn"):
            started = call.args[:1] or [k.value for k in call.keywords if k.arg == "fn"]
            for function in map(self.code.functions.get, map(self.code.name, started)):
                yield from parameters(function)[:1] if function else []

    def _grown(self, known: frozenset[str]) -> Iterator[str]:
        for node in self.code.nodes:
            for target, value in bindings(node):
                if self._holds(value, known) or (self.under and self._is_under(target, known)):
                    yield from _texts(target)
            if isinstance(node, ast.Call):
                yield from self._parameters(node, known)
            elif isinstance(node, ast.Return) and node.value and self._holds(node.value, known):
                function = self.code.function_of(node)
                yield from [function.name] if function else []
        yield from self._classes(known)

    def _is_under(self, node: ast.AST, known: frozenset[str]) -> bool:
        tests = [outer.test for outer, _ in self.code.around(node) if isinstance(outer, ast.If)]
        return any(self._holds(test, known) for test in tests)

    def _parameters(self, call: ast.Call, known: frozenset[str]) -> Iterator[str]:
        function = self.code.body_of(call)
        if function is None:
            return
        names = parameters(function)
        yield from (
            name for name, value in zip(names, call.args, strict=False) if self._holds(value, known)
        )
        for keyword in call.keywords:
            if keyword.arg and self._holds(keyword.value, known):
                yield keyword.arg

    def _classes(self, known: frozenset[str]) -> Iterator[str]:
        """Classes that look at it themselves, such as a dataset that shares its files out."""
        for name, body in self.code.classes.items():
            if self.through and any(self._is(node, known) for node in ast.walk(body)):
                yield name

    def _holds(self, node: ast.AST, known: frozenset[str]) -> bool:
        if self._is(node, known):
            return True
        if isinstance(node, ast.Call) and not (self.through or self._light(node)):
            return False
        return any(self._holds(child, known) for child in ast.iter_child_nodes(node))

    def _light(self, call: ast.Call) -> bool:
        """Whether a call gives what it is given in another form."""
        return last(self.code.name(call.func)) in _LIGHT | self.passes

    def _is(self, node: ast.AST, known: frozenset[str]) -> bool:
        if isinstance(node, ast.Call):
            return last(self.code.name(node.func)) in known or any(
                self._calls(node, origin) for origin in self.origins
            )
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return any(node.value.startswith(t) for o in self.origins for t in o.texts)
        if isinstance(node, ast.Subscript) and self._reads_environment(node, node.slice):
            return True
        if isinstance(node, (ast.Name, ast.Attribute)):
            text = ast.unparse(node)
            named = any(last(text) in origin.names for origin in self.origins)
            return named or text in known
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


def _texts(target: ast.AST) -> list[str]:
    """The names that a target binds: `a`, `self.a`, both of `a, b`; `d` of `d["key"]`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [text for each in target.elts for text in _texts(each)]
    if isinstance(target, (ast.Subscript, ast.Starred)):
        return _texts(target.value)
    return [ast.unparse(target)] if isinstance(target, (ast.Name, ast.Attribute)) else []
