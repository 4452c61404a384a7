"""What a rank must find when its program's text has run, as texts that it compares."""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.program.gathering.remake import asks_machine, is_tool
from distrain_nb.program.gathering.resolve import SourceCode
from distrain_nb.program.notebook.process_bound import is_bound
from distrain_nb.program.notebook.world import is_settings
from distrain_nb.worker.fingerprint import fingerprint, settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.gathering.needed import Needed
    from distrain_nb.program.notebook.world import World


def expectation(gathering: Gathering, own: Collection[str]) -> str:
    """Return the file of what is compared, as JSON; "" for nothing."""
    items = []
    for needed in gathering.found.values():
        if not isinstance(needed.how, SourceCode):
            continue
        knows_world = _knows_world(needed)
        skip = [] if knows_world else sorted(asking(needed, gathering.world))
        if knows_world and _has_settings(needed, gathering):
            parts = settings(needed.name, needed.value)
        elif knows_world or is_tool(needed.value):
            continue
        else:
            parts = fingerprint(needed.name, needed.value, {"__main__", *own}, skip)
        where = needed.how.chain[-1].statement.where
        compared = {"module": "", "name": needed.name, "where": where, "skip": skip}
        items.append({**compared, "knows_world": knows_world, "parts": parts})
    if not items:
        return ""
    return json.dumps({"python": sys.version_info[:2], "own": sorted(own), "items": items})


def exempt(gathering: Gathering) -> Iterator[str]:
    """What is not compared, or not all of it, and why: a line each."""
    for needed in gathering.found.values():
        if not isinstance(needed.how, SourceCode):
            continue
        kind = type(needed.value).__name__
        if _knows_world(needed) and _has_settings(needed, gathering):
            yield f"{needed.name}: {kind}, but for what it knows of its rank and world"
        elif _knows_world(needed):
            reading = gathering.world.learned(needed.name)
            asked = f" ({reading.what})" if reading else ""
            yield f"{needed.name}: {kind}, each rank makes its own, as it knows the world{asked}"
        elif is_tool(needed.value):
            yield f"{needed.name}: {kind}, which belongs to its process"
        else:
            for path in sorted({*asking(needed, gathering.world)}):
                yield f"{path}: asks for the world or the machine"


def _knows_world(needed: Needed) -> bool:
    assert isinstance(needed.how, SourceCode)
    return needed.how.world or is_bound(needed.value)


def _has_settings(needed: Needed, gathering: Gathering) -> bool:
    """Return whether an object that knows the world has numbers and texts that are the same in all
    ranks: its package asks for the world, and nothing that made it asks for itself."""
    assert isinstance(needed.how, SourceCode)
    world = gathering.world
    making = world.making(needed.name)
    if making is None or not is_bound(needed.value) or world.used_since(needed.name, making):
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


def asking(needed: Needed, world: World) -> Iterator[str]:
    """What ranks have otherwise, as its statement asks for the world or the machine."""
    assert isinstance(needed.how, SourceCode)
    for executed in needed.how.chain:
        node = executed.statement.node
        if not isinstance(node, ast.ClassDef):
            if world.asked_by(executed) or asks_machine(node):
                yield needed.name
            continue
        for statement in node.body:
            inner = replace(executed, statement=replace(executed.statement, node=statement))
            assigns = isinstance(statement, (ast.Assign, ast.AnnAssign))
            if assigns and (world.asked_by(inner) or asks_machine(statement)):
                for target in ast.walk(statement):
                    if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                        yield f"{needed.name}.{target.id}"
