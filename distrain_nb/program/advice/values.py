"""What an expression may stand for: names are followed back to what made their values.

A name is looked up in its function, then around it. Of several values it may have any that can
reach the place where it is read.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.program.advice.reading import (
    LOOPS,
    Function,
    bindings,
    keyword,
    last,
    parameters,
    preceding,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from distrain_nb.program.advice.reading import Code

_ANY = None  # the place of an item that a loop takes, or one by a name
_Path = tuple[int | None, ...]
_WHOLE: _Path = ()


class Made(NamedTuple):
    """An expression that nothing leads further back from: a call, a literal, a name that is not
    bound here; with a path, an item of it."""

    node: ast.expr
    path: _Path

    @property
    def key(self) -> tuple[object, ...]:
        """The same for the same value: names are the same by their text, calls by their place."""
        named = isinstance(self.node, (ast.Name, ast.Attribute))
        return (ast.unparse(self.node) if named else self.node, self.path)


class _Bound(NamedTuple):
    value: ast.expr
    path: _Path
    by: ast.AST


@dataclass(frozen=True, eq=False)
class Values:
    """Follows values through names, parameters, returned values and the items of literals.

    `through` are methods that give what they are called on in another form; functions of PyTorch
    with such a name give their first argument.
    """

    code: Code
    through: frozenset[str] = frozenset()

    def of(self, node: ast.expr) -> list[Made]:
        """All that an expression may stand for."""
        return list(self._made(node, _WHOLE, set()))

    def nodes(self, node: ast.expr | None) -> list[ast.expr]:
        """The same without the paths; empty for no expression."""
        return [made.node for made in self.of(node)] if node is not None else []

    def reaching(self, name: ast.expr) -> list[ast.expr]:
        """The values that a name is set to before it is read, one step back."""
        return [bound.value for bound in self._bound_to(name)]

    def stored(self, name: ast.expr) -> list[ast.expr]:
        """What is put under keys of a name: `state["model"] = …`."""
        texts = [text for text in self._bindings if text.startswith(f"{ast.unparse(name)}[")]
        return [bound.value for text in texts for bound in self._bindings[text]]

    def arguments(self, name: ast.expr) -> list[tuple[ast.Call, ast.expr]]:
        """The calls that give a parameter its value, each with that value."""
        function = self.code.function_of(name)
        if not (function and isinstance(name, ast.Name)):
            return []
        return list(self._given(function, name.id))

    def _made(self, node: ast.expr, path: _Path, seen: set[ast.expr]) -> Iterator[Made]:
        if node in seen:
            return
        seen.add(node)
        steps = list(self._back(node, path))
        if not steps:
            yield Made(node, path)
        for step, rest in steps:
            yield from self._made(step, rest, seen)

    def _back(self, node: ast.expr, path: _Path) -> Iterable[tuple[ast.expr, _Path]]:
        """What an expression, or an item of it, has its value from; nothing if that is open."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            return [(each, path[1:]) for each in _items(node, path[0])] if path else []
        if isinstance(node, ast.IfExp):
            return [(node.body, path), (node.orelse, path)]
        if isinstance(node, ast.BoolOp):
            return [(each, path) for each in node.values]
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Starred)):
            return [(node.value, path)]
        if isinstance(node, ast.Call):
            same = self._same(node)
            return [(value, path) for value in (same or self._returned(node))]
        return self._named(node, path)

    def _named(self, node: ast.expr, path: _Path) -> Iterable[tuple[ast.expr, _Path]]:
        found = [(bound.value, (*bound.path, *path)) for bound in self._bound_to(node)]
        if found or not isinstance(node, ast.Subscript):
            return found
        if isinstance(node.slice, ast.Slice):
            return [(node.value, path)]
        return [(node.value, (_index(node.slice), *path))]

    def _same(self, call: ast.Call) -> list[ast.expr]:
        name = self.code.name(call.func)
        if last(name) not in self.through:
            return []
        if name.startswith("torch.") and "()" not in name:
            return call.args[:1]
        return [call.func.value] if isinstance(call.func, ast.Attribute) else []

    def _returned(self, call: ast.Call) -> list[ast.expr]:
        function = self.code.body_of(call)
        if function is None or function.name == "__init__":
            return []
        returns = (node for node in ast.walk(function) if isinstance(node, ast.Return))
        mine = (node for node in returns if self.code.function_of(node) is function)
        return [node.value for node in mine if node.value is not None]

    def _given(self, function: Function, name: str) -> Iterator[tuple[ast.Call, ast.expr]]:
        if name in _all_parameters(function):
            for call in self._calls.get(self._called_as(function), ()):
                value = _argument(call, function, name)
                if value is not None:
                    yield call, value

    def _called_as(self, function: Function) -> str:
        holder = self.code.parents[function]
        makes = function.name == "__init__" and isinstance(holder, ast.ClassDef)
        return holder.name if makes else function.name  # type: ignore[attr-defined]

    @cached_property
    def _calls(self) -> Mapping[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = {}
        for call in self.code.calls:
            found.setdefault(last(self.code.name(call.func)), []).append(call)
        return found

    @cached_property
    def _bindings(self) -> Mapping[str, list[_Bound]]:
        found: dict[str, list[_Bound]] = {}
        for node in self.code.nodes:
            for text, bound in self._binds(node):
                found.setdefault(text, []).append(bound)
        return found

    def _binds(self, node: ast.AST) -> Iterator[tuple[str, _Bound]]:
        for target, value in bindings(node):
            for text, path in _spread(target, (_ANY,) if isinstance(node, LOOPS) else _WHOLE):
                yield text, _Bound(value, path, node)
        function = self.code.function_of(node) if isinstance(node, ast.arg) else None
        if isinstance(node, ast.arg) and function:
            for _, value in self._given(function, node.arg):
                yield node.arg, _Bound(value, _WHOLE, node)

    def _bound_to(self, node: ast.expr) -> list[_Bound]:
        """What sets a name, an attribute or an item where it can be read here."""
        found = self._bindings.get(ast.unparse(node), [])
        if not isinstance(node, ast.Name):
            return self._of_own_class(node, found)
        for function in self._functions_around(node):
            mine = [bound for bound in found if self.code.function_of(bound.by) is function]
            if mine:
                return self._reaching(node, mine)
            if function and node.id in _all_parameters(function):
                return []
        return found  # set in another function, for all

    def _functions_around(self, node: ast.AST) -> Iterator[Function | ast.Lambda | None]:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        yield from (outer for outer, _ in self.code.around(node) if isinstance(outer, kinds))
        yield None

    def _of_own_class(self, node: ast.expr, found: list[_Bound]) -> list[_Bound]:
        mine = [bound for bound in found if self._class_of(bound.by) is self._class_of(node)]
        return mine or found

    def _class_of(self, node: ast.AST) -> ast.AST | None:
        outer = (outer for outer, _ in self.code.around(node) if isinstance(outer, ast.ClassDef))
        return next(outer, None)

    def _reaching(self, name: ast.Name, found: list[_Bound]) -> list[_Bound]:
        """The bindings that none other hides, of those in the function that a name is read in."""
        if self.code.function_of(name) is not self.code.function_of(found[0].by):
            return found
        around = list(self.code.around(name))
        sure = {id(each) for outer, child in around for each in preceding(outer, child)}
        hiding = [b for b in found if id(b.by) in sure and not isinstance(b.by, ast.AugAssign)]
        start = max(map(_end, hiding), default=(0, 0))
        loops = {id(outer) for outer, _ in around if isinstance(outer, (ast.For, ast.While))}
        return [b for b in found if _end(b) >= start and self._comes_first(b, name, loops)]

    def _comes_first(self, bound: _Bound, name: ast.Name, loops: set[int]) -> bool:
        if self.code.apart(bound.by, name):
            return False
        if _end(bound) <= (name.lineno, name.col_offset) or isinstance(bound.by, ast.comprehension):
            return True
        return any(id(outer) in loops for outer, _ in self.code.around(bound.by))


def _end(bound: _Bound) -> tuple[int, int]:
    """From where on a binding holds."""
    inner = (ast.NamedExpr, ast.withitem, *LOOPS)
    node = bound.value if isinstance(bound.by, inner) else bound.by
    return (node.end_lineno or 0, node.end_col_offset or 0)  # type: ignore[attr-defined]


def _spread(target: ast.expr, path: _Path) -> Iterator[tuple[str, _Path]]:
    """The names of a target, each with its place in the value."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for number, each in enumerate(target.elts):
            yield from _spread(each, (*path, number))
    else:
        yield ast.unparse(target), path


def _items(node: ast.List | ast.Tuple | ast.Set | ast.Dict, index: int | None) -> list[ast.expr]:
    elements = node.values if isinstance(node, ast.Dict) else node.elts
    known = index is not _ANY and not isinstance(node, ast.Dict)
    return elements[index:][:1] if known else elements


def _index(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else _ANY


def _all_parameters(function: Function | ast.Lambda) -> list[str]:
    return [*parameters(function), *(argument.arg for argument in function.args.kwonlyargs)]


def _argument(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """What a call gives for a parameter, by position, by name or by default."""
    named = keyword(call, name)
    if named is not None:
        return named
    given = dict(zip(parameters(function), call.args, strict=False))
    return given[name] if name in given else _defaults(function).get(name)


def _defaults(function: Function) -> dict[str, ast.expr]:
    every = parameters(function)
    by_position = dict(zip(reversed(every), reversed(function.args.defaults), strict=False))
    by_name = zip((each.arg for each in function.args.kwonlyargs), function.args.kw_defaults)  # noqa: B905
    return by_position | {name: value for name, value in by_name if value is not None}
