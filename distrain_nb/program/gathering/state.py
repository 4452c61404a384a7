"""What is set when a text has run: what definitions were given since, and the weights of models.

What a rank must find when its program's text has run, as texts that it compares.
"""

from __future__ import annotations

import ast
import itertools
import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from functools import cached_property
from logging import Logger
from threading import Event, Semaphore
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.definitions import OF_CLASSES, is_definition, parts
from distrain_nb.program.gathering.remake import is_tool
from distrain_nb.program.gathering.resolve import Import, Needed, SourceCode, Value
from distrain_nb.program.notebook.ancestry import is_settings
from distrain_nb.program.notebook.process_objects import is_bound
from distrain_nb.program.notebook.reach import ASKS_MACHINE, asks_machine
from distrain_nb.program.python.nodes import words_in
from distrain_nb.program.values.pickling import try_value
from distrain_nb.program.values.shared import CHANGING
from distrain_nb.worker.files.disk import readable_size
from distrain_nb.worker.fingerprint import LIVE, dict_of, fingerprint, settings
from distrain_nb.worker.rank.caches import CACHE, caches_in
from distrain_nb.worker.rank.expected import shown
from distrain_nb.worker.rank.process_state import TABLE
from distrain_nb.worker.rank.wrapped import unwrapped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.notebook.world import World
    from distrain_nb.program.values.pickling import Definitions


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


# What a data class has of a default that its statement gives.
_OF_FIELDS = ("the default of {} in {}.__init__", "default of the field {} of {}")
_METHODS = (FunctionType, BuiltinFunctionType, staticmethod, classmethod, property, cached_property)


def subclasses_of(found: Mapping[str, Needed], definitions: Definitions) -> set[str]:
    """Return the names of the notebook's classes that are made of those which were found."""
    names, visited = set[str](), set[type]()
    waiting = [n.value for n in found.values() if isinstance(n.value, type)]
    while waiting:
        cls = waiting.pop()
        if definitions.owns(cls) and cls not in visited:
            visited.add(cls)
            names.update(path.partition(".")[0] for path in [*definitions.paths(cls)][:1])
            waiting += type.__subclasses__(cls)
    return names


def state_of(
    needed: Needed, where: str, world: World, definitions: Definitions, limit: int
) -> Iterator[Needed | Finding]:
    """Yield the attributes of a definition that its text doesn't give; a finding for those that
    can't travel. Where nobody saw its statement all that are no methods: a rank keeps what is
    equal."""
    assert isinstance(needed.how, SourceCode)
    name, definition = needed.name, needed.value
    statements = [executed.statement for executed in needed.how.chain]
    replay = world.seen.replay
    if not is_definition(definition) or (replay and replay.decides(name)):
        return
    is_class = isinstance(definition, type)
    seen = world.seen.observer.originals.changed(name, definition)
    changes = seen or {}
    if seen is None:  # nobody saw its statement
        plain = ((p, v) for p, v in parts(name, definition) if not isinstance(v, _METHODS))
        given = ((p, v) for p, v in plain if p.rpartition(".")[2] not in OF_CLASSES)
        changes = {path: (value, ("", "", "")) for path, value in given}
    asks = {*asking(needed, world)} if seen is None and changes else set()
    for path, (value, change) in changes.items():
        if path in asks or name in asks:
            continue
        # `A.tags = old` after `old = A.tags`
        attribute = path[len(name) + 1 :]
        bases = definition.__mro__[1:] if type(value) in CHANGING and is_class else ()
        shares = (b.__qualname__ for b in bases if vars(b).get(attribute) is value)
        if base := next(shares, ""):
            message = (
                f"`{path}` is the same {type(value).__name__} as `{base}.{path.rpartition('.')[2]}`"
                f" in the notebook ({statements[0].where}), and would be another one in the run."
                " Set it in the cell"
            )
            yield Finding("capture.not-portable", Severity.ERROR, where, message)
            continue
        trial = try_value(path, value, definitions, limit)
        if trial.problem is None and trial.complete:
            yield Needed(path, value, Value(), (where,), trial, name)
            continue
        part, before, after = change
        is_live = type(value).__module__.partition(".")[0] in LIVE
        # What a wrapper keeps for itself, as that of `jax.jit` does, each rank's own has.
        is_packages = not isinstance(definition, (type, FunctionType)) and attribute[:1] == "_"
        if part and len(statements) == 1 and not (is_live or is_packages):
            why = trial.problem.reason if trial.problem else "is too large to travel"
            message = (
                f"`{part}` is {shown(after)} in the notebook ({statements[0].where}) and"
                f" {shown(before)} in the run, which makes `{name}` again from its text: `{path}`"
                f" {why}. Set it in the cell"
            )
            yield Finding("capture.not-portable", Severity.ERROR, where, message)


def caches_of(
    needed: Needed, where: str, world: World, definitions: Definitions
) -> Iterator[Needed | Finding]:
    """Yield what a definition has cached. Where a function asks the world or the machine, each rank
    computes its own."""
    assert isinstance(needed.how, SourceCode)
    name, chain = needed.name, needed.how.chain
    for path, function, results in caches_in(name, needed.value):
        executed = (
            e
            for e in world.history.executed
            if e.at > chain[0].at and e not in chain and world.reaches.reads(e.statement, name)
        )
        code = function.__code__
        asks = code in world.seen.observer.askers or ASKS_MACHINE.intersection(code.co_names)
        if asks or any(map(world.dependence_of, executed)):
            continue
        key = f"{path}{CACHE}"
        trial = try_value(key, results, definitions, _MOST_OF_CACHE)
        if trial.problem is None and trial.complete:
            yield Needed(key, results, Value(), (where,), trial, name)
        else:
            why = trial.problem.reason if trial.problem else "is too large to travel"
            message = f"what `{path}` has cached {why}: the run computes it again"
            yield Finding("capture.made-again", Severity.INFO, where, message)


_MOST_OF_CACHE = 2**20  # bytes: what is larger was loaded, not changed


# -- weights of models that are made again ---------------------------------------------------------

_MOST_PARTS = 100


def weights_of(
    needed: Needed, where: str, definitions: Definitions, limit: int
) -> Iterator[Needed | Finding]:
    """Yield the weights of models that are made again, which travel; a finding for those that
    can't."""
    if isinstance(needed.value, (type, FunctionType)):
        return
    for path, name, weights in _weights_in(needed.name, needed.value):
        trial = try_value(name, weights, definitions, limit)
        if not trial.problem and trial.complete and trial.size <= limit:
            yield Needed(name, weights, Value(), (where,), trial, needed.name, path)
            continue
        size = readable_size(trial.size)
        why = trial.problem.reason if trial.problem else f"are larger than may travel ({size})"
        message = (
            f"the weights of `{path}` {why}: it is made again, and has those that its statements"
            " give. Load them in the cell"
        )
        yield Finding("capture.made-again", Severity.WARNING, where, message)


def _weights_in(name: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """Models in an object: how the program writes them, how their weights, and the weights."""
    inside = [(name, value)]
    if isinstance(value, (list, tuple)):
        inside += [(f"{name}[{n}]", part) for n, part in enumerate(value[:_MOST_PARTS])]
    elif isinstance(value, dict):
        inside += [(f"{name}[{k!r}]", v) for k, v in value.items() if isinstance(k, (str, int))]
    elif not (hasattr(type(value), "named_parameters") or isinstance(value, type)):
        attributes = dict_of(value).items()
        inside += [(f"{name}.{key}", part) for key, part in attributes if key[:1] != "_"]
    for path, part in {id(part): (path, part) for path, part in reversed(inside)}.values():
        model, way = unwrapped(part), ""
        if hasattr(type(model), "load_state_dict") and hasattr(model, "named_parameters"):
            way = "state_dict"
        elif hasattr(type(model), "set_weights") and hasattr(model, "trainable_variables"):
            way = "get_weights"
        weights = getattr(model, way)() if way and not isinstance(model, type) else None
        if weights:
            yield path, f"{path}.{way}()", weights
