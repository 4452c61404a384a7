"""The code of a cell, read as Python: its text, its tree, its names and its imports."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.gathering.assemble import without_futures
from distrain_nb.program.program import (
    SYNTAX_ERROR,
)
from distrain_nb.program.python.imports import ImportedModule, imports_of
from distrain_nb.program.python.ipython_syntax import PlainCell, plain
from distrain_nb.program.python.names import Names, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.program.notebook.cells import Cell


_AWAITS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


@dataclass(frozen=True)
class CellCode:
    """The cell as Python: its text from the first line that runs, its tree, its names and its
    imports."""

    text: str
    tree: ast.Module
    names: Names
    imports: tuple[ImportedModule, ...]
    findings: tuple[Finding, ...]


def read_cell(cell: Cell, first_line: int, *, late_annotations: bool) -> CellCode:
    """Return the code of a cell from `first_line` (1-based) on, with findings about its syntax."""
    lines = cell.source.split("\n")
    code = plain("\n".join([*[""] * (first_line - 1), *lines[first_line - 1 :]]))
    findings = [
        Finding("capture.ipython-syntax", n.severity, f"{cell.label}, line {n.line}", n.message)
        for n in code.notes
    ]
    tree, broken = _checked(code, cell.label)
    message = "invalid relative import: a cell belongs to no package, so name the package"
    imports = imports_of(tree)
    lines_of_relative = [f"{cell.label}, line {i.line}" for i in imports if i.relative]
    findings += [
        Finding("capture.relative-import", Severity.ERROR, line, message)
        for line in lines_of_relative
    ]
    names = names_of(tree.body, late_annotations=late_annotations, star=star_names)
    text = without_futures(code.text, tree).split("\n")[first_line - 1 :]
    return CellCode("\n".join(text), tree, names, imports, (*findings, *broken))


def _checked(code: PlainCell, label: str) -> tuple[ast.Module, tuple[Finding, ...]]:
    """Return the cell's tree; empty, with a finding, where Python refuses it."""
    error = code.error
    try:
        if code.tree is not None:
            compile(code.tree, label, "exec", _AWAITS, dont_inherit=True)
            return code.tree, ()
    except (SyntaxError, ValueError) as refused:  # `return` outside a function, and the like
        error = refused
    where = f"{label}, line {getattr(error, 'lineno', None) or 1}"
    message = f"{getattr(error, 'msg', error)}: {(getattr(error, 'text', '') or '').strip()}"
    broken = Finding(SYNTAX_ERROR, Severity.ERROR, where, message.rstrip(": "))
    return ast.Module([], []), (broken,)


def star_names(module: str) -> Iterable[str] | None:
    """Return the names that `from module import *` binds; None where the module is not loaded
    here."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return None
    public = [name for name in vars(loaded) if not name.startswith("_")]
    return list(getattr(loaded, "__all__", public))
