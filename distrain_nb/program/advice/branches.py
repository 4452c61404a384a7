"""Leaves out what a program does not do with the values that it has: the other arms of
`if strategy == "ddp":` where `strategy` is "dp"."""

from __future__ import annotations

import ast
from copy import deepcopy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_UNKNOWN = object()


def taken(tree: ast.Module, varied: Collection[str] = ()) -> ast.Module:
    """The tree without the arms that a comparison with a constant rules out: of names that the
    program sets once, at its top, to a constant, but for those in `varied`."""
    known = {name: value for name, value in _constants(tree).items() if name not in varied}
    if not known:
        return tree
    whole: ast.Module = _Arms(known).visit(deepcopy(tree))  # others read the tree too
    return whole


def _constants(tree: ast.Module) -> dict[str, object]:
    """The names with one value, by the only statement that sets them."""
    set_anywhere = list(_set(ast.walk(tree)))
    found: dict[str, object] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                if isinstance(target, ast.Name) and set_anywhere.count(target.id) == 1:
                    found[target.id] = statement.value.value
    return found


def _set(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every name that is set, once for each place."""
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)):
            yield from [node.name] if node.name else []


class _Arms(ast.NodeTransformer):
    """Puts the arm that is taken in the place of each `if`."""

    def __init__(self, known: Mapping[str, object]) -> None:
        self._known = known

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        holds = self._holds(node.test)
        if holds is None:
            return node
        return (node.body if holds else node.orelse) or ast.copy_location(ast.Pass(), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        holds = self._holds(node.test)
        if holds is None:
            return node
        return node.body if holds else node.orelse

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        value = self._value(node.subject)
        for case in node.cases:
            matches = _matches(case, value)
            if value is _UNKNOWN or matches is None:
                return node
            if matches:
                return case.body
        return ast.copy_location(ast.Pass(), node)

    def _holds(self, test: ast.expr) -> bool | None:
        """Whether a comparison holds; None where nobody knows."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            holds = self._holds(test.operand)
            return None if holds is None else not holds
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
            return None
        left, right = self._value(test.left), self._value(test.comparators[0])
        if _UNKNOWN in (left, right):
            return None
        operator = test.ops[0]
        if isinstance(operator, (ast.Eq, ast.NotEq)):
            return (left == right) is isinstance(operator, ast.Eq)
        if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(right, (tuple, str)):
            if isinstance(right, str) and not isinstance(left, str):
                return None
            return (left in right) is isinstance(operator, ast.In)
        return None

    def _value(self, node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            return self._known.get(node.id, _UNKNOWN)
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            return _UNKNOWN
        return tuple(value) if isinstance(value, (list, set)) else value


def _matches(case: ast.match_case, value: object) -> bool | None:
    """Whether a case is taken; None where nobody knows."""
    if case.guard is not None:
        return None
    patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
    for pattern in patterns:
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            return True
        if not (isinstance(pattern, ast.MatchValue) and isinstance(pattern.value, ast.Constant)):
            return None
        if pattern.value.value == value:
            return True
    return False
