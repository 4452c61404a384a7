"""What a rank must find when its program's text has run, as texts that it compares."""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distrain_nb.program.gathering.remake import asks_machine, is_tool
from distrain_nb.program.gathering.resolve import Needed, SourceCode
from distrain_nb.program.notebook.process_bound import is_bound
from distrain_nb.program.notebook.world import is_settings
from distrain_nb.worker.fingerprint import fingerprint, settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.notebook.world import World


def expectation(gathering: Gathering, own: Collection[str]) -> tuple[str, list[str]]:
    """Return the file of what is compared, as JSON, "" for nothing; and lines that say what is not
    compared, or not all of it, and why."""
    items, exempt = [], []
    for needed in gathering.found.values():
        if not isinstance(needed.how, SourceCode):
            continue
        name, kind, skip = needed.name, type(needed.value).__name__, list[str]()
        knows_world = needed.how.world or is_bound(needed.value)
        if knows_world and _has_settings(needed, gathering):
            exempt.append(f"{name}: {kind}, but for what it knows of its rank and world")
            parts = settings(name, needed.value)
        elif knows_world:
            reading = gathering.world.learned(name)
            asked = f" ({reading.what})" if reading else ""
            exempt.append(f"{name}: {kind}, each rank makes its own, as it knows the world{asked}")
            continue
        elif is_tool(needed.value):
            exempt.append(f"{name}: {kind}, which belongs to its process")
            continue
        else:
            skip = sorted({*asking(needed, gathering.world), *_asking_bases(needed, gathering)})
            exempt += [f"{path}: asks for the world or the machine" for path in skip]
            parts = fingerprint(name, needed.value, {"__main__", *own}, skip)
        where = needed.how.chain[-1].statement.where
        items.append(_item(name, where, parts, skip, knows_world=knows_world))
    for path, where in gathering.proofs.items():  # read to set a module's state
        value = eval(path, {**gathering.notebook.namespace})
        items.append(_item(path, where, fingerprint(path, value, ())))
    expected = {"python": sys.version_info[:2], "own": sorted(own), "items": items}
    return json.dumps(expected) if items else "", exempt


def _item(
    path: str,
    where: str,
    parts: Mapping[str, str],
    skip: Collection[str] = (),
    *,
    knows_world: bool = False,
) -> dict[str, Any]:
    compared = {"path": path, "where": where, "skip": skip}
    return {**compared, "knows_world": knows_world, "parts": parts}


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
        if asks_machine(statement.node) or world.asks_itself(executed):
            return False
        for name in statement.names().needs:
            value = gathering.notebook.namespace.get(name)
            if is_settings(value) and not is_bound(value) and world.learned(name):
                return False
    return True


def _asking_bases(needed: Needed, gathering: Gathering) -> Iterator[str]:
    """Yield the bases of a class that are compared by themselves, as they ask."""
    for base in getattr(needed.value, "__bases__", ()):
        own = gathering.found.get(base.__name__)
        text = own and own.value is base and isinstance(own.how, SourceCode)
        if own and text and (own.how.world or [*asking(own, gathering.world)]):  # type: ignore[union-attr]
            yield f"the base {base.__qualname__} of {needed.name}"


def asking(needed: Needed, world: World) -> Iterator[str]:
    """What ranks have otherwise, as its statement asks for the world or the machine."""
    assert isinstance(needed.how, SourceCode)
    for executed in needed.how.chain:
        node = executed.statement.node
        is_class = isinstance(node, ast.ClassDef) and isinstance(needed.value, type)
        if not is_class or issubclass(needed.value, tuple):  # which keep defaults elsewhere
            if world.asked_by(executed) or asks_machine(node):
                yield needed.name
            continue
        for statement in node.body:  # type: ignore[attr-defined]
            inner = replace(executed, statement=replace(executed.statement, node=statement))
            assigns = isinstance(statement, (ast.Assign, ast.AnnAssign))
            if assigns and (world.asked_by(inner) or asks_machine(statement)):
                for target in ast.walk(statement):
                    if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                        yield f"{needed.name}.{target.id}"
