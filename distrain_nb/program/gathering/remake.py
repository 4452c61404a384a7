"""Objects that are made again where the program runs, because their value must not travel.

Whether a definition travels as its text or, where that may give something else, as a value.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.frames import is_installed, root_of
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
from distrain_nb.program.notebook.process_objects import name_of, needs_group
from distrain_nb.program.notebook.reach import asks_machine
from distrain_nb.program.python.nodes import first_line
from distrain_nb.program.values.older_classes import OlderClasses
from distrain_nb.program.values.origins import FunctionTexts
from distrain_nb.program.values.pickling import Definitions, try_value
from distrain_nb.worker.fingerprint import registered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.program.gathering.resolve import How
    from distrain_nb.program.notebook.cells import Notebook
    from distrain_nb.program.notebook.history import Executed, ExecutionHistory
    from distrain_nb.program.notebook.making import Making
    from distrain_nb.program.notebook.reach import Dependence
    from distrain_nb.program.notebook.world import World
    from distrain_nb.program.values.pickling import PickleTrial

# What is made of calls, and is nothing without the process that made it.
_TOOLS = re.compile(
    r"argparse\.(?!Namespace$|_AttributeHolder$)\w+|optparse\.\w+|click\.core\.\w+|typer\.main\.Typer"
    r"|logging\.(\w+\.)?(Logger|RootLogger|LoggerAdapter|Formatter|\w*Handler|\w*Filter)"
    r"|_thread\.R?[lL]ock|threading\.(Condition|Event|Semaphore|BoundedSemaphore|Barrier|_RLock)"
    r"|concurrent\.futures\.(thread|process)\.\w+PoolExecutor|contextvars\.ContextVar"
    r"|os\._Environ|\w+\.synchronize\.\w+|tqdm\.\w+\.tqdm\w*"
    r"|(torch\.utils\.tensorboard|tensorboardX)\.writer\.SummaryWriter"
)
_ARRAYS = {
    *("numpy.ndarray", "numpy.float64", "numpy.float32", "torch.Tensor"),
    *("pandas.DataFrame", "pandas.core.frame.DataFrame"),
    *("pandas.Series", "pandas.core.series.Series"),
}


@dataclass(frozen=True)
class Remade:
    """How a name travels instead of its value; without `how` its value does, if nothing forbids."""

    how: SourceCode | None = None
    finding: Finding | None = None

    @property
    def refused(self) -> bool:
        return self.finding is not None and self.finding.severity is Severity.ERROR


def remake(name: str, value: Any, where: str, world: World) -> Remade:
    """Return whether a name is made again in every rank, and what is wrong where it can't be."""
    dependence = world.dependence(name)
    if dependence is not None and dependence.kind == "device" and not _is_choice(value):
        return Remade(finding=_of_machine(name, value, dependence, where))
    if dependence is not None:
        return remake_for(name, value, dependence, where, world)
    making = world.makings.of(name) if is_tool(value) else None
    if making and not making.work:
        return Remade(SourceCode(making.chain, "is made again by its statements"))
    return Remade(_choice(name, value, world))


def with_fillings(name: str, how: SourceCode, world: World) -> SourceCode:
    """Return the source of a class, with the statements that have put answers about the world into
    it."""
    since = tuple(p for p in world.makings.fillings(name, how.chain[0]) if p not in how.chain)
    if not since:
        return how
    why = f"was filled by {since[0].statement.where}, which asked for the world, and is made again"
    return replace(how, chain=(*how.chain, *since), why=why, world=True)


def remake_for(name: str, value: Any, dependence: Dependence, where: str, world: World) -> Remade:
    """Return the same for a value that is known to have learned the world, or the machine."""
    making = world.makings.of(name)
    if making and not dependence.where and not _shows(making, value, dependence):
        making = None
    result = making.result if making else None
    if result and (dependence.kind == "device" or _is_result(value, result)):
        message = (
            f"`{name}` is captured as the notebook alone computed it"
            f" ({result.statement.where}): nothing in it comes from the run's ranks"
        )
        measured = Finding("capture.measured", Severity.WARNING, where, message)
        return Remade(finding=measured if dependence.kind == "world" else None)
    if making and needs_group(value) and not world.ancestry.begins_group(name):
        message = (
            f"`{name}` ({type(value).__name__}) belongs to a process group of the notebook, a world"
            " of 1; ranks have none before the cell makes theirs: move"
            f" {making.chain[0].statement.where} into the cell, behind `init_process_group`"
        )
        return Remade(finding=Finding("capture.process-bound", Severity.ERROR, where, message))
    work = (making.work or world.ancestry.worked_on(name, making)) if making else None
    if making and not work:
        on = "world" if dependence.kind == "world" else "machine"
        why = f"depends on the {on} ({dependence.what}), and is made again in every rank"
        return Remade(SourceCode(making.chain, why, world=dependence.kind == "world"))
    if dependence.kind == "device":
        return Remade()
    way = "no executed statement is known to create it: create it in the cell"
    if making and work:
        reason = f"{work.statement.where} has changed it since"
        if work in making.chain:
            reason = "the statement that creates it also trains"
        made = making.chain[0].statement.where
        way = f"ranks can't create their own, as {reason}: move {made} into the cell"
    kind, at = type(value).__name__, f", {dependence.where}" if dependence.where else ""
    head = f"`{name}` ({kind}) was created in the notebook, a world of 1 ({dependence.what}{at})"
    message = f"{head}; {way}"
    return Remade(finding=Finding("capture.process-bound", Severity.ERROR, where, message))


def _shows(making: Making, value: Any, dependence: Dependence) -> bool:
    """Return whether the statements of a list or dict name the class of what is inside that is
    bound."""
    if not isinstance(value, (list, tuple, dict, set)):
        return True
    nodes = (node for executed in making.chain for node in ast.walk(executed.statement.node))
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}
    return dependence.what in names


def is_tool(value: Any) -> bool:
    """Return whether a value is made of calls, and is nothing without the process that made it."""
    return any(_TOOLS.fullmatch(name_of(base)) for base in type(value).__mro__)


def _choice(name: str, value: Any, world: World) -> SourceCode | None:
    """Return a device, number or text that was chosen by asking this machine: the run must ask
    again."""
    if not _is_choice(value):
        return None
    latest = next(iter(world.history.of(name)), None)
    if latest is None or world.seen.replaced(name, world.history.executed):
        return None
    return by_statement(name, world.history) if asks_anew(latest, world) else None


def _is_choice(value: Any) -> bool:
    """Return whether a whole value may be what a machine has answered: a device, a flag, a
    count."""
    return isinstance(value, (str, int)) or type(value).__qualname__ == "device"


def _of_machine(name: str, value: Any, dependence: Dependence, where: str) -> Finding:
    """Return the finding about an object that contains such an answer.

    Made again, such an object would be another one: it has a name by time, drawn numbers or parsed
    arguments.
    """
    message = (
        f"`{name}` ({type(value).__name__}) is captured with what this machine answered"
        f" ({dependence.what}, {dependence.where}): set it in the cell if the run's machine differs"
    )
    return Finding("capture.measured", Severity.INFO, where, message)


def asks_anew(executed: Executed, world: World) -> bool:
    """Return whether a statement asks its machine or its environment, and would find there what it
    found when it ran."""
    statement = executed.statement
    return asks_machine(statement.words()) and not world.changed_variables(statement)


def _is_result(value: Any, executed: Executed) -> bool:
    """Results of work, such as losses: they don't say how many ranks there are."""
    if isinstance(executed.statement.node, (ast.For, ast.While)) and isinstance(value, int):
        return True  # the last epoch
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        numbers = [v for v in value if not isinstance(v, (int, str))]
        return bool(numbers) and all(_is_result(v, executed) for v in numbers)
    return isinstance(value, (float, complex, str)) or name_of(type(value)) in _ARRAYS


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


# -- what a definition computes -------------------------------------------------------------------


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
