"""Where the user's own code lives: the notebook, and each module beside it."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from importlib.util import decode_source
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.program.notebook.cells import Cell
from distrain_nb.program.notebook.history import ExecutionHistory, history
from distrain_nb.program.notebook.local_modules import gone_file, is_installed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from distrain_nb.program.notebook.history import Statement

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, eq=False)
class OwnModule:
    """Names, and the statements that made them."""

    namespace: Mapping[str, Any]
    history: ExecutionHistory

    def definition(self, qualname: str) -> tuple[Statement, ast.AST] | None:
        """The statement of a function or class, and its part that defines just that."""
        root, *rest = qualname.partition(".<locals>")[0].split(".")
        for executed in self.history.of(root):
            inner = executed.statement.inner_definition(root)
            statement = executed.statement if executed.statement.is_definition else inner
            if statement is None:
                continue
            node: ast.AST | None = statement.node
            for name in rest:
                node = _member(node, name)
            return (statement, node) if node else None
        return None


def _member(node: ast.AST | None, name: str) -> ast.AST | None:
    found = [n for n in getattr(node, "body", ()) if isinstance(n, _DEFINITIONS) and n.name == name]
    return found[-1] if found else None


@dataclass
class OwnModules:
    """The user's own modules by their names; installed packages are none. `gone` are those that
    were asked for and whose files are there no more."""

    notebook: OwnModule
    gone: set[str] = field(default_factory=set)
    _known: dict[str, OwnModule | None] = field(default_factory=dict)

    def of(self, name: str | None) -> OwnModule | None:
        """The module of that name, if it is the user's own."""
        if name == self.notebook.namespace.get("__name__", "__main__"):
            return self.notebook
        if not name:
            return None
        if name not in self._known:
            self._known[name] = _read(sys.modules.get(name))
            gone = gone_file(name)
            if gone and not is_installed(gone):
                self.gone.add(name)
        return self._known[name]


def _read(module: ModuleType | None) -> OwnModule | None:
    file = getattr(module, "__file__", None)
    if module is None or not file or not str(file).endswith(".py"):
        return None
    root = module.__name__.partition(".")[0]
    if root in sys.stdlib_module_names or root == "distrain_nb":
        return None
    path = Path(file).absolute()
    if is_installed(path):
        return None
    try:
        source = decode_source(path.read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    return OwnModule(vars(module), history([Cell(str(path), source)]))
