"""Where in the executed cells each name was bound, and by which statement."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from distrain_nb.program.python.imports import ImportedModule, imports_of
from distrain_nb.program.python.ipython_syntax import SyntaxNote, plain
from distrain_nb.program.python.names import Names, futures_in, names_of
from distrain_nb.program.python.scopes import bound_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.program.notebook.cells import Cell

_MOST_STATEMENTS = 2**15
_CELL_MAGIC = re.compile(r"\s*%%([\w.]+)")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_RUN_HERE = {"time", "timeit", "capture", "prun"}  # cell magics whose body runs in the notebook


@dataclass(frozen=True, eq=False)
class Statement:
    """One top-level statement of an executed cell."""

    label: str
    node: ast.stmt
    text: str
    binds: frozenset[str]
    notes: tuple[SyntaxNote, ...]  # IPython's syntax inside
    imported: frozenset[str]  # names that its cell imports: calls of theirs are compiled otherwise

    @property
    def line(self) -> int:
        return first_line(self.node)

    @property
    def where(self) -> str:
        return f"{self.label}, line {self.line}"

    @lru_cache(maxsize=_MOST_STATEMENTS)  # noqa: B019 (kept by the cell's text anyway)
    def names(self, late_annotations: bool = False) -> Names:
        """What the statement needs and binds."""
        return names_of([self.node], late_annotations=late_annotations)

    @lru_cache(maxsize=_MOST_STATEMENTS)  # noqa: B019
    def imports(self) -> tuple[ImportedModule, ...]:
        """Return the modules that the statement imports, inside functions too."""
        return imports_of(self.node)

    @lru_cache(maxsize=_MOST_STATEMENTS)  # noqa: B019
    def mentions(self) -> frozenset[str]:
        """Return every name that stands in the statement."""
        return frozenset(n.id for n in ast.walk(self.node) if isinstance(n, ast.Name))

    def takes(self, name: str) -> bool:
        """Return whether the statement reads a name while it runs."""
        use = self.names().needs.get(name)
        return use is not None and use.at_once

    @property
    def is_definition(self) -> bool:
        return isinstance(self.node, _DEFINITIONS)

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, (ast.Import, ast.ImportFrom))

    def inner_definition(self, name: str) -> Statement | None:
        """Return the last `def` or `class` of a name inside a `with`, `for`, `if` or the like."""
        if self.is_definition or name not in self.binds:
            return None
        definitions = [
            n for n in _inside(self.node) if isinstance(n, _DEFINITIONS) and n.name == name
        ]
        return replace(self, node=definitions[-1]) if definitions else None

    def alias(self, name: str) -> ast.alias | None:
        """Return the part of an import statement that binds a name."""
        if not isinstance(self.node, (ast.Import, ast.ImportFrom)):
            return None
        for alias in self.node.names:
            if bound_names([alias]) == {name}:
                return alias
        return None


@dataclass(frozen=True, eq=False)
class Executed:
    """A statement and its place in the order of execution."""

    at: tuple[int, int]  # cell, statement
    statement: Statement
    failed: bool = False  # it may have done a part of its work


@dataclass
class ExecutionHistory:
    """All executed statements, by the names that they bind."""

    bindings: dict[str, list[Executed]] = field(default_factory=dict)
    changes: dict[str, list[Executed]] = field(default_factory=dict)  # @show.register
    stars: list[Executed] = field(default_factory=list)
    executed: list[Executed] = field(default_factory=list)  # every statement, in order
    futures: set[str] = field(default_factory=set)  # they stay on in later cells

    @property
    def late_annotations(self) -> bool:
        return "annotations" in self.futures

    def of(self, name: str, before: tuple[int, int] | None = None) -> list[Executed]:
        """Return the statements that bound a name, latest first."""
        return [p for p in reversed(self.bindings.get(name, ())) if before is None or p.at < before]

    def built_on(self, name: str, executed: Executed) -> list[Executed]:
        """Return a statement that binds a name, behind those whose value it takes: `f =
        cached(f)`."""
        chain = [executed]
        while chain[0].statement.takes(name):
            earlier = self.of(name, before=chain[0].at)
            if not earlier:
                break
            chain.insert(0, earlier[0])
        return chain

    def changes_of(self, name: str, after: tuple[int, int]) -> list[Executed]:
        """Return the statements that registered something with a name's object."""
        return [p for p in self.changes.get(name, ()) if p.at > after]


def history(cells: Iterable[Cell]) -> ExecutionHistory:
    """Index executed cells, oldest first. Each text is parsed once per process."""
    history = ExecutionHistory()
    for position, cell in enumerate(cells):
        statements = statements_of(cell.label, cell.source)
        for number, statement in enumerate(statements):
            end = (statement.node.end_lineno or 0, statement.node.end_col_offset or 0)
            failed = cell.failed is not None and end > cell.failed
            _add(history, Executed((position, number), statement, failed))
            if failed:
                break  # those behind it did not run
        history.futures.update(futures_in(s.node for s in statements))
    return history


def _add(found: ExecutionHistory, executed: Executed) -> None:
    node = executed.statement.node
    found.executed.append(executed)
    if executed.failed:
        return
    for name in executed.statement.binds:
        found.bindings.setdefault(name, []).append(executed)
    for name in _changed(node):
        found.changes.setdefault(name, []).append(executed)
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        found.stars.append(executed)


def _changed(node: ast.stmt) -> set[str]:
    """Return names that the statement registers something with: `@f.register`."""
    decorators = [getattr(d, "func", d) for d in getattr(node, "decorator_list", ())]
    owners = [d.value for d in decorators if isinstance(d, ast.Attribute)]
    return {o.id for o in owners if isinstance(o, ast.Name)}


@lru_cache(maxsize=4096)
def statements_of(label: str, source: str) -> tuple[Statement, ...]:
    """Return the top-level statements of a cell; none of one that can't be parsed or ran
    elsewhere."""
    cell = plain(_body(source))
    lines = cell.text.split("\n")
    nodes = cell.tree.body if cell.tree else []
    imported = frozenset(name for node in nodes for name in _imported_names(node))
    return tuple(_statement(label, node, lines, cell.notes, imported) for node in nodes)


def _imported_names(node: ast.stmt) -> Iterator[str]:
    for inner in (node, *_inside(node)):
        if isinstance(inner, (ast.Import, ast.ImportFrom)):
            yield from bound_names(inner.names)


def _body(source: str) -> str:
    """Return a cell without its cell magic; empty where the body did not run in the notebook."""
    magic = _CELL_MAGIC.match(source)
    if magic is None:
        return source
    if magic[1] not in _RUN_HERE:
        return ""
    _head, _, body = source[magic.start(1) :].partition("\n")
    blank = source[: magic.start(1)].count("\n") + 1
    return "\n" * blank + body


def _statement(
    label: str,
    node: ast.stmt,
    lines: list[str],
    notes: tuple[SyntaxNote, ...],
    imported: frozenset[str],
) -> Statement:
    inside = tuple(n for n in notes if first_line(node) <= n.line <= (node.end_lineno or 0))
    binds = frozenset(bound_names([node]))
    return Statement(label, node, _text(node, lines), binds, inside, imported)


def _text(node: ast.stmt, lines: list[str]) -> str:
    """Return the statement's own text, also where others stand on its lines."""
    chosen = lines[first_line(node) - 1 : node.end_lineno]
    if node.end_col_offset is not None:
        last = chosen[-1].encode()
        rest = last[node.end_col_offset :].decode().strip()
        if rest.startswith(";"):
            chosen[-1] = last[: node.end_col_offset].decode()
    if node.col_offset:
        chosen[0] = chosen[0].encode()[node.col_offset :].decode()
    return "\n".join(chosen)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements that a statement holds in the same scope."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (*_DEFINITIONS, ast.expr)):
            yield from _inside(child)


def at_once(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that run with it: all but the bodies of functions."""
    yield node
    later = node.body if isinstance(node, (*_DEFINITIONS[:2], ast.Lambda)) else ()
    for child in ast.iter_child_nodes(node):
        if child is not later and not (isinstance(later, list) and child in later):
            yield from at_once(child)


def first_line(node: ast.stmt | ast.Lambda) -> int:
    """Return the first line of a statement, its decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return int(min([node.lineno, *[d.lineno for d in decorators]]))
