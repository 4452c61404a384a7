"""Code objects: whether an object is what a statement of the notebook made."""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import itertools
from functools import lru_cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.notebook.history import Statement

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def made_by(statement: Statement, name: str, obj: Any) -> bool:
    """Return whether the statement, which binds the name, can have made the object.

    A plain `def` must have the object's very code, a class its methods' names. A decorator may
    give anything that can be called.
    """
    node = statement.node
    if isinstance(node, ast.ClassDef):
        if isinstance(obj, type):
            methods = (s for s in node.body if isinstance(s, _FUNCTIONS) and not s.decorator_list)
            names = {method.name for method in methods if not method.name.startswith("__")}
            return obj.__name__ == node.name and names <= vars(obj).keys()
        return bool(node.decorator_list)
    if isinstance(node, _FUNCTIONS):
        function = inspect.unwrap(obj) if node.decorator_list and callable(obj) else obj
        if type(function) is FunctionType and function.__name__ == node.name:
            if node.decorator_list or statement.notes:  # which replace it by other code
                return True
            ways = itertools.product((0, __future__.annotations.compiler_flag), (True, False))
            texts = (_code(statement, flag, alone=alone) for flag, alone in ways)
            return any(same_code(function.__code__, text) for text in texts)
        return bool(node.decorator_list)
    return name in statement.binds


@lru_cache(maxsize=4096)
def _code(statement: Statement, flags: int, *, alone: bool) -> CodeType:
    """Return the code of the function or class that a statement defines.

    IPython compiles each statement alone; in a script, calls of what the module imports become
    other code.
    """
    beside = [ast.Import([ast.alias(name)]) for name in sorted(statement.imported)]
    body = [statement.node] if alone else [*beside, statement.node]
    module = ast.fix_missing_locations(ast.Module(body, []))
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    name = getattr(statement.node, "name", "")
    whole = compile(module, statement.label, "exec", flags, dont_inherit=True)
    return next(code for code in codes_in(whole) if code.co_name == name)


def same_code(one: CodeType, other: CodeType) -> bool:
    """Return whether two functions do the same, wherever they stand."""
    return _essence(one) == _essence(other)


def _essence(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(
        _essence(c) if isinstance(c, CodeType) else (type(c), c) for c in code.co_consts
    )
    names = (code.co_name, code.co_varnames, code.co_names, code.co_freevars, code.co_cellvars)
    return (*names, code.co_argcount, code.co_kwonlyargcount, code.co_code, constants)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code, and that of functions and classes inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def global_names(code: CodeType) -> set[str]:
    """Return the names that a function looks up in its module when it is called."""
    loads = ("LOAD_GLOBAL", "LOAD_NAME")
    every = (i for inner in codes_in(code) for i in dis.get_instructions(inner))
    return {i.argval for i in every if i.opname in loads}
