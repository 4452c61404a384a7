"""Where in the executed cells each name was bound, and by which statement.

What the extension saw the notebook's statements ask about the world.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.objects import is_model
from distrain_nb.observed.sites import Site
from distrain_nb.program.python.ipython_syntax import SyntaxNote, plain
from distrain_nb.program.python.names import Names, futures_in, names_of
from distrain_nb.program.python.nodes import first_line, words_in
from distrain_nb.program.python.scopes import ImportedModule, bound_names, imports_of, names_by_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from distrain_nb.observed import Observer
    from distrain_nb.observed.sites import SeenRead
    from distrain_nb.program.notebook.cells import Cell
    from distrain_nb.program.notebook.local_modules import OwnModule
    from distrain_nb.program.proof.replay import Replay

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


_AWAITING = (ast.Await, ast.AsyncFor, ast.AsyncWith)
_COUNTS = (bool, int, str, type(None))


@dataclass(frozen=True)
class SeenReads:
    """Answers by statements. If nobody `watched`, the observer has seen nothing."""

    observer: Observer
    watched: bool = True
    replay: Replay | None = None  # of the cells that asked

    def knows(self, name: str) -> tuple[str, Executed] | None:
        """Return the part of a name's object that another rank has otherwise, with the statement
        that gave it."""
        return self.replay.knows.get(name) if self.replay else None

    def gives(self, statement: Statement, name: str) -> bool:
        """Return whether a statement changed what a name stands for, as seen when it ran again."""
        return self.replay is not None and any(
            executed.statement is statement for executed in self.replay.makers(name)
        )

    def saw(self, statement: Statement, module: OwnModule) -> bool:
        """Return whether a statement ran while the extension was there."""
        label, name = statement.label, module.namespace.get("__name__")
        return self.watched and not {label, name} & self.observer.unseen

    def reads(self, statement: Statement, name: str, value: Any) -> Iterator[SeenRead]:
        """Yield the questions of a statement that matter to a name's value.

        Packages ask for many reasons, so what they made counts if it is a rank, a size or a name.
        """
        outside = self.only_used(statement, name, value)
        for site in self.sites(statement):
            for read in site.reads:
                label, _, line = read.where.rpartition(", line ")
                last = statement.node.end_lineno or statement.line
                inside = label == statement.label and statement.line <= int(line) <= last
                if outside and not inside:
                    continue
                if read.direct or _counts(value) or name in site.filled:
                    yield read

    def asked(self, statement: Statement) -> Iterator[SeenRead]:
        """Yield all that a statement asked."""
        for site in self.sites(statement):
            yield from site.reads

    def beside(self, statement: Statement) -> SeenRead | None:
        """Return what a thread asked beside the statement that had started it, or by luck within
        one that only starts it."""
        sites = [site for site in self.sites(statement) if site.beside or site.in_thread]
        if not sites:
            return None
        calls = (node.func for node in ast.walk(statement.node) if isinstance(node, ast.Call))
        methods = {method.attr for method in calls if isinstance(method, ast.Attribute)}
        starts = "start" in methods and methods.isdisjoint(("join", "result", "wait"))
        reads = (read for site in sites if site.beside or starts for read in site.reads)
        return next(reads, None)

    def only_used(self, statement: Statement, name: str, value: Any) -> bool:
        """Return whether a statement had a function do something with a model that left no answer
        in it: most often the function asked whether to print."""
        gives = not self.watched or name in statement.binds or self.fills(statement, name)
        return is_model(value) and not gives

    def fills(self, statement: Statement, name: str) -> bool:
        """Return whether the object of that name changed while the statement asked for the world,
        or read what knows it."""
        filled = any(name in site.filled for site in self.sites(statement))
        filled = filled or self.gives(statement, name)
        places = self.observer.originals.filled.get(name, ())
        return filled or any(is_at(place, statement) for place in places)

    def changed(self, statement: Statement, name: str) -> bool:
        """Return whether the statement changed a part of the object of that name, which it may have
        from the world: seen for what knows the world."""
        return any(is_at(change[:3], statement) for change in self.observer.changes.of(name))

    def replaced(self, name: str, executed: Iterable[Executed]) -> Executed | None:
        """Return the statement that bound a name, which knew the world, by a function that it
        calls."""
        place = self.observer.changes.replaced.get(name)
        return next((p for p in executed if is_at(place, p.statement)), None) if place else None

    def known_to(self, statement: Statement) -> set[str]:
        """Return the names that knew the world when a statement read them."""
        places, node = self.observer.readers(statement.label), statement.node
        return {n for place in places if _stands_in(Site(*place), node) for n in places[place]}

    def read_then(self, statement: Statement) -> dict[str, Callable[[object], bool]]:
        """Return the names that a statement read, also by functions, while it asked for the world
        or read what knows it; each with what tells if something is what the name stood for."""
        read = {n: same for site in self.sites(statement) for n, same in site.read.items()}
        return {name: read[name] for name in read.keys() - statement.binds}

    def before(self, statement: Statement, name: str) -> dict[str, str]:
        """Return the parts of a name's object before a statement that asked for the world."""
        return next((site.before.get(name, {}) for site in self.sites(statement)), {})

    def sets(self, statement: Statement) -> set[str]:
        """Return the variables of the environment that a statement set by more than a text."""
        return {name for site in self.sites(statement) for name in site.sets}

    def sites(self, statement: Statement) -> Iterator[Site]:
        """Yield the places in a statement from which something was asked."""
        every = self.observer.sites(statement.label)
        yield from (site for site in every if _stands_in(site, statement.node))


def is_at(place: tuple[str, int, int], statement: Statement) -> bool:
    """Return whether a place, a cell with a line and a column, is that of a statement."""
    label, line, column = place
    return label == statement.label and _stands_in(Site(line, column), statement.node)


def _counts(value: Any) -> bool:
    if isinstance(value, dict):
        value = (*value.keys(), *value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_counts, value))
    return isinstance(value, _COUNTS)


def _stands_in(site: Site, node: ast.stmt) -> bool:
    """Return whether a place is inside a statement; by lines where one of them isn't known in
    columns."""
    first, last = first_line(node), node.end_lineno or node.lineno
    if not site.line:
        return any(isinstance(inner, _AWAITING) for inner in ast.walk(node))
    if not first <= site.line <= last or site.column < 0:
        return first <= site.line <= last
    if site.line == first and site.column < node.col_offset:
        return False
    return bool(site.line < last or site.column < (node.end_col_offset or 0))
