"""What a rank must find when its program text has run, as texts that it compares."""

from __future__ import annotations

import ast
import itertools
import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from logging import Logger
from threading import Event, Semaphore
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.program.gathering.remake import is_tool
from distrain_nb.program.gathering.resolve import Import, Needed, SourceCode, Value
from distrain_nb.program.notebook.ancestry import is_settings
from distrain_nb.program.notebook.process_objects import is_bound
from distrain_nb.program.notebook.reach import asks_machine
from distrain_nb.program.python.nodes import words_in
from distrain_nb.worker.fingerprint import fingerprint, settings
from distrain_nb.worker.rank.process_state import TABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.notebook.world import World

# What a data class has of a default that its statement gives.
_OF_FIELDS = ("the default of {} in {}.__init__", "default of the field {} of {}")


def expectation(gathering: Gathering, own: Collection[str]) -> tuple[str, list[str]]:
    """Return the file of what is compared, as JSON, "" for nothing; and lines that say what is not
    compared, or not all of it, and why."""
    items, exempt, own_modules = list[dict[str, Any]](), list[str](), {"__main__", *own}
    for needed in gathering.found.values():
        if not isinstance(needed.how, SourceCode):
            continue
        name, kind, skip = needed.name, type(needed.value).__name__, list[str]()
        where = needed.how.chain[-1].statement.where
        knows_world = needed.how.world or is_bound(needed.value)
        items += _before_asking(needed, gathering.world)
        if knows_world and _has_settings(needed, gathering):
            exempt.append(f"{name}: {kind}, but for what it knows of its rank and world")
            parts = settings(name, needed.value)
        elif knows_world:
            dependence = gathering.world.dependence(name)
            asked = f" ({dependence.what})" if dependence else ""
            exempt.append(f"{name}: {kind}, each rank makes its own, as it knows the world{asked}")
            continue
        elif is_tool(needed.value):
            exempt.append(f"{name}: {kind}, which belongs to its process")
            for path in _of_tool(name, needed.value):
                value = eval(path, {**gathering.notebook.namespace})
                items.append(_item(path, where, fingerprint(path, value, own_modules)))
            continue
        else:
            skip = sorted({*asking(needed, gathering.world), *_asking_bases(needed, gathering)})
            exempt += [
                f"{p}: asks for the world or the machine" for p in skip if "default of" not in p
            ]
            parts = fingerprint(name, needed.value, own_modules, skip)
        items.append(_item(name, where, parts, skip=skip, knows_world=knows_world))
    for needed in gathering.found.values():
        packages = gathering.definitions.packages
        if isinstance(needed.how, Value) and packages.place(needed.value):
            parts = settings(needed.name, needed.value)
            items.append(_item(needed.name, needed.where[0], parts, knows_world=True))
        if isinstance(needed.how, Import) and isinstance(needed.value, (ModuleType, type)):
            patched = _patched(needed.name, needed.value, own_modules)
            items += [_item(path, needed.where[0], {path: text}) for path, text in patched]
    since = gathering.world.seen.observer.settings.since_import(own)
    expected: dict[str, Any] = {"python": sys.version_info[:2], "own": sorted(own)}
    expected |= {"items": items, "since_import": since}
    return json.dumps(expected) if items or since else "", exempt


def _patched(name: str, package: Any, modules: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield what tells of the notebook's functions, and mocks, that stand in a package's module or
    class, whatever has put them there."""
    module = getattr(package, "__module__", None) or package.__name__
    for attribute, value in [*vars(package).items()] if module not in modules else ():
        cls = type(value)  # `isinstance` would ask lazy objects for theirs
        if cls.__module__ == "unittest.mock" != module:
            yield f"type({name}.{attribute}).__module__", "str 'unittest.mock'"
        elif (
            issubclass(cls, (FunctionType, type))
            and value.__module__ == "__main__"
            and f"{package.__name__}:{attribute}" not in TABLE
        ):
            yield f"{name}.{attribute}.__module__", "str '__main__'"


def _of_tool(name: str, tool: Any) -> tuple[str, ...]:
    """Return what tells of a logger, a parser of arguments, an event or a semaphore, whatever has
    set it."""
    if isinstance(tool, Logger):
        return (f"{name}.name",)
    if isinstance(tool, ArgumentParser):
        return f"{name}._defaults", f"{{a.dest: a.default for a in {name}._actions}}"
    if isinstance(tool, Event):
        return (f"{name}.is_set()",)
    if isinstance(tool, Semaphore):
        return (f"{name}._value",)
    return ()


def _before_asking(needed: Needed, world: World) -> Iterator[dict[str, Any]]:
    """Yield the parts that an object must have when the first of its statements asks for the
    world: what else has changed it by then is in no text."""
    assert isinstance(needed.how, SourceCode)
    for earlier, executed in itertools.pairwise(needed.how.chain):
        statement = earlier.statement
        asked = [*world.seen.asked(statement)] or world.seen.known_to(statement)
        if asked or asks_machine(statement.words()):
            return
        if parts := world.seen.before(executed.statement, needed.name):
            where = executed.statement.where
            yield _item(needed.name, f"before {where}", parts, before=where)
            return


def _item(path: str, where: str, parts: Mapping[str, str], **more: Any) -> dict[str, Any]:
    usual = {"skip": (), "before": "", "knows_world": False}
    return {"path": path, "where": where, **usual, **more, "parts": parts}


def _has_settings(needed: Needed, gathering: Gathering) -> bool:
    """Return whether an object that knows the world has numbers and texts that are the same in all
    ranks: its package asks for the world, and nothing that made it asks for itself."""
    assert isinstance(needed.how, SourceCode)
    world = gathering.world
    making = world.makings.of(needed.name)
    if making is None or not is_bound(needed.value) or world.makings.worked_on(needed.name, making):
        return False
    for executed in needed.how.chain:
        statement = executed.statement
        if asks_machine(statement.words()) or world.asks_directly(executed):
            return False
        for name in statement.names().needs:
            value = gathering.notebook.namespace.get(name)
            if is_settings(value) and not is_bound(value) and world.dependence(name):
                return False
    return True


def _asking_bases(needed: Needed, gathering: Gathering) -> Iterator[str]:
    """Yield the bases of a class that are compared by themselves, as they ask."""
    for base in getattr(needed.value, "__bases__", ()):
        own = gathering.found.get(base.__name__)
        how = own.how if own and own.value is base else None
        if own and isinstance(how, SourceCode) and (how.world or [*asking(own, gathering.world)]):
            yield f"the base {base.__qualname__} of {needed.name}"


def asking(needed: Needed, world: World) -> Iterator[str]:
    """Yield what differs in ranks because its statement asks for the world or the machine."""
    assert isinstance(needed.how, SourceCode)
    for executed in needed.how.chain:
        node = executed.statement.node
        if world.changed_variables(executed.statement):
            continue
        is_class = isinstance(node, ast.ClassDef) and isinstance(needed.value, type)
        if not is_class or issubclass(needed.value, tuple):  # which keep defaults elsewhere
            if world.dependence_of(executed) or asks_machine(executed.statement.words()):
                yield needed.name
            continue
        by_parts = False
        for statement in node.body:  # type: ignore[attr-defined]
            if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
                continue
            inner = replace(executed, statement=replace(executed.statement, node=statement))
            if world.dependence_of(inner) or asks_machine(words_in(statement)):
                by_parts = True
                for target in ast.walk(statement):
                    if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                        yield f"{needed.name}.{target.id}"
                        for text in _OF_FIELDS:
                            yield text.format(target.id, needed.name)
        # Its decorator, base or metaclass asked, and may have given it anything.
        if not by_parts and any(read.direct for read in world.seen.asked(executed.statement)):
            yield needed.name
