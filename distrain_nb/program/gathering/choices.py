"""How the names of a notebook travel: a definition as its text or, where that may give something
else, as a value."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Severity
from distrain_nb.observed.frames import is_installed, root_of
from distrain_nb.program.gathering.remake import asks_anew, with_fillings
from distrain_nb.program.gathering.resolve import (
    COMPUTED,
    Literal,
    NoSource,
    SourceCode,
    Value,
    by_statement,
    evaluated,
    is_literal,
    resolve,
)
from distrain_nb.program.python.nodes import first_line
from distrain_nb.program.values.older_classes import OlderClasses
from distrain_nb.program.values.origins import FunctionTexts
from distrain_nb.program.values.pickling import Definitions, try_value
from distrain_nb.worker.fingerprint import registered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.program.gathering.resolve import How
    from distrain_nb.program.notebook.cells import Notebook
    from distrain_nb.program.notebook.history import ExecutionHistory
    from distrain_nb.program.notebook.world import World
    from distrain_nb.program.values.pickling import PickleTrial

_Chosen = tuple["How", "PickleTrial | None"]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Choices:
    """How the names of a notebook travel, each looked at once."""

    def __init__(
        self, notebook: Notebook, history: ExecutionHistory, world: World, limit: int
    ) -> None:
        self.history, self.world, self.limit = history, world, limit
        origins = FunctionTexts(notebook.cells)
        given_by = world.seen.observer.originals.given_by
        self.definitions = Definitions(
            notebook.namespace,
            origins,
            OlderClasses(history, notebook.namespace),
            self._is_text,
            given_by,
            world.packages,
            by_digest=notebook.ranks is not None,
        )
        self._chosen: dict[str, _Chosen] = {}

    def of(self, name: str) -> _Chosen:
        """Return how a name travels; with the trial of a value that stands for its text."""
        if name not in self._chosen:
            value = self.definitions.namespace[name]
            how = resolve(name, value, self.history, self.definitions)
            # The first base first: a class asks for its own bases, and a hundred of them, one of
            # the other, would be beyond Python's recursion limit.
            for base in reversed(value.__mro__[1:] if isinstance(value, type) else ()):
                if self.definitions.namespace.get(base.__name__) is base:
                    self.of(base.__name__)
            self._chosen[name] = Value(), None  # as others see it meanwhile
            self._chosen[name] = self._with_state(name, value, how)
        return self._chosen[name]

    def text_of(self, name: str) -> SourceCode | None:
        """Return the statements that give a name, whatever has changed since."""
        how = resolve(name, self.definitions.namespace[name], self.history, self.definitions)
        return how if isinstance(how, SourceCode) else by_statement(name, self.history)

    def _is_text(self, name: str) -> bool:
        return not isinstance(self.of(name)[0], (Literal, Value))

    def _with_state(self, name: str, value: Any, how: How) -> _Chosen:
        owned = isinstance(value, (type, FunctionType)) and self.definitions.owns(value)
        if isinstance(how, SourceCode):
            decorated = how.chain[0].statement.is_definition
            owned = owned or (decorated and self.definitions.owns(type(value)))
            filled = with_fillings(name, how, self.world)
            if not owned or filled.world or self._keeps_text(how, value):
                return filled, None
        elif not owned or not isinstance(how, NoSource):
            return how, None
        trial = try_value(name, value, self.definitions, self.limit)
        if trial.problem or not trial.complete:
            return (Value() if self._has_lost_base(value) else how), None
        return Value(), trial

    def _has_lost_base(self, value: Any) -> bool:
        """Return whether a class is made of one whose name means another by now."""
        bases = value.__bases__ if isinstance(value, type) else ()
        return any(self.definitions.owns(b) and not [*self.definitions.paths(b)] for b in bases)

    def _keeps_text(self, how: SourceCode, value: Any) -> bool:
        """Return whether the text is sure to be right, or nothing else will do."""
        dependences = [*filter(None, map(self.world.dependence_of, how.chain))]
        if any(dependence.kind == "world" for dependence in dependences):
            return True
        if self._has_lost_base(value):
            return False
        asks = dependences or any(asks_anew(e, self.world) for e in how.chain)
        notes = [note for executed in how.chain for note in executed.statement.notes]
        if asks or any(note.severity is Severity.ERROR for note in notes):
            return True
        bases = value.__bases__ if isinstance(value, type) else ()
        by_text = all(
            self.definitions.path(b) is not None for b in bases if self.definitions.owns(b)
        )
        node = how.chain[0].statement.node
        plain = by_text and len(how.chain) == 1 and not notes and is_plain(node, self.definitions)
        if isinstance(value, type):
            return plain and not registered(value)
        return plain and _is_of_text(node, value)


def is_plain(node: ast.AST, definitions: Definitions) -> bool:
    """Return whether a definition computes nothing while it is made, so that its text gives it
    again, but for what it has been given since."""
    if not _decorated_plainly(node, definitions):
        return False
    if isinstance(node, ast.ClassDef):
        return not node.keywords and all(is_plain(part, definitions) for part in node.body)
    if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
        return all(_is_written(default, definitions.namespace) for default in _defaults(node))
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        names = node.targets if isinstance(node, ast.Assign) else [node.target]
        is_lambda = isinstance(node.value, ast.Lambda) and is_plain(node.value, definitions)
        written = is_lambda or _is_written(node.value, definitions.namespace)
        return written and all(isinstance(name, ast.Name) for name in names)
    return isinstance(node, (ast.AnnAssign, ast.Pass, ast.Expr))


def _decorated_plainly(node: ast.AST, definitions: Definitions) -> bool:
    """Return whether all decorators are those of packages: the notebook's own may keep
    something."""
    for decorator in getattr(node, "decorator_list", ()):
        for name in (n.id for n in ast.walk(decorator) if isinstance(n, ast.Name)):
            value = definitions.namespace.get(name)
            kind = value if isinstance(value, (type, FunctionType)) else type(value)
            if name in definitions.namespace and definitions.owns(kind):
                return False
    return True


def _defaults(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.expr]:
    return [*node.args.defaults, *(default for default in node.args.kw_defaults if default)]


def _is_of_text(node: ast.AST, function: Any) -> bool:
    """Return whether a function is the one of a text, and still has the defaults from there."""
    node = node.value if isinstance(node, ast.Assign) else node
    function = inspect.unwrap(function)
    if not isinstance(node, (*_FUNCTIONS, ast.Lambda)) or type(function) is not FunctionType:
        return False
    has = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    defaults, first = _defaults(node), function.__code__.co_firstlineno
    return (
        first == first_line(node)
        and len(defaults) == len(has)
        and all(map(is_literal, defaults, has))
    )


def _is_written(node: ast.expr, namespace: Mapping[str, Any]) -> bool:
    """Return whether an expression is no more than written: a literal, `torch.float32`, `len`."""
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return evaluated(node) is not COMPUTED
    value = namespace.get(root.id, vars(builtins).get(root.id, COMPUTED))
    if isinstance(value, ModuleType):  # those beside the notebook may have been given another
        return is_installed(vars(value)) or root_of(vars(value)) in sys.stdlib_module_names
    return value is vars(builtins).get(root.id)
