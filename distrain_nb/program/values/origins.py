"""Where the text of a function is that no name leads to, and what must travel with it."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from distrain_nb.program.notebook.code_objects import same_code
from distrain_nb.worker.fingerprint import registered
from distrain_nb.worker.functions import REGISTERED, FunctionText, code_of, parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType, FunctionType

    from distrain_nb.program.notebook.cells import Cell

_LATE_ANNOTATIONS = __import__("__future__").annotations.compiler_flag
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# What is made with the class, or belongs to the Python that made it.
_OF_CLASS = {
    *("__dict__", "__weakref__", "__slots__", "__static_attributes__", "__firstlineno__"),
    *("__annotate__", "__annotate_func__", "__classcell__", "_abc_impl", "__classdictcell__"),
}


@dataclass
class FunctionTexts:
    """Finds functions in the executed cells, and in files of modules."""

    cells: Sequence[Cell] = ()
    _known: dict[CodeType, FunctionText | None] = field(default_factory=dict)

    def of(self, code: CodeType) -> FunctionText | None:
        """Return where the function's text is; None where no cell or file has it."""
        if code not in self._known:
            self._known[code] = self._search(code)
        return self._known[code]

    def _search(self, code: CodeType) -> FunctionText | None:
        lines = tuple(line.rstrip("\n") for line in linecache.getlines(code.co_filename))
        places = _places(lines, code)
        exact = [p for p in places if _makes(p, code, exactly=True)]
        place = next(iter(exact), None)
        if place is None:  # the compiler may have made other code of it beside its cell's imports
            alike = [p for p in places if _makes(p, code, exactly=False)]
            place = alike[0] if len(alike) == 1 else None
        return place and place._replace(label=self._label(place))

    def _label(self, place: FunctionText) -> str:
        """Return the cell that has these lines there: its name is the one in tracebacks."""
        for cell in reversed(self.cells):
            lines = cell.source.split("\n")
            if tuple(lines[place.first - 1 : place.first - 1 + len(place.lines)]) == place.lines:
                return cell.label
        return place.label


@lru_cache(maxsize=64)
def _functions(lines: tuple[str, ...]) -> tuple[tuple[ast.AST, str], ...]:
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return ()
    return tuple(_walk(tree, ""))


def _walk(node: ast.AST, owner: str) -> Iterator[tuple[ast.AST, str]]:
    if isinstance(node, _FUNCTIONS):
        yield node, owner
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, node.name if isinstance(node, ast.ClassDef) else owner)


def _places(lines: tuple[str, ...], code: CodeType) -> list[FunctionText]:
    late = bool(code.co_flags & _LATE_ANNOTATIONS)
    places = []
    for node, owner in _functions(lines):
        assert isinstance(node, _FUNCTIONS)
        decorators = getattr(node, "decorator_list", ())
        first = min([node.lineno, *[d.lineno for d in decorators]])
        name = getattr(node, "name", "<lambda>")
        if (name, first) == (code.co_name, code.co_firstlineno) and node.end_lineno:
            text = lines[node.lineno - 1 : node.end_lineno]
            ends = (node.col_offset, node.end_col_offset or 0)
            places.append(FunctionText(code.co_filename, node.lineno, *ends, text, owner, late))
    return places


def _makes(place: FunctionText, code: CodeType, *, exactly: bool) -> bool:
    try:
        made = code_of(parsed(place), place, code.co_freevars)
    except (SyntaxError, LookupError, ValueError):
        return False
    return same_code(made, code) if exactly else made.co_names == code.co_names


def held(function: FunctionType) -> dict[str, Any]:
    """Return the objects that a function holds beside its code."""
    state: dict[str, Any] = {
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "__annotations__": function.__annotations__,
        "dict": vars(function),
    }
    return {name: value for name, value in state.items() if value}


def attributes(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that a class has been given, by its statement and since."""
    slots = set(_slots(cls))
    for name, value in vars(cls).items():
        if name not in _OF_CLASS and name not in slots:
            yield name, value
    if registered(cls):
        yield REGISTERED, registered(cls)


def made_with(cls: type) -> dict[str, Any]:
    """Return those that must be there when a class is made."""
    slots = vars(cls).get("__slots__")
    start = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return start if slots is None else {**start, "__slots__": slots}


def _slots(cls: type) -> Iterable[str]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots
