"""Objects that are made again where the program runs, because their value must not travel."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.gathering.resolve import (
    SourceCode,
    by_statement,
)
from distrain_nb.program.notebook.process_objects import name_of, needs_group
from distrain_nb.program.notebook.reach import asks_machine

if TYPE_CHECKING:
    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.making import Making
    from distrain_nb.program.notebook.reach import Dependence
    from distrain_nb.program.notebook.world import World

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
