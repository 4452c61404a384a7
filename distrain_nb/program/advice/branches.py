"""Leaves out what a program does not do with the values that it has: the other arms of
`if strategy == "ddp":` where `strategy` is "dp"."""

from __future__ import annotations

import ast
from copy import deepcopy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_NUMBER = "<the arm that is taken>"
_NAMING = (
    *(ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.MatchAs, ast.MatchStar, ast.ExceptHandler),
)
# What tests are made of that run nothing of the program's.
_DECIDING = (
    *(ast.If, ast.Match, ast.match_case, ast.pattern, ast.Assign, ast.Compare, ast.UnaryOp),
    *(ast.BoolOp, ast.Constant, ast.Name, ast.Tuple, ast.List, ast.Set, ast.expr_context),
    *(ast.cmpop, ast.unaryop, ast.boolop),
)


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
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, _NAMING):
            yield str(getattr(node, "arg", None) or getattr(node, "name", None))


class _Arms(ast.NodeTransformer):
    """Puts the arm that is taken in the place of each `if` and `match`."""

    def __init__(self, known: Mapping[str, object]) -> None:
        self._known = known

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return self._taken(node, ast.If(node.test, *_numbers(2)), [node.body, node.orelse])

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        arms: list[list[ast.stmt]] = [[ast.Expr(node.body)], [ast.Expr(node.orelse)]]
        taken = self._taken(node, ast.If(node.test, *_numbers(2)), arms)
        return taken[0].value if isinstance(taken, list) else node  # type: ignore[attr-defined]

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        numbers = _numbers(len(node.cases))
        cases = [
            ast.match_case(case.pattern, case.guard, number)
            for case, number in zip(node.cases, numbers, strict=True)
        ]
        return self._taken(node, ast.Match(node.subject, cases), [c.body for c in node.cases])

    def _taken(
        self, node: ast.AST, asked: ast.stmt, arms: list[list[ast.stmt]]
    ) -> ast.AST | list[ast.stmt]:
        """The arm that runs, where only constants decide; `asked` has the arms' numbers in it."""
        if not all(isinstance(n, _DECIDING) and self._is_known(n) for n in ast.walk(asked)):
            return node
        names: dict[str, object] = {**self._known, _NUMBER: None, "__builtins__": {}}
        module = ast.fix_missing_locations(ast.Module([deepcopy(asked)], []))
        try:
            exec(compile(module, "", "exec"), names)
        except Exception:  # `"dp" < 3`
            return node
        number = names[_NUMBER]
        body = arms[number] if isinstance(number, int) else []
        return body or [ast.copy_location(ast.Pass(), node)]

    def _is_known(self, node: ast.AST) -> bool:
        return not isinstance(node, ast.Name) or node.id in (*self._known, _NUMBER)


def _numbers(count: int) -> list[list[ast.stmt]]:
    """Statements that keep the number of the arm that they stand in."""
    target = ast.Name(_NUMBER, ast.Store())
    return [[ast.Assign([target], ast.Constant(number))] for number in range(count)]
