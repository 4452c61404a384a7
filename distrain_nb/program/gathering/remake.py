"""Objects that are made again where the program runs, because their value must not travel."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.gathering.resolve import SourceCode, by_statement
from distrain_nb.program.notebook.history import at_once
from distrain_nb.program.notebook.process_bound import name_of, needs_group
from distrain_nb.program.notebook.reach import MACHINE

if TYPE_CHECKING:
    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.making import Making
    from distrain_nb.program.notebook.reach import Reading
    from distrain_nb.program.notebook.world import World

# What is made of calls, and is nothing without the process that made it.
_TOOLS = re.compile(
    r"argparse\.(?!Namespace$|_AttributeHolder$)\w+|optparse\.\w+|click\.core\.\w+|typer\.main\.Typer"
    r"|logging\.(\w+\.)?(Logger|RootLogger|LoggerAdapter|Formatter|\w*Handler|\w*Filter)|re\.Pattern"
    r"|_thread\.R?[lL]ock|threading\.(Condition|Event|Semaphore|BoundedSemaphore|Barrier|_RLock)"
    r"|concurrent\.futures\.(thread|process)\.\w+PoolExecutor|contextvars\.ContextVar"
    r"|os\._Environ|\w+\.synchronize\.\w+|tqdm\.\w+\.tqdm\w*"
    r"|(torch\.utils\.tensorboard|tensorboardX)\.writer\.SummaryWriter"
)
_MACHINE = MACHINE | {"environ", "getenv"}
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
    reading = world.learned(name)
    if reading is None:
        return Remade(_tool(name, value, world) or _choice(name, value, world))
    return remake_for(name, value, reading, where, world)


def with_fillings(name: str, how: SourceCode, world: World) -> SourceCode:
    """Return the source of a class, with the statements that have put answers about the world into
    it."""
    since = tuple(p for p in world.makings.fillings(name, how.chain[0]) if p not in how.chain)
    if not since:
        return how
    why = f"was filled by {since[0].statement.where}, which asked for the world, and is made again"
    return replace(how, chain=(*how.chain, *since), why=why, world=True)


def remake_for(name: str, value: Any, reading: Reading, where: str, world: World) -> Remade:
    """Return the same for a value that is known to have learned the world, or the machine."""
    making = world.makings.of(name)
    if making and not reading.where and not _shows(making, value, reading):
        making = None
    if making and making.result and (reading.kind == "device" or _is_result(value, making.result)):
        measured = _measured(name, where, making.result) if reading.kind == "world" else None
        return Remade(finding=measured)
    if making and needs_group(value) and not world.begins_group(name):
        return Remade(finding=_without_group(name, value, where, making))
    work = (making.work or world.worked_on(name, making)) if making else None
    if making and not work:
        on = "world" if reading.kind == "world" else "machine"
        why = f"depends on the {on} ({reading.what}), and is made again in every rank"
        return Remade(SourceCode(making.chain, why, world=reading.kind == "world"))
    if reading.kind == "device":
        return Remade()
    return Remade(finding=_refused(name, value, reading, where, making, work))


def _shows(making: Making, value: Any, reading: Reading) -> bool:
    """Return whether the statements of a list or dict name the class of what is inside that is
    bound."""
    if not isinstance(value, (list, tuple, dict, set)):
        return True
    nodes = (node for executed in making.chain for node in ast.walk(executed.statement.node))
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}
    return reading.what in names


def is_tool(value: Any) -> bool:
    """Return whether a value is made of calls, and is nothing without the process that made it."""
    return any(_TOOLS.fullmatch(name_of(base)) for base in type(value).__mro__)


def _tool(name: str, value: Any, world: World) -> SourceCode | None:
    if not is_tool(value):
        return None
    making = world.makings.of(name)
    if making is None or making.work:
        return None
    return SourceCode(making.chain, "is made again by its statements")


def _choice(name: str, value: Any, world: World) -> SourceCode | None:
    """Return a device, number or text that was chosen by asking this machine: the run must ask
    again."""
    if not isinstance(value, (str, int)) and type(value).__qualname__ != "device":
        return None
    latest = next(iter(world.history.of(name)), None)
    if latest is None:
        return None
    return by_statement(name, world.history) if asks_machine(latest.statement.node) else None


def asks_machine(node: ast.AST) -> bool:
    """Return whether a statement asks its machine or its environment while it runs."""
    return any(
        isinstance(n, (ast.Attribute, ast.Name))
        and (n.attr if isinstance(n, ast.Attribute) else n.id) in _MACHINE
        for n in at_once(node)
    )


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


def _measured(name: str, where: str, work: Executed) -> Finding:
    return Finding(
        "capture.measured",
        Severity.WARNING,
        where,
        f"`{name}` is captured as the notebook alone computed it ({work.statement.where}):"
        " nothing in it comes from the run's ranks",
    )


def _without_group(name: str, value: Any, where: str, making: Making) -> Finding:
    return Finding(
        "capture.process-bound",
        Severity.ERROR,
        where,
        f"`{name}` ({type(value).__name__}) belongs to a process group of the notebook, a world of"
        f" 1; ranks have none before the cell makes theirs: move {making.chain[0].statement.where}"
        " into the cell, behind `init_process_group`",
    )


def _refused(
    name: str,
    value: Any,
    reading: Reading,
    where: str,
    making: Making | None,
    work: Executed | None,
) -> Finding:
    kind = type(value).__name__
    at = f", {reading.where}" if reading.where else ""
    head = f"`{name}` ({kind}) was created in the notebook, a world of 1 ({reading.what}{at})"
    if making is None or work is None:
        way = "no executed statement is known to create it: create it in the cell"
    else:
        made = making.chain[0].statement.where
        reason = (
            "the statement that creates it also trains"
            if work in making.chain
            else f"{work.statement.where} has changed it since"
        )
        way = f"ranks can't create their own, as {reason}: move {made} into the cell"
    return Finding("capture.process-bound", Severity.ERROR, where, f"{head}; {way}")
