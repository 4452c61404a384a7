"""Names that the program sets itself: the cell, or functions that declare them `global`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from distrain_nb.program.gathering.doubts import remade_statements
from distrain_nb.program.gathering.resolve import Needed
from distrain_nb.program.python.names import names_of
from distrain_nb.program.python.reads import Read

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    bodies = dict[str, list[Read]]()
    for name in history.bindings:
        statement = history.of(name)[0].statement
        uses = statement.names(history.late_annotations).needs.values()
        later = (use for use in uses if not (statement.is_definition and use.at_once))
        bodies[name] = [Read(use.name, use.line) for use in later if use.name != name]
    for name, value in namespace.items():
        made_here = getattr(type(value), "__module__", "") == namespace.get("__name__")
        if made_here and name in bodies:
            bodies[name].append(Read(type(value).__qualname__.partition(".")[0], 0))
    needed = names_of(tree.body, bodies=bodies).needs
    return frozenset(names.binds - needed.keys())


def set_by_functions(needs: Mapping[str, Needed], history: ExecutionHistory) -> set[str]:
    """Return names that definitions which come along declare `global` and set when they are
    called."""
    statements = [executed.statement for _, executed in remade_statements(needs.values())]
    late = history.late_annotations
    return {name for s in statements for name in s.names(late).binds - s.binds}
