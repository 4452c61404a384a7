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
from distrain_nb.program.python.nodes import first_line, words_in
from distrain_nb.program.python.scopes import bound_names, names_by_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from distrain_nb.program.notebook.cells import Cell

_MOST_STATEMENTS = 2**15
_CELL_MAGIC = re.compile(r"\s*%%([\w.]+)")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
LEFT_OUT = "pass  # "  # with a line of IPython's own syntax
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
        """Return the names that the statement needs and binds."""
        return names_of([self.node], late_annotations=late_annotations)

    @lru_cache(maxsize=_MOST_STATEMENTS)  # noqa: B019
    def imports(self) -> tuple[ImportedModule, ...]:
        """Return the modules that the statement imports, inside functions too."""
        return imports_of(self.node)

    @lru_cache(maxsize=_MOST_STATEMENTS)  # noqa: B019
    def mentions(self) -> frozenset[str]:
        """Return every name that stands in the statement."""
        return frozenset(n.id for n in ast.walk(self.node) if isinstance(n, ast.Name))

    @lru_cache(maxsize=_MOST_STATEMENTS)  # noqa: B019
    def words(self) -> frozenset[str]:
        """Return the names and attributes that it looks up or binds while it runs."""
        return words_in(self.node)

    @lru_cache(maxsize=_MOST_STATEMENTS)  # noqa: B019
    def registers(self) -> frozenset[str]:
        """Return names that it registers something with: `@f.register`, `f.register(g)`."""
        decorators = getattr(self.node, "decorator_list", None)
        called = [getattr(d, "func", d) for d in decorators or [getattr(self.node, "value", None)]]
        are_calls = (c for c in called if decorators or getattr(c, "attr", "") == "register")
        owners = (getattr(c, "value", None) for c in are_calls)
        return frozenset(owner.id for owner in owners if isinstance(owner, ast.Name))

    def takes(self, name: str) -> bool:
        """Return whether the statement reads a name while it runs."""
        use = self.names().needs.get(name)
        return use is not None and use.at_once

    def leaves(self, name: str) -> bool:
        """Return whether the statement binds a name on some of its paths only: another rank may
        keep what it had."""
        names = self.names()
        return name in names.binds and name not in names.surely

    @property
    def is_definition(self) -> bool:
        return isinstance(self.node, _DEFINITIONS)

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, _IMPORTS)

    def inner_definition(self, name: str) -> Statement | None:
        """Return the last `def` or `class` of a name inside a `with`, `for`, `if` or the like."""
        if self.is_definition or name not in self.binds:
            return None
        definitions = [
            n for n in _inside(self.node) if isinstance(n, _DEFINITIONS) and n.name == name
        ]
        return replace(self, node=definitions[-1]) if definitions else None

    def gives(self, name: str) -> object:
        """Return a key that is equal for statements which bind a name to the same: an import's
        target, else the text."""
        alias, module = self.alias(name), getattr(self.node, "module", None)
        return (module, alias.name if module or alias.asname else name) if alias else self.text

    def alias(self, name: str) -> ast.alias | None:
        """Return the part of an import statement that binds a name."""
        names = getattr(self.node, "names", ()) if self.is_import else ()
        return next((alias for alias in names if bound_names([alias]) == {name}), None)


@dataclass(frozen=True, eq=False)
class Executed:
    """A statement and its place in the order of execution."""

    at: tuple[int, int]  # cell, statement
    statement: Statement
    failed: bool = False  # it may have done a part of its work
    unbound: frozenset[str] = frozenset()  # by it and those behind it, as it failed


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

    def built_on(
        self, name: str, executed: Executed, reads: Callable[[Statement], bool] | None = None
    ) -> list[Executed]:
        """Return a statement that binds a name, behind those whose value it takes, as `f =
        cached(f)` does, or may leave, as `if rank == 0: f = g` does. `reads` says whether functions
        that a statement calls read the name."""
        chain = [executed]
        while True:
            first = chain[0].statement
            earlier = self.of(name, before=chain[0].at)
            takes = first.takes(name) or bool(reads and reads(first))
            if not earlier or not (takes or first.leaves(name)):
                return chain
            # A training loop isn't made again for what a later one sets too.
            loops = (first.node, earlier[0].statement.node)
            if not takes and all(isinstance(n, (ast.For, ast.While)) for n in loops):
                return chain
            chain.insert(0, earlier[0])

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
            unbound = frozenset(name for s in statements[number:] if failed for name in s.binds)
            _add(history, Executed((position, number), statement, failed, unbound))
            if failed:
                break  # those behind it did not run
        history.futures.update(_futures(statements))
    return history


def _add(found: ExecutionHistory, executed: Executed) -> None:
    found.executed.append(executed)
    if executed.failed:
        return
    for name in executed.statement.binds:
        found.bindings.setdefault(name, []).append(executed)
    for name in executed.statement.registers():
        found.changes.setdefault(name, []).append(executed)
    if isinstance(node := executed.statement.node, ast.ImportFrom) and node.names[0].name == "*":
        found.stars.append(executed)


_futures = lru_cache(maxsize=4096)(lambda statements: futures_in(s.node for s in statements))


@lru_cache(maxsize=4096)
def statements_of(label: str, source: str) -> tuple[Statement, ...]:
    """Return the top-level statements of a cell; none if it can't be parsed or ran elsewhere."""
    cell = plain(_body(source))
    lines = cell.text.split("\n")
    nodes = cell.tree.body if cell.tree else []
    every = (inner for node in nodes for inner in (node, *_inside(node)))
    imported = frozenset(bound_names(n for n in every if isinstance(n, _IMPORTS)))
    statements = []
    for node in nodes:
        last = node.end_lineno or 0
        notes = tuple(note for note in cell.notes if first_line(node) <= note.line <= last)
        binds = frozenset(bound_names([node]) | names_by_text(node))
        statements.append(Statement(label, node, _text(node, lines), binds, notes, imported))
    return tuple(statements)


def _body(source: str) -> str:
    """Return a cell without its cell magic; a comment where the body ran elsewhere."""
    magic = _CELL_MAGIC.match(source)
    if magic is None:
        return source
    head, _, body = source[magic.start(1) :].partition("\n")
    if magic[1] not in _RUN_HERE:
        return f"pass  # %%{head}  {' '.join(body.split())}"
    blank = source[: magic.start(1)].count("\n") + 1
    return "\n" * blank + body


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
