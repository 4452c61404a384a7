"""Which modules code imports, at its top level or anywhere inside."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True)
class ImportedModule:
    """One import: the module's dotted name, the names taken from it, the line."""

    module: str
    names: tuple[str, ...]
    line: int
    relative: bool = False

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]

    @property
    def dotted(self) -> tuple[str, ...]:
        """Every dotted name that may be a module: `from google.cloud import storage` has two."""
        return (self.module, *[f"{self.module}.{name}" for name in self.names])


def imports_of(tree: ast.AST | Iterable[ast.AST]) -> tuple[ImportedModule, ...]:
    """Return the imports in code, those inside functions included, and `import_module("name")`."""
    nodes = [tree] if isinstance(tree, ast.AST) else tree
    return tuple(found for top in nodes for node in ast.walk(top) for found in _imports(node))


def _imports(node: ast.AST) -> Iterator[ImportedModule]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield ImportedModule(alias.name, (), node.lineno)
    elif isinstance(node, ast.ImportFrom):
        names = tuple(a.name for a in node.names if a.name != "*")
        yield ImportedModule(node.module or "", names, node.lineno, relative=node.level > 0)
    elif isinstance(node, ast.Call) and _function_name(node) in ("import_module", "__import__"):
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield ImportedModule(first.value, (), node.lineno, relative=first.value.startswith("."))


def _function_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""
