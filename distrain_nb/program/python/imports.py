"""Which modules code imports, at its top level or anywhere inside."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True)
class ImportedModule:
    """One import: the module's dotted name, the names taken from it, the line. The code goes on
    without an `is_optional` one: it is in a `try`, or under a condition."""

    module: str
    names: tuple[str, ...]
    line: int
    relative: bool = False
    is_optional: bool = False

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]

    @property
    def dotted(self) -> tuple[str, ...]:
        """Every dotted name that may be a module: `from google.cloud import storage` has two."""
        return (self.module, *[f"{self.module}.{name}" for name in self.names])


def _optional(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is below a `try` with handlers, a `with suppress(…)`, or a condition other than on
    `__name__`."""
    for node in ast.walk(tree):
        guards = isinstance(node, ast.Try) and node.handlers
        asks = isinstance(node, ast.If | ast.While) and "__name__" not in ast.unparse(node.test)
        if guards or asks or (isinstance(node, ast.With) and _suppresses(node)):
            for statement in (*node.body, *getattr(node, "orelse", ())):  # type: ignore[attr-defined]
                yield from ast.walk(statement)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                for statement in case.body:
                    yield from ast.walk(statement)


def _suppresses(node: ast.With) -> bool:
    calls = (item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call))
    return any(ast.unparse(call.func).rpartition(".")[2] == "suppress" for call in calls)


def imports_of(tree: ast.AST | Iterable[ast.AST]) -> tuple[ImportedModule, ...]:
    """Return the imports in code, those inside functions included, and `import_module("name")`."""
    nodes = [tree] if isinstance(tree, ast.AST) else [*tree]
    optional = {id(inner) for node in nodes for inner in _optional(node)}
    modules: list[ImportedModule] = []
    for node in (inner for top in nodes for inner in ast.walk(top)):
        if isinstance(node, ast.Import):
            may_fail = id(node) in optional
            modules += [
                ImportedModule(alias.name, (), node.lineno, is_optional=may_fail)
                for alias in node.names
            ]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(a.name for a in node.names if a.name != "*")
            is_relative, module = node.level > 0, node.module or ""
            modules.append(
                ImportedModule(module, names, node.lineno, is_relative, id(node) in optional)
            )
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name, called = node.args[0].value, ast.unparse(node.func).rpartition(".")[2]
            if isinstance(name, str) and called in ("import_module", "__import__"):
                may_fail = id(node) in optional
                modules.append(
                    ImportedModule(name, (), node.lineno, name.startswith("."), may_fail)
                )
    return tuple(modules)
