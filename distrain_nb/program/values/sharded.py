"""Results that would be one rank's part of a model."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from distrain_nb.worker.rank.wrapped import SHARDED

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

_WRAPS = {"FSDP", *(name for _, name in SHARDED)}
_IN_PLACE = "fully_shard"


def sharded(tree: ast.Module, results: Container[str]) -> Iterator[tuple[str, int]]:
    """(name, line) of each result that the cell leaves sharded, by what it does last with it."""
    last: dict[str, tuple[bool, int]] = {}
    for statement in tree.body:
        value = getattr(statement, "value", None)
        call = value if isinstance(value, ast.Call) else None
        for name in _assigned(statement):
            last[name] = (call is not None and _called(call) in _WRAPS, statement.lineno)
        if call is not None and _called(call) == _IN_PLACE:
            last |= {a.id: (True, call.lineno) for a in call.args[:1] if isinstance(a, ast.Name)}
    for name, (is_sharded, line) in last.items():
        if is_sharded and name in results:
            yield name, line


def _assigned(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
