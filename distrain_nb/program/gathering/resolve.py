"""How one name of the notebook travels: as an import, as source, as a literal, or as a value."""

from __future__ import annotations

import ast
import builtins
import sys
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.program.notebook.code_objects import made_by
from distrain_nb.program.values.shared import CHANGING
from distrain_nb.worker.fingerprint import dict_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.notebook.history import Executed, ExecutionHistory
    from distrain_nb.program.values.pickling import Definitions, PickleTrial

_LITERAL_WIDTH = 200  # longest literal that is written into the program, in characters
_MISSING = object()
COMPUTED = object()


MODULE_NAMES = {
    *("__name__", "__file__", "__doc__", "__builtins__", "__spec__", "__loader__"),
    *("__package__", "__annotations__", "__class__", "__dict__", "__debug__"),
}
_ASSIGNING = (ast.Assign, ast.AnnAssign)
_HOLDING = (*_ASSIGNING, ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.If, ast.Try)


@dataclass(frozen=True)
class Import:
    """`statements` are the import lines that give the name."""

    statements: tuple[str, ...]


@dataclass(frozen=True)
class SourceCode:
    """`chain`: the statements that make the object, in order. `why`: where it is not plain.

    `world`: it depends on the rank or the world, so that nothing else will do.
    """

    chain: tuple[Executed, ...]
    why: str = ""
    world: bool = False


@dataclass(frozen=True)
class Literal:
    """A short value, as it is written."""

    text: str


@dataclass(frozen=True)
class Value:
    """An object that travels as data."""


@dataclass(frozen=True)
class NoSource:
    """A function or class of the notebook whose source is not in any executed cell."""


How = Import | SourceCode | Literal | Value | NoSource


@dataclass(frozen=True)
class Needed:
    """One name of the notebook that travels: how, and the places that use it.

    `trial` is there for values: their size, and what their pickle refers to. Those that are part of
    what another name stands for, its `root`, are weights of a `model`, as the program writes it, or
    attributes. `first` are statements that give the name while definitions are made that the value
    holds.
    """

    name: str
    value: Any
    how: How
    where: tuple[str, ...]
    trial: PickleTrial | None = None
    root: str = ""
    model: str = ""
    first: tuple[Executed, ...] = ()
    late: bool = False  # state of a module that the program may not import


@dataclass(frozen=True)
class PendingName:
    """A name that code reads, and where. `required`: without it the code fails."""

    name: str
    where: str
    required: bool
    at_once: bool = True
    deleted: bool = False


def resolve(name: str, value: Any, history: ExecutionHistory, definitions: Definitions) -> How:
    """Choose how a name travels. Source comes first; only plain data goes as data."""
    is_owned = isinstance(value, (type, FunctionType)) and definitions.owns(value)
    # What a module was given is not imported from there.
    imported = None if is_owned else _by_import(name, value, history)
    if imported:
        return imported
    if isinstance(value, ModuleType):
        return Import((_import_line(value.__name__, name),))
    defined = _by_definition(name, value, history)
    if defined:
        return defined
    if is_code(value):
        return _code(name, value, history, definitions)
    # Type variables and aliases are found by name when they are pickled.
    typing = type(value).__module__ == "typing" or type(value).__name__ == "GenericAlias"
    return (by_statement(name, history) if typing else None) or as_data(value)


def as_data(value: Any) -> Literal | Value:
    """Return a value that travels as data: written out where it is short."""
    text = repr(value) if _plain(value, 3, set()) else ""
    is_short = text and len(text) <= _LITERAL_WIDTH and is_literal(text, value)
    return Literal(text) if is_short else Value()


def by_statement(
    name: str,
    history: ExecutionHistory,
    why: str = "",
    kinds: tuple[type[ast.stmt], ...] = _ASSIGNING,
) -> SourceCode | None:
    """Return the statement that last bound a name, with the earlier ones that it builds on."""
    latest = next(iter(history.of(name)), None)
    if latest is None or not isinstance(latest.statement.node, kinds):
        return None
    return SourceCode(_chain(name, latest, history), why)


def by_repeated(
    name: str, history: ExecutionHistory, repeated: Iterable[object]
) -> SourceCode | None:
    """Return the statement that gives a name, if it is among those that each rank repeats."""
    source = by_statement(name, history, "registers something, and is made again")
    chains = [how.chain for how in repeated if isinstance(how, SourceCode)]
    return source if source and (source.chain[-1],) in chains else None


# -- imports --------------------------------------------------------------------------------------


def _by_import(name: str, value: Any, history: ExecutionHistory) -> Import | None:
    latest = next(iter(history.of(name)), None)
    if latest is not None and latest.statement.is_import:
        return _repeated(name, value, history, latest)
    for executed in reversed([s for s in history.stars if latest is None or s.at > latest.at]):
        module = executed.statement.node.module  # type: ignore[attr-defined]
        if getattr(sys.modules.get(module), name, _MISSING) is value:
            return Import((f"from {module} import {name}",))
    return None


def _repeated(name: str, value: Any, history: ExecutionHistory, latest: Executed) -> Import | None:
    node, alias = latest.statement.node, latest.statement.alias(name)
    if alias is None:
        return None
    if isinstance(node, ast.ImportFrom):
        if node.level or not _still_gives(node.module or "", alias.name, value):
            return None
        return Import((f"from {node.module} import {ast.unparse(alias)}",))
    if not isinstance(value, ModuleType):
        return None
    if alias.asname:
        return Import((_import_line(alias.name, alias.asname),))
    # `import a.b` and `import a.c` both bind `a`, and both are needed.
    every = [executed.statement for executed in reversed(history.of(name))]
    aliases = (s.alias(name) for s in every if isinstance(s.node, ast.Import))
    return Import(tuple(dict.fromkeys(f"import {a.name}" for a in aliases if a and not a.asname)))


def _still_gives(module: str, name: str, value: Any) -> bool:
    loaded = sys.modules.get(module)
    if loaded is None:
        return True
    found = getattr(loaded, name, sys.modules.get(f"{module}.{name}", _MISSING))
    same_name = getattr(found, "__qualname__", None) == getattr(value, "__qualname__", _MISSING)
    return found is value or (same_name and found.__module__ == value.__module__)  # reloaded


def _import_line(module: str, name: str) -> str:
    return f"import {module}" if module == name else f"import {module} as {name}"


# -- definitions ----------------------------------------------------------------------------------


def _by_definition(name: str, value: Any, history: ExecutionHistory) -> SourceCode | None:
    for position, executed in enumerate(history.of(name)):
        inner = executed.statement.inner_definition(name)
        if inner and made_by(inner, name, value):
            return SourceCode(_chain(name, executed, history))  # all of `with strategy.scope():`
        decorated = bool(getattr(executed.statement.node, "decorator_list", ()))
        if executed.statement.is_definition and not (position and decorated):
            if made_by(executed.statement, name, value):
                return SourceCode(_chain(name, executed, history))
        elif not is_code(value):
            break
    return None


def _code(name: str, value: Any, history: ExecutionHistory, definitions: Definitions) -> How:
    """Return a function or class that no `def` or `class` of the notebook has given this name."""
    module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    loaded = sys.modules.get(module or "")
    if not definitions.owns(value) and getattr(loaded, qualname, None) is value:
        renamed = f" as {name}" if name != qualname else ""
        return Import((f"from {module} import {qualname}{renamed}",))
    made = by_statement(name, history, "is made again by its statement", _HOLDING)
    return made or (NoSource() if definitions.owns(value) else Value())


def is_code(value: Any) -> bool:
    """Return whether a value is code, which a text gives; not so `items.append`: it belongs to that
    very list, which its name may have left."""
    if isinstance(value, BuiltinFunctionType):
        return not isinstance(value.__self__, CHANGING)
    if isinstance(value, (type, FunctionType)):
        return True
    return isinstance(dict_of(value).get("__wrapped__"), FunctionType)  # lru_cache(f)


def _chain(name: str, executed: Executed, history: ExecutionHistory) -> tuple[Executed, ...]:
    """Return the statement, before it those whose result it takes, then changes."""
    return (*history.built_on(name, executed), *history.changes_of(name, after=executed.at))


# -- what cells that ran again say of a name ------------------------------------------------------


def by_replay(name: str, gathering: Gathering) -> SourceCode | None:
    """Return the statements that every rank runs for a name: those of its cells if these run again
    whole, else those that made it, if another rank has it otherwise and its value hides that."""
    replay, by_cells = gathering.replay, gathering.by_cells
    if replay is None or not ((by_cells and name in replay.changed()) or name in replay.knows):
        return None
    if not by_cells and not _hides_rank(name, gathering.definitions):
        return None
    making = None if by_cells else gathering.world.makings.of(name)
    chain = making.chain if making else tuple(replay.executed if by_cells else replay.makers(name))
    if not chain:
        return None
    executed = replay.knows[name][1] if name in replay.knows else chain[0]
    why = f"depends on the world ({executed.statement.where}), and is made again in every rank"
    return SourceCode(chain, why, world=True)


def _hides_rank(name: str, definitions: Definitions) -> bool:
    """Return whether what a name stands for tells nothing of the cell that chose it: a function of
    a package, a module, or what Python itself has by that name."""
    value = definitions.namespace.get(name)
    is_other = isinstance(value, ModuleType) or (is_code(value) and not definitions.owns(value))
    return is_other or name not in definitions.namespace


# -- values ---------------------------------------------------------------------------------------


def _plain(value: Any, depth: int, seen: set[int]) -> bool:
    """Return whether a value is plain, and no list or the like stands in it twice."""
    if value is None or type(value) in (bool, int, float, str, bytes):
        return True
    if not depth or type(value) not in (list, tuple, dict, set) or len(value) > _LITERAL_WIDTH:
        return False
    if id(value) in seen and not isinstance(value, tuple):
        return False
    seen.add(id(value))
    items = [*value.items()] if isinstance(value, dict) else value
    return all(_plain(item, depth - (not isinstance(value, dict)), seen) for item in items)


def is_literal(node: ast.expr | str, value: Any) -> bool:
    """Return whether an expression that is only written, not computed, is that value."""
    return _plain(value, 3, set()) and repr(evaluated(node)) == repr(value)


def evaluated(node: ast.expr | str) -> Any:
    """Return what an expression is that is only written; COMPUTED for others."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return COMPUTED


def is_builtin(name: str, value: Any = _MISSING) -> bool:
    """Return whether a name means Python's own, also where IPython has put its version in place."""
    if not hasattr(builtins, name) and name not in ("exit", "quit"):
        return False
    if value is _MISSING or value is getattr(builtins, name, _MISSING):
        return True
    names = value.__globals__ if type(value) is FunctionType else {}
    made_in = names.get("__name__", type(value).__module__)
    return str(made_in).startswith("IPython")
