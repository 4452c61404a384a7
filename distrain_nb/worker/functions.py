"""Functions and classes that no name leads to, as their source: lambdas, closures, what is defined
inside functions.

A pickle has a function's text, with its place in its cell, and what it holds: defaults, closure,
attributes. By hand, as cloudpickle writes bytecode, which another version of Python can't run, and
must itself be installed where ranks run; and with the text, tracebacks have the cell's lines.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import importlib
import linecache
import os
import types
from types import CellType, CodeType, FunctionType
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

labels: Set[str] = set()  # file names of the program's own code in tracebacks
FOLDER_VARIABLE = "DISTRAIN_PROGRAM"  # where processes that the program spawns find it
Node = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]
_LATE = __future__.annotations.compiler_flag
_HOOK = "__init_subclass__"
REGISTERED = "classes by `register`"  # among the attributes of an abstract class


def is_of_program(file: str) -> bool:
    """Return whether a file of a frame is a cell, or a module that travels with the program."""
    return file in labels or file.startswith(os.environ.get(FOLDER_VARIABLE, "\0") + os.sep)


class NoAttribute:
    """Stands in a pickle for an attribute that a definition has no more."""


class FunctionText(NamedTuple):
    """The place of a function's text: `lines` of a file or cell, `first` (1-based) and on.

    `column` and `end` are in bytes of the first and last of them. `owner` is the class around it,
    whose name is part of private names.
    """

    label: str
    first: int
    column: int
    end: int
    lines: Tuple[str, ...]
    owner: str = ""
    late_annotations: bool = False


def make_function(
    main: Mapping[str, Any],
    module: str,
    origin: Sequence[Any],
    names: Tuple[str, str],
    cells: Mapping[str, CellType],
) -> FunctionType:
    """Return a function of its text. `names` are its `__name__` and `__qualname__`; `module` is
    where its globals are, "" for `main`."""
    place = FunctionText(*origin)
    code = code_of(parsed(place), place, list(cells))
    tell_linecache(place.label, place.first, place.lines)
    namespace = vars(importlib.import_module(module)) if module else main
    closure = tuple(cells[name] for name in code.co_freevars)
    function = FunctionType(code, namespace, names[0], None, closure)  # type: ignore[arg-type]
    function.__qualname__ = names[1]
    return function


def set_function(function: FunctionType, state: Mapping[str, Any]) -> None:
    """Give a function what it holds: its attributes by their names, "dict" those of its own."""
    for name, value in state.items():
        if name == "dict":
            vars(function).update(value)
        else:
            setattr(function, name, value)


def set_cell(cell: CellType, contents: Tuple[Any, ...]) -> None:
    """Fill a cell; nothing of one that was empty."""
    for value in contents:
        cell.cell_contents = value


def make_class(
    metaclass: type, name: str, bases: Tuple[type, ...], at_once: Mapping[str, Any]
) -> type:
    """Return a class without its attributes, but for those that must be there `at_once`. What its
    bases do when a class is made of them they have done in the notebook, and it is in their
    state."""
    with without_hooks([cls for base in bases for cls in base.__mro__]):
        return types.new_class(name, bases, {"metaclass": metaclass}, lambda b: b.update(at_once))


@contextlib.contextmanager
def without_hooks(classes: Iterable[type]) -> Iterator[None]:
    """Have classes do nothing meanwhile when another class is made of them."""
    hooks = {cls: vars(cls)[_HOOK] for cls in classes if type(vars(cls).get(_HOOK)) is classmethod}
    for cls in hooks:
        setattr(cls, _HOOK, _no_hook)
    try:
        yield
    finally:
        for cls, hook in hooks.items():
            setattr(cls, _HOOK, hook)


@classmethod  # type: ignore[misc]
def _no_hook(cls: Any, **options: Any) -> None:
    pass


def set_class(cls: type, state: Mapping[str, Any]) -> None:
    """Give a class its attributes."""
    for name, value in state.items():
        if name == REGISTERED:
            for item in value:
                cls.register(item)  # type: ignore[attr-defined]
        else:
            setattr(cls, name, value)


def parsed(origin: FunctionText) -> Node:
    """Return the function's node, on its own lines and columns."""
    lines = [line.encode() for line in origin.lines]
    lines[-1] = lines[-1][: origin.end]
    lines[0] = lines[0][origin.column :]
    text = b"\n".join(lines).decode()
    if text.startswith("lambda"):
        node: Any = ast.parse(f"({text}\n)", mode="eval").body
        moved = origin.column - 1
    else:
        node = ast.parse(text).body[0]
        moved = origin.column
    for inner in ast.walk(node):
        for line, column in (("lineno", "col_offset"), ("end_lineno", "end_col_offset")):
            if getattr(inner, line, None) == 1:
                setattr(inner, column, getattr(inner, column) + moved)
    ast.increment_lineno(node, origin.first - 1)
    return node  # type: ignore[no-any-return]


def code_of(node: Node, origin: FunctionText, free: Sequence[str]) -> CodeType:
    """Return a function's code, where those names are variables of functions around it. Changes the
    node: what belongs to the definition, not to the code, is left out."""
    name = getattr(node, "name", "<lambda>")
    arguments = node.args
    arguments.defaults = [_none(node) for _ in arguments.defaults]
    arguments.kw_defaults = [default and _none(node) for default in arguments.kw_defaults]
    if not isinstance(node, ast.Lambda):
        node.decorator_list, node.returns = [], None
        every = [*getattr(arguments, "posonlyargs", ()), *arguments.args, *arguments.kwonlyargs]
        for argument in (*every, *filter(None, (arguments.vararg, arguments.kwarg))):
            argument.annotation = None
    outer = ast.parse(f"def _({', '.join(free)}): pass").body[0]
    body: ast.stmt = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    outer.body = [ast.copy_location(body, node)]  # type: ignore[attr-defined]
    if origin.owner:
        cls: Any = ast.parse(f"class {origin.owner}: pass").body[0]
        cls.body = [outer]
        outer = cls
    flags = _LATE if origin.late_annotations else 0
    module = ast.Module([outer], [])
    return _inside(compile(module, origin.label, "exec", flags, dont_inherit=True), name)


def _none(node: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Constant(None), node)


def _inside(code: CodeType, name: str) -> CodeType:
    """Return the function's code, the first of its name inside the one that was made around it."""
    waiting = [(code, False)]
    while waiting:
        outer, within = waiting.pop(0)
        for inner in outer.co_consts:
            if isinstance(inner, CodeType):
                if within and inner.co_name == name:
                    return inner
                waiting.append((inner, within or inner.co_name == "_"))
    raise LookupError(name)


def tell_linecache(label: str, first: int, lines: Sequence[str]) -> None:
    """Make lines of a cell known to tracebacks and `inspect`, beside those that are."""
    entry: Optional[Tuple[Any, ...]] = linecache.cache.get(label)
    text: List[str] = list(entry[2]) if entry and len(entry) > 2 else []
    text += ["\n"] * (first - 1 + len(lines) - len(text))
    for number, line in enumerate(lines, first - 1):
        if line.strip():
            text[number] = line + "\n"
    labels.add(label)
    linecache.cache[label] = (sum(map(len, text)), None, text, label)


def builders(main: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the functions that build these objects from a pickle, by the kind it names."""
    return {
        "function": lambda *state: make_function(main, *state),
        "cell": CellType,
        "class": make_class,
        "method": types.MethodType,
    }
