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
from distrain_nb.worker.fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.gathering.needed import Needed


def expectation(gathering: Gathering, own: Collection[str]) -> str:
    """The file of what is compared, as JSON; "" for nothing."""
    items = [
        {
            "module": "",
            "name": needed.name,
            "where": needed.how.chain[-1].statement.where,
            "skip": skip,
            "parts": fingerprint(needed.name, needed.value, {"__main__", *own}, skip),
        }
        for needed in gathering.found.values()
        if isinstance(needed.how, SourceCode) and _is_compared(needed)
        for skip in [sorted(_asking(needed, gathering))]
    ]
    if not items:
        return ""
    return json.dumps({"python": sys.version_info[:2], "own": sorted(own), "items": items})


def _is_compared(needed: Needed) -> bool:
    assert isinstance(needed.how, SourceCode)
    return not (needed.how.world or is_bound(needed.value) or is_tool(needed.value))


def _asking(needed: Needed, gathering: Gathering) -> Iterator[str]:
    """What ranks have otherwise, as its statement asks for the world or the machine."""
    assert isinstance(needed.how, SourceCode)
    for executed in needed.how.chain:
        node = executed.statement.node
        if not isinstance(node, ast.ClassDef):
            if gathering.world.asked_by(executed) or asks_machine(node):
                yield needed.name
            continue
        for statement in node.body:
            inner = replace(executed, statement=replace(executed.statement, node=statement))
            assigns = isinstance(statement, (ast.Assign, ast.AnnAssign))
            if assigns and (gathering.world.asked_by(inner) or asks_machine(statement)):
                for target in ast.walk(statement):
                    if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                        yield f"{needed.name}.{target.id}"
