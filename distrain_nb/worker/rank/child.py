"""The parts of a program that a process it spawns runs, as its `__mp_main__`.

A cell with a main guard is run as Python runs a script: everything but what stands below the guard.
A cell without one would be a mistake in a script, whose child would start all over; here a child
gets the cell's definitions and the assignments that they read, and runs nothing else of it.
"""

from __future__ import annotations

import ast
import io
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, Sequence, Set

from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.functions import FOLDER_VARIABLE
from distrain_nb.worker.rank import interactive, torch_groups
from distrain_nb.worker.rank.later import make_on_demand
from distrain_nb.worker.rank.program import (
    Piece,
    Spawner,
    execute,
    read_entry_point,
    read_pieces,
    variables,
)
from distrain_nb.worker.rank.rank import RUN_FOLDER_VARIABLE

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def program_folder() -> Path:
    """Return the program that this process was spawned by. What MPI spawns has `mpirun`'s
    environment, not that of the rank, and so knows only the run."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return Path(folder) if folder else Path(os.environ[RUN_FOLDER_VARIABLE]) / PROGRAM_FOLDER


def become(folder: Path, namespace: Dict[str, Any]) -> None:
    """Give a namespace, whose `__name__` is not `__main__`, what the program gives its children."""
    os.environ.update(variables(folder))  # which MPI's don't inherit
    entry = read_entry_point(folder)
    namespace["__file__"] = str(folder / entry.file)
    if entry.package is not None:
        namespace.update(__spec__=Spawner(entry.package), __package__=entry.package)
    _line_buffered_output()
    pieces, flags = read_pieces(folder)
    make_on_demand(folder, namespace, flags)
    interactive.begin()
    torch_groups.change_process_groups()
    for piece in pieces:
        tree = ast.parse(piece.text, piece.label)
        if not piece.is_cell or any(map(_is_main_guard, tree.body)):
            execute(compile(tree, piece.label, "exec", flags, dont_inherit=True), namespace)
        else:
            _define(piece, tree.body, flags, namespace)


def _line_buffered_output() -> None:
    """Buffer output by lines, as its rank does, so that processes with one output mix only whole
    lines.

    With PYTHONUNBUFFERED, Python writes each argument of `print` by itself.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)


def _define(piece: Piece, body: Sequence[ast.stmt], flags: int, namespace: Dict[str, Any]) -> None:
    for statement in _definitions(body):
        code = compile(ast.Module([statement], []), piece.label, "exec", flags, dont_inherit=True)
        try:
            exec(code, namespace)
        except Exception:  # it builds on what the cell's actions make, which is not here
            pass


def _definitions(body: Sequence[ast.stmt]) -> List[ast.stmt]:
    """Return the statements that define, and those that make what the definitions read."""
    chosen = {n for n, statement in enumerate(body) if _only_defines(statement)}
    defined = {s.name for n in chosen for s in ast.walk(body[n]) if isinstance(s, _FUNCTIONS)}
    bound: Set[str] = set()
    while True:
        read = {name for n in chosen for name in _reads(body[n])}
        more = {
            n for n, s in enumerate(body) if n not in chosen and _makes(s, read, bound, defined)
        }
        if not more:
            return [body[n] for n in sorted(chosen)]
        chosen |= more
        bound |= {name for n in more for name in _binds(body[n])}


def _makes(statement: ast.stmt, read: Set[str], bound: Set[str], defined: Set[str]) -> bool:
    """Return whether a statement gives one of the names that are read a value, or changes such a
    value as `parser.add_argument(…)` does. What calls a function of the cell is an action."""
    calls = {name for node in ast.walk(statement) for name in _called(node)}
    if calls & defined:
        return False
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return bool(_binds(statement) & read)
    return isinstance(statement, ast.Expr) and bool(calls & bound)


def _called(node: ast.AST) -> Set[str]:
    """Return the name that a call begins with: `parser` in `parser.add_argument()`."""
    if not isinstance(node, ast.Call):
        return set()
    function = node.func
    while isinstance(function, ast.Attribute):
        function = function.value
    return {function.id} if isinstance(function, ast.Name) else set()


def _reads(statement: ast.stmt) -> Set[str]:
    names = (n for n in ast.walk(statement) if isinstance(n, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Load)}


def _binds(statement: ast.stmt) -> Set[str]:
    names = (n for n in ast.walk(statement) if isinstance(n, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _only_defines(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return node.value is not None and _is_constant(node.value)
    if isinstance(node, ast.If):
        return all(map(_only_defines, node.body + node.orelse))
    if isinstance(node, ast.Try):
        handled = [s for handler in node.handlers for s in handler.body]
        return all(map(_only_defines, node.body + handled + node.orelse + node.finalbody))
    return isinstance(node, (*_DEFINITIONS, ast.Pass))


def _is_main_guard(node: ast.stmt) -> bool:
    """Return whether it is `if __name__ == "__main__"` or the like."""
    if not isinstance(node, ast.If):
        return False
    return any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))


def _is_constant(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True
