"""Expressions of a text, read without running it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from distrain_nb.layout.formats.python_names import MOST_PARTS, Call, Function, PythonNames, Unread

if TYPE_CHECKING:
    from distrain_nb.types import Unknown

_MOST_NUMBER = 2**63
_ENUMERATIONS = (
    *("AcceleratorType", "Strategy", "GoalType", "ScaleType", "Algorithm", "ObservationNoise"),
    "MeasurementSelectionType",
)
# Of SageMaker Pipelines, by the SDK's reference, with the names of their arguments.
PARAMETER = ("name", "default_value", "enum_values")
_PARAMETERS = ("ParameterString", "ParameterInteger", "ParameterFloat", "ParameterBoolean")
PIPELINE_POSITIONS = dict.fromkeys(_PARAMETERS, PARAMETER)
_HARMLESS = ("print", "display", "pprint", "len", "str", "dict", "list", "sorted", "isinstance")
_OPERATORS: dict[type[ast.AST], Callable[[Unknown, Unknown], Unknown]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda first, second: first in second,
    ast.NotIn: lambda first, second: first not in second,
    ast.BitOr: lambda first, second: {**first, **second},
}


class Expressions(PythonNames):
    """Names with the values of expressions."""

    def _assign(self, target: ast.expr, value: object, owner: object = None) -> None:
        if isinstance(target, ast.Name):
            # `with E(…) as name` mostly gives the object itself, which may be changed by that name.
            self._write(self.names, target.id, owner if isinstance(owner, Call) else value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value if isinstance(value, (list, tuple)) else ()
            same = len(parts) == len(target.elts)
            for number, element in enumerate(target.elts):
                self._assign(element, parts[number] if same else Unread(target.lineno))
        elif isinstance(target, ast.Starred):
            self._assign(target.value, Unread(target.lineno))
        elif isinstance(target, ast.Subscript):
            self._entry(self._value(target.value), self._value(target.slice), value)
        elif isinstance(target, ast.Attribute):
            of = self._value(target.value)
            if isinstance(of, Call):
                self._step(of, Call(target.attr, target.lineno, [value], {}, assigns=True))

    def _entry(self, container: object, key: object, value: object) -> None:
        if (isinstance(container, dict) and is_plain(key)) or (
            isinstance(container, list) and is_index(key, container)
        ):
            self._write(container, key, value)
        else:
            self._taint(container)

    def _value(self, node: ast.expr) -> object:
        reader = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if reader is not None:
            try:
                return reader(node)
            except (TypeError, ValueError, ArithmeticError, LookupError):
                return Unread()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child)
        return Unread()

    def _of_constant(self, node: ast.Constant) -> object:
        return Unread() if node.value is ... else node.value

    def _of_name(self, node: ast.Name) -> object:
        return self.names.get(node.id, Unread())

    def _of_dict(self, node: ast.Dict) -> object:
        entries: dict[object, object] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self._value(value_node)
            if key_node is None:
                entries |= value if isinstance(value, dict) else {stars(value_node): Unread()}
                continue
            key = self._value(key_node)
            entries[key if is_plain(key) else ast.unparse(key_node)] = (
                value if is_plain(key) else Unread()
            )
        return entries

    def _of_list(self, node: ast.List) -> object:
        members: list[object] = []
        for element in node.elts:
            value = self._value(element.value if isinstance(element, ast.Starred) else element)
            if not isinstance(element, ast.Starred):
                members.append(value)
            elif isinstance(value, (list, tuple)) and len(members) + len(value) <= MOST_PARTS:
                members += value
            else:
                members.append(Unread())
        return members

    def _of_tuple(self, node: ast.Tuple) -> object:
        return tuple(self._value(element) for element in node.elts)

    def _of_namedexpr(self, node: ast.NamedExpr) -> object:
        value = self._value(node.value)
        self._assign(node.target, value)
        return value

    def _of_attribute(self, node: ast.Attribute) -> object:
        of = self._value(node.value)
        above = getattr(node.value, "attr", getattr(node.value, "id", None))
        if above in _ENUMERATIONS:
            return node.attr
        if isinstance(of, Call) and of.makes:
            return of.settled().get(node.attr, Unread())
        if isinstance(of, str) and node.attr in ("name", "value"):  # of an enumeration
            return of
        return Unread(of.line if isinstance(of, Unread) else None)

    def _of_subscript(self, node: ast.Subscript) -> object:
        of, key = self._value(node.value), self._value(node.slice)
        if isinstance(of, (dict, list, tuple, str)) and not isinstance(key, (Unread, Call)):
            return of[key]  # type: ignore[call-overload,index]
        return Unread()

    def _of_unaryop(self, node: ast.UnaryOp) -> object:
        value = self._value(node.operand)
        if isinstance(value, (Unread, Call)):
            return Unread(value.line)
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(node.op, ast.USub) else +value  # type: ignore[operator]

    def _of_binop(self, node: ast.BinOp) -> object:
        return self._calculated(node.op, self._value(node.left), self._value(node.right))

    def _of_compare(self, node: ast.Compare) -> object:
        first, rest = (
            self._value(node.left),
            [self._value(comparator) for comparator in node.comparators],
        )
        return self._calculated(node.ops[0], first, rest[0]) if len(rest) == 1 else Unread()

    def _of_boolop(self, node: ast.BoolOp) -> object:
        value: object = None
        for operand in node.values:
            value = self._value(operand)
            if isinstance(value, (Unread, Call)):
                return Unread(value.line)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _of_ifexp(self, node: ast.IfExp) -> object:
        test = self._value(node.test)
        yes, no = self._value(node.body), self._value(node.orelse)
        return Unread(node.lineno) if isinstance(test, (Unread, Call)) else yes if test else no

    def _of_joinedstr(self, node: ast.JoinedStr) -> object:
        text = ""
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            value = self._value(inner)
            is_plain = not isinstance(part, ast.FormattedValue) or (
                part.format_spec is None and part.conversion == -1
            )
            if not is_plain or not isinstance(value, (str, int, float)):
                return Unread(value.line if isinstance(value, Unread) else None)
            text += str(value)
            if len(text) > MOST_PARTS:
                return Unread()
        return text

    def _of_comprehension(self, node: Unknown) -> object:
        targets = [generator.target for generator in node.generators]
        inner = [child for child in (getattr(node, "elt", None), getattr(node, "key", None),
                 getattr(node, "value", None)) if child is not None]  # fmt: skip
        for generator in node.generators:
            self._value(generator.iter)
        self._inside(inner, targets)
        return Unread()

    _of_listcomp = _of_setcomp = _of_dictcomp = _of_generatorexp = _of_comprehension

    def _inside(self, nodes: list[ast.expr], targets: list[ast.expr]) -> None:
        """Read expressions whose own names, the targets, nobody knows."""

        def read() -> None:
            for target in targets:
                self._assign(target, Unread(target.lineno))
            for node in nodes:
                self._value(node)

        self._mark(change for change in self._block(read) if change.container is not self.names)

    def _of_lambda(self, node: ast.Lambda) -> object:
        self._inside([node.body], parameters(node.args))
        return Unread()

    def _calculated(self, sign: ast.AST, first: object, second: object) -> object:
        """Apply an operator to two known values, as long as the result stays small."""
        for value in (first, second):
            if isinstance(value, (Unread, Call, Function)):
                return Unread(self._line)
        if isinstance(sign, ast.Mod) and not isinstance(first, (int, float)):
            return Unread(self._line)  # a text that is formatted, of any width
        if isinstance(sign, ast.Mult) and not _are_numbers(first, second):
            return Unread(self._line)
        try:
            result = _OPERATORS[type(sign)](first, second)
        except (TypeError, ArithmeticError, LookupError, ValueError):
            return Unread(self._line)
        if isinstance(result, int) and abs(result) > _MOST_NUMBER:
            return Unread(self._line)
        is_long = isinstance(result, (str, list, tuple, dict)) and len(result) > MOST_PARTS
        return Unread(self._line) if is_long else result


def parameters(arguments: ast.arguments) -> list[ast.expr]:
    """Return the parameters of a function as targets of an assignment."""
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    more = [star for star in (arguments.vararg, arguments.kwarg) if star is not None]
    return [ast.Name(star.arg, ast.Store(), lineno=star.lineno) for star in (*listed, *more)]


def stars(node: ast.expr) -> str:
    """Return the name of a mapping with unknown keys."""
    return f"**{ast.unparse(node)}"


def is_plain(key: object) -> bool:
    """Return whether it may be a key: a text, a number, a truth value or None."""
    return key is None or isinstance(key, (str, int, float))


def is_index(key: object, container: list[object]) -> bool:
    """Return whether a list has an item at it."""
    return isinstance(key, int) and -len(container) <= key < len(container)


def _are_numbers(first: object, second: object) -> bool:
    return isinstance(first, (int, float)) and isinstance(second, (int, float))


def known_values(
    values: Mapping[str, object], path: str = ""
) -> tuple[dict[str, Unknown], list[str]]:
    """Return a mapping without what can't be read, and the paths of that."""
    clean: dict[str, object] = {}
    unknown: list[str] = []
    for key, inner in values.items():
        value, unread = _known_value(inner, f"{path}.{key}" if path else str(key))
        unknown += unread
        if not isinstance(value, Unread):
            clean[key] = value
    return clean, unknown


def _default(parameter: Call, path: str) -> tuple[object, list[str]]:
    """Return a pipeline parameter's default, and a note that an execution may set another value."""
    default = parameter.values.get("default_value")
    name = parameter.values.get("name")
    if not isinstance(name, str) or not isinstance(default, (str, int, float)):
        return Unread(), [path]
    return default, [f"{path}: the pipeline's parameter {name} (its default is read)"]


def _known_value(value: object, path: str) -> tuple[object, list[str]]:
    if isinstance(value, Unread):
        return value, [value.path(path)]
    if isinstance(value, Call):
        if value.name in _PARAMETERS:
            return _default(value, path)
        if not value.makes:
            return Unread(), [path]
        inner, unknown = known_values(value.settled(), path)
        missing = dict.fromkeys(value.values, None)
        return Call(value.name, value.line, [], {**missing, **inner}), unknown
    if isinstance(value, dict):
        return known_values(value, path)
    if isinstance(value, (list, tuple)):
        parts = [_known_value(member, f"{path}[{number}]") for number, member in enumerate(value)]
        unknown = [name for _, names in parts for name in names]
        if any(isinstance(part, dict) for part, _ in parts):
            return [{} if isinstance(part, Unread) else part for part, _ in parts], unknown
        if any(isinstance(part, Unread) for part, _ in parts):
            return Unread(), [path, *unknown]
        return type(value)(part for part, _ in parts), unknown
    return (Unread(), [path]) if isinstance(value, Function) else (value, [])
