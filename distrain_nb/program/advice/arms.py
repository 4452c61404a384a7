"""Arms of `if` and `match` that a program takes with the values that it has.

The other arms of `if strategy == "ddp":` are left out where `strategy` is "dp".
"""

from __future__ import annotations

import ast
from collections import Counter
from copy import deepcopy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from distrain_nb.program.python.scopes import bound_by

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


_UNKNOWN = object()
# What tests are made of that run nothing of the program's.
_DECIDING = (
    *(ast.Compare, ast.UnaryOp, ast.BoolOp, ast.Constant, ast.Name, ast.Tuple, ast.List, ast.Set),
    *(ast.expr_context, ast.cmpop, ast.unaryop, ast.boolop),
)


def taken(
    tree: ast.Module,
    varied: Collection[str] = (),
    parsed: Mapping[str, object] = MappingProxyType({}),
) -> ast.Module:
    """Return the tree without the arms that a comparison with a constant rules out: of names that
    the program sets once, at its top, to a constant, but for those in `varied`, and of what is
    `parsed`, such as `args.spawn`."""
    nodes = ast.walk(tree)
    times = Counter(n.arg if isinstance(n, ast.arg) else bound_by(n, nested=False) for n in nodes)
    known: dict[str, object] = {}  # the names with one value, by the only statement that sets them
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            names = (target.id for target in statement.targets if isinstance(target, ast.Name))
            once = (name for name in names if times[name] == 1 and name not in varied)
            known |= dict.fromkeys(once, statement.value.value)
    if not known and not parsed:
        return tree
    whole: ast.Module = _Arms(known, parsed).visit(deepcopy(tree))  # others read the tree too
    return whole


class _Arms(ast.NodeTransformer):
    """Puts the arm that is taken in the place of each `if` and `match`."""

    def __init__(self, known: Mapping[str, object], parsed: Mapping[str, object]) -> None:
        self._known = known
        self._parsed = parsed

    def visit(self, node: ast.AST) -> Any:
        node = self.generic_visit(node)
        arms: list[Any] = []
        if isinstance(node, (ast.If, ast.IfExp)):
            value = self._value(node.test)
            arms = [] if value is _UNKNOWN else [node.body if value else node.orelse]
        elif isinstance(node, ast.Match) and self._value(node.subject) is not _UNKNOWN:
            fits = [self._fits(self._value(node.subject), case) for case in node.cases]
            taken = [case.body for case, fit in zip(node.cases, fits, strict=True) if fit]
            arms = [] if _UNKNOWN in fits else [*taken, []]
        return (arms[0] or ast.Pass(lineno=1, col_offset=0)) if arms else node

    def _value(self, test: ast.expr) -> object:
        """Return what a test gives, if only constants decide."""
        if ast.unparse(test) in self._parsed:
            return self._parsed[ast.unparse(test)]
        nodes = [*ast.walk(test)]
        unknown = (n for n in nodes if isinstance(n, ast.Name) and n.id not in self._known)
        if any(unknown) or not all(isinstance(node, _DECIDING) for node in nodes):
            return _UNKNOWN
        try:
            names = {**self._known, "__builtins__": {}}
            return eval(compile(ast.Expression(deepcopy(test)), "", "eval"), names)
        except Exception:  # `"dp" < 3`
            return _UNKNOWN

    def _fits(self, value: object, case: ast.match_case) -> object:
        whole = case.pattern
        patterns = whole.patterns if isinstance(whole, ast.MatchOr) else [whole]
        if isinstance(whole, ast.MatchAs) and not (whole.pattern or case.guard):
            return True
        if case.guard or not all(isinstance(pattern, ast.MatchValue) for pattern in patterns):
            return _UNKNOWN
        return value in [self._value(p.value) for p in patterns]  # type: ignore[attr-defined]
