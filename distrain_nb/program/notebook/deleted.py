"""Imports whose names were deleted since, as by `%reset`: what they set in packages still holds."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distrain_nb.program.notebook.history import Executed
from distrain_nb.program.notebook.reach import NOTHING, member

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.program.notebook.history import ExecutionHistory, Statement


def deleted_imports(history: ExecutionHistory, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return what deleted names stood for, as far as imports gave them."""
    deleted = {}
    for name in history.bindings.keys() - names.keys():
        latest = _import_of(name, history)
        value = _imported(latest.statement, name) if latest else NOTHING
        if value is not NOTHING:
            deleted[name] = value
    return deleted


def imports_again(
    executed: Executed, history: ExecutionHistory, names: Mapping[str, Any]
) -> tuple[Executed, ...]:
    """Return the imports that gave a statement names which were deleted since, without what they
    import besides."""
    needs = executed.statement.names(history.late_annotations).needs.keys() - names.keys()
    every = (_import_of(name, history, before=executed.at) for name in needs)
    imports = {latest.at: latest for latest in every if latest}
    return tuple(_of_deleted(imports[at], names) for at in sorted(imports))


def _import_of(
    name: str, history: ExecutionHistory, before: tuple[int, int] | None = None
) -> Executed | None:
    """Return the import that bound a name last, before it was deleted."""
    bound = (e for e in history.of(name, before) if not isinstance(e.statement.node, ast.Delete))
    latest = next(bound, None)
    return latest if latest and latest.statement.alias(name) else None


def _imported(statement: Statement, name: str) -> Any:
    """Return what an import statement gives a name at present."""
    alias, node = statement.alias(name), statement.node
    assert alias is not None
    if isinstance(node, ast.ImportFrom):
        return member(sys.modules.get(node.module or "", NOTHING), alias.name)
    return sys.modules.get(alias.name if alias.asname else name, NOTHING)


def _of_deleted(executed: Executed, names: Mapping[str, Any]) -> Executed:
    """Return an import statement of no more than the names that are gone."""
    statement, node = executed.statement, executed.statement.node
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    gone = statement.binds - names.keys()
    aliases = [alias for name in sorted(gone) if (alias := statement.alias(name))]
    again = ast.copy_location(type(node)(**{**vars(node), "names": aliases}), node)
    return replace(
        executed, statement=replace(statement, node=again, text=ast.unparse(again), binds=gone)
    )
