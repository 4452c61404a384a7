"""Whether the text of a definition is sure to make what the notebook has."""

from __future__ import annotations

import ast
import builtins
import inspect
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.program.values.origins import attributes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.values.pickling import Definitions

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OWN_WRAPPERS = ("__func__", "fget", "func", "__wrapped__")  # of staticmethod, property, partial …
# What every class gets, whatever its statement says.
_GIVEN = {
    *("__module__", "__qualname__", "__doc__", "__annotations__", "__orig_bases__"),
    *("__parameters__", "__abstractmethods__", "__match_args__", "__hash__", "__type_params__"),
}


def makes_the_same(chain: Sequence[Executed], value: Any, definitions: Definitions) -> bool:
    """Return whether the statements of a definition, run again, surely give an equal object.

    False also where that can't be seen: for attributes that the text computes, for what the
    notebook's own decorators give, and where something has been changed since.
    """
    node = chain[0].statement.node
    if len(chain) > 1 or chain[0].statement.notes:
        return False
    if isinstance(value, type) and isinstance(node, ast.ClassDef):
        return _same_class(node, value, definitions)
    if isinstance(value, FunctionType) and isinstance(node, _FUNCTIONS):
        return _same_function(node, value, definitions)
    if isinstance(value, FunctionType) and isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Lambda) and _same_function(node.value, value, definitions)
    return not isinstance(value, (type, FunctionType))


def _same_class(node: ast.ClassDef, cls: type, definitions: Definitions) -> bool:
    if node.keywords or not _decorated_plainly(node, definitions):
        return False
    if any(definitions.owns(b) and definitions.path(b) is None for b in cls.__bases__):
        return False
    body = _body(node)
    if body is None:
        return False
    return not any(True for _ in _unlike(body, node, cls, definitions))


def has_lost_bases(cls: type, definitions: Definitions) -> bool:
    """Return whether a class was made of one whose name means another by now."""
    return any(definitions.owns(b) and not [*definitions.paths(b)] for b in cls.__bases__)


def differing(node: ast.ClassDef, cls: type, definitions: Definitions) -> list[str]:
    """Return the attributes of a class that its statement does not surely give."""
    body = _body(node)
    return [] if body is None else list(_unlike(body, node, cls, definitions))


def _unlike(
    body: Mapping[str, ast.AST], node: ast.ClassDef, cls: type, definitions: Definitions
) -> Iterator[str]:
    has = {name: value for name, value in attributes(cls) if name not in _GIVEN}
    by_decorator = {n for n in has if n not in body} if node.decorator_list else set()
    yield from {*body} - {*has, "__slots__"}
    for name, value in has.items():
        if name not in by_decorator and not _same_attribute(body.get(name), value, definitions):
            yield name


def _body(node: ast.ClassDef) -> dict[str, ast.AST] | None:
    """What a class's statement gives its attributes; None where that is not plain to see."""
    body: dict[str, ast.AST] = {}
    for statement in node.body:
        if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
            body[_private(statement.name, node)] = statement
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if statement.value is not None:
                body[_private(statement.target.id, node)] = statement.value
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if not isinstance(target, ast.Name):
                    return None
                body[_private(target.id, node)] = statement.value
        elif not isinstance(statement, (ast.Pass, ast.Expr)):
            return None
    return body


def _private(name: str, node: ast.ClassDef) -> str:
    if name.startswith("__") and not name.endswith("__"):
        return f"_{node.name.lstrip('_')}{name}"
    return name


def _same_attribute(node: ast.AST | None, value: Any, definitions: Definitions) -> bool:
    if isinstance(node, _FUNCTIONS):
        return _same_function(node, value, definitions)
    if isinstance(node, ast.ClassDef):
        return isinstance(value, type) and _same_class(node, value, definitions)
    return isinstance(node, ast.expr) and (
        is_literal(node, value) or _named(node, definitions.namespace) is value
    )


def _named(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """What `dict.get` or `torch.float32` is; an object of its own for other expressions."""
    if isinstance(node, ast.Name):
        found = namespace.get(node.id, getattr(builtins, node.id, None))
        is_its_own = isinstance(found, ModuleType) or found is getattr(builtins, node.id, None)
        return found if is_its_own else object()
    if isinstance(node, ast.Attribute):
        return getattr(_named(node.value, namespace), node.attr, object())
    return object()


def _same_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, value: Any, definitions: Definitions
) -> bool:
    if not _decorated_plainly(node, definitions):
        return False
    decorated = bool(getattr(node, "decorator_list", ()))
    function = _unwrapped(value) if decorated else value
    if not isinstance(function, FunctionType):
        return decorated
    names = [a.arg for a in node.args.kwonlyargs]
    given = zip(names, node.args.kw_defaults, strict=True)
    keywords = {name: default for name, default in given if default is not None}
    has = function.__kwdefaults__ or {}
    return (
        function.__name__ == getattr(node, "name", "<lambda>")
        and function.__code__.co_firstlineno == _first(node)
        and (decorated or not vars(function))
        and _are_literals(node.args.defaults, function.__defaults__ or ())
        and has.keys() == keywords.keys()
        and all(is_literal(keywords[name], has[name]) for name in has)
        and _closes_over_its_class(function.__code__)
    )


def _closes_over_its_class(code: CodeType) -> bool:
    return set(code.co_freevars) <= {"__class__"}


def _first(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> int:
    return min([node.lineno, *[int(d.lineno) for d in getattr(node, "decorator_list", ())]])


def _unwrapped(value: Any) -> Any:
    for _ in range(10):
        inner = next((getattr(value, n) for n in _OWN_WRAPPERS if hasattr(value, n)), None)
        if inner is None:
            break
        value = inner
    return inspect.unwrap(value) if callable(value) else value


def _decorated_plainly(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda,
    definitions: Definitions,
) -> bool:
    """Return whether all decorators are those of packages: the notebook's own may keep
    something."""
    for decorator in getattr(node, "decorator_list", ()):
        names = [n.id for n in ast.walk(decorator) if isinstance(n, ast.Name)]
        for name in names:
            value = definitions.namespace.get(name)
            kind = value if isinstance(value, (type, FunctionType)) else type(value)
            if name in definitions.namespace and definitions.owns(kind):
                return False
    return True


def _are_literals(nodes: Sequence[ast.expr], values: Sequence[Any]) -> bool:
    return len(nodes) == len(values) and all(map(is_literal, nodes, values))


def is_literal(node: ast.expr, value: Any) -> bool:
    """Return whether an expression that is only written, not computed, is that value."""
    try:
        written = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return False
    return _same_literal(written, value)


def _same_literal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same_literal(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same_literal, one, other))
    return bool(one == other)
