"""Which statement changed an object that a module keeps and that can't travel."""

from __future__ import annotations

import ast
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.frames import run_by
from distrain_nb.program.notebook.making import changed_by
from distrain_nb.program.notebook.reach import resolve

if TYPE_CHECKING:
    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.world import World


def change_of(value: Any, module: str, path: str, world: World) -> Executed | None:
    """Return the first statement that sets a part of an object, which it has by a name or a path,
    or from a function of that module that reads it; a function that does so counts where another
    statement names it."""
    every = world.history.executed
    for executed in every:
        node, name = executed.statement.node, getattr(executed.statement.node, "name", "")
        if executed.statement.is_definition and not any(
            name in other.statement.mentions() for other in every if other is not executed
        ):
            continue
        for place, method in changed_by(ast.walk(node)):
            part = getattr(place, "value", None) if not method else None
            while isinstance(part, (ast.Attribute, ast.Subscript, ast.Name, ast.Call)):
                is_giver = isinstance(part, ast.Call) and _gives(part.func, module, path, world)
                if is_giver or resolve(part, world.namespace) is value:
                    return executed
                part = getattr(part, "value", None)
    return None


def _gives(called: ast.expr, module: str, path: str, world: World) -> bool:
    """Return whether a function of a module reads what has that path there."""
    function, names = resolve(called, world.namespace), vars(sys.modules[module])
    is_its_own = isinstance(function, FunctionType) and function.__module__ == module
    return is_its_own and any(path in read for _, read in run_by(function.__code__, names))
