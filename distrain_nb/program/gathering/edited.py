"""Modules beside the notebook whose files have another text by now than what the notebook has."""

from __future__ import annotations

import ast
import sys
import tokenize
from functools import lru_cache
from importlib.util import decode_source
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.notebook.code_objects import same_code
from distrain_nb.program.python.scopes import bound_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from types import ModuleType

    from distrain_nb.program.notebook.world import World

_SURE = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.Import, ast.ImportFrom, ast.Assign),
)


def edited(modules: Collection[str], world: World) -> Iterator[Finding]:
    """Yield a warning for each module whose file has another text by now: ranks have the one that
    the notebook imported. Where nobody kept it, they import the file as it is."""
    for name in sorted(modules & sys.modules.keys()):
        module = sys.modules[name]
        imported = world.modules.texts.get(Path(str(module.__file__)).absolute())
        is_kept = world.seen.observer.modules.imported.is_known(name)
        if is_kept and imported is None:
            continue
        path = next(_unlike(module), "") or next(_lacked(module), "")
        if imported is not None and not path and not _is_same(imported, str(module.__file__)):
            path = name
        if path:
            has = ", which the run imports" if imported is None else ": ranks have this notebook's"
            message = (
                f"`{path}` has another text in the module's file by now{has}. Run"
                f" importlib.reload({name}) to see the file's here too"
            )
            yield Finding("capture.rebound", Severity.WARNING, name, message)


def _unlike(module: ModuleType) -> Iterator[str]:
    """Yield the functions of a module that its file has otherwise by now."""
    codes = [(path, function.__code__) for path, function in functions_of(module)]
    texts = _codes_of(codes[0][1].co_filename) if codes else {}
    for path, code in codes if texts else ():
        if not any(same_code(text, code) for text in texts.get(code.co_name, ())):
            yield f"{module.__name__}.{path}"


def _lacked(module: ModuleType) -> Iterator[str]:
    """Yield the names that a module lacks, and that its file surely gives by now."""
    try:
        names = _given_by(Path(str(module.__file__)).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for name in sorted(names - vars(module).keys()):
        yield f"{module.__name__}.{name}"


@lru_cache(maxsize=1024)
def _given_by(text: bytes) -> frozenset[str]:
    """Return the names that a module's text surely gives: no statement deletes them."""
    tree = ast.parse(text)
    names = bound_names([node for node in tree.body if isinstance(node, _SURE)])
    deleted = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and type(n.ctx) is ast.Del}
    return frozenset(names - deleted - {"*"})


def _is_same(text: bytes, file: str) -> bool:
    """Return whether a text and that in a file are one to Python."""
    try:
        there = _codes_of(file)["<module>"]
        return same_code(_codes_in(decode_source(text))["<module>"][0], there[0])
    except (KeyError, SyntaxError, ValueError):
        return False


def functions_of(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """Yield a module's functions, and its classes' methods, by their paths."""
    for name, value in [*vars(module).items()]:
        inside = [*vars(value).items()] if isinstance(value, type) else []
        for path, part in [(name, value), *((f"{name}.{n}", part) for n, part in inside)]:
            if type(part) is FunctionType and part.__code__.co_filename == module.__file__:
                yield path, part


def _codes_of(file: str) -> Mapping[str, list[CodeType]]:
    """Return the code in a file by its names; nothing of a file that can't be read."""
    try:
        with tokenize.open(file) as text:
            return _codes_in(text.read())
    except (OSError, SyntaxError, ValueError):
        return {}


@lru_cache(maxsize=1024)  # to compile all modules of a project takes longer than a run's start
def _codes_in(text: str) -> Mapping[str, list[CodeType]]:
    codes: dict[str, list[CodeType]] = {}
    waiting = [compile(text, "", "exec", dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        codes.setdefault(code.co_name, []).append(code)
        waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return codes
