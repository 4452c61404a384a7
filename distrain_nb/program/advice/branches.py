"""Leaves out what a program does not do with the values that it has: the other arms of
`if strategy == "ddp":` where `strategy` is "dp"."""

from __future__ import annotations

import ast
from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING

from distrain_nb.program.python.scopes import bound_by

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_NUMBER = "<the arm that is taken>"
# What tests are made of that run nothing of the program's.
_DECIDING = (
    *(ast.If, ast.Match, ast.match_case, ast.pattern, ast.Assign, ast.Compare, ast.UnaryOp),
    *(ast.BoolOp, ast.Constant, ast.Name, ast.Tuple, ast.List, ast.Set, ast.expr_context),
    *(ast.cmpop, ast.unaryop, ast.boolop),
)


def taken(tree: ast.Module, varied: Collection[str] = ()) -> ast.Module:
    """Return the tree without the arms that a comparison with a constant rules out: of names that
    the program sets once, at its top, to a constant, but for those in `varied`."""
    known = {name: value for name, value in _constants(tree).items() if name not in varied}
    if not known:
        return tree
    whole: ast.Module = _Arms(known).visit(deepcopy(tree))  # others read the tree too
    return whole


def _constants(tree: ast.Module) -> dict[str, object]:
    """Return the names with one value, by the only statement that sets them."""
    nodes = ast.walk(tree)
    times = Counter(n.arg if isinstance(n, ast.arg) else bound_by(n, nested=False) for n in nodes)
    found: dict[str, object] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            names = (target.id for target in statement.targets if isinstance(target, ast.Name))
            found |= {name: statement.value.value for name in names if times[name] == 1}
    return found


class _Arms(ast.NodeTransformer):
    """Puts the arm that is taken in the place of each `if` and `match`."""

    def __init__(self, known: Mapping[str, object]) -> None:
        self._known = known

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return self._taken(ast.If(node.test, *_numbers(2)), [node.body, node.orelse]) or node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        arms: list[list[ast.stmt]] = [[ast.Expr(node.body)], [ast.Expr(node.orelse)]]
        arm = self._taken(ast.If(node.test, *_numbers(2)), arms)
        return arm[0].value if arm else node  # type: ignore[attr-defined]

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        numbers = zip(node.cases, _numbers(len(node.cases)), strict=True)
        cases = [ast.match_case(case.pattern, case.guard, number) for case, number in numbers]
        return self._taken(ast.Match(node.subject, cases), [c.body for c in node.cases]) or node

    def _taken(self, asked: ast.stmt, arms: list[list[ast.stmt]]) -> list[ast.stmt]:
        """Return the arm that runs, if only constants decide; `asked` has the arms' numbers in
        it."""
        if not all(isinstance(n, _DECIDING) and self._is_known(n) for n in ast.walk(asked)):
            return []
        names: dict[str, object] = {**self._known, _NUMBER: None, "__builtins__": {}}
        module = ast.fix_missing_locations(ast.Module([deepcopy(asked)], []))
        try:
            exec(compile(module, "", "exec"), names)
        except Exception:  # `"dp" < 3`
            return []
        number = names[_NUMBER]
        body = arms[number] if isinstance(number, int) else []
        return body or [ast.Pass(lineno=1, col_offset=0)]

    def _is_known(self, node: ast.AST) -> bool:
        return not isinstance(node, ast.Name) or node.id in (*self._known, _NUMBER)


def _numbers(count: int) -> list[list[ast.stmt]]:
    """Return statements that keep the number of the arm that they stand in."""
    target = ast.Name(_NUMBER, ast.Store())
    return [[ast.Assign([target], ast.Constant(number))] for number in range(count)]
