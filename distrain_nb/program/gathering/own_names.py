"""Names that the cell sets itself before it calls the notebook's functions that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.program.gathering.resolve import SourceCode
from distrain_nb.program.python.names import names_of
from distrain_nb.program.python.reads import Read

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping

    from distrain_nb.program.gathering.needed import Needed
    from distrain_nb.program.notebook.history import ExecutionHistory
    from distrain_nb.program.python.names import Names


def own_names(
    tree: ast.Module, names: Names, history: ExecutionHistory, namespace: Mapping[str, Any]
) -> frozenset[str]:
    """Return names that functions of the notebook find in the program because the cell has set
    them.

    The cell is walked once more with the bodies of the notebook's functions, which count as
    called where their names are read.
    """
    bodies = {name: _reads(name, history) for name in history.bindings}
    for name, value in namespace.items():
        made_here = getattr(type(value), "__module__", "") == namespace.get("__name__")
        if made_here and name in bodies:
            bodies[name].append(Read(type(value).__qualname__.partition(".")[0], 0))
    needed = names_of(tree.body, bodies=bodies).needs
    return frozenset(names.binds - needed.keys())


def set_by_functions(found: Mapping[str, Needed], history: ExecutionHistory) -> set[str]:
    """Return names that definitions which come along declare `global` and set when they are
    called."""
    statements = [
        executed.statement
        for needed in found.values()
        if isinstance(needed.how, SourceCode)
        for executed in needed.how.chain
    ]
    late = history.late_annotations
    return {name for s in statements for name in s.names(late).binds - s.binds}


def _reads(name: str, history: ExecutionHistory) -> list[Read]:
    statement = history.of(name)[0].statement
    uses = statement.names(history.late_annotations).needs.values()
    return [
        Read(use.name, use.line)
        for use in uses
        if use.name != name and not (statement.is_definition and use.at_once)
    ]
