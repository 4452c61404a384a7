"""Names whose making nobody saw, so that it is not known what it asked about the world."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.gathering.resolve import Literal, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.program.gathering.needed import Needed
    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.world import World

_SHELL = re.compile(r"pass  # (\w+) *= *!")
_BEFORE = (
    "made while the extension wasn't watching (before `%load_ext distrain_nb`, or with"
    " `%distrain config observe=off`), so captured unless the text of a cell asks for the rank or"
    " world; run these again to be sure: "
)
_BY_SHELL = "captured as a shell command gave it, whatever that asked about the rank or world: "


def unseen(found: Mapping[str, Needed], world: World) -> Iterator[Finding]:
    """A finding for the values that statements made before the extension was there, and one for
    those that shell commands gave."""
    values = [n.name for n in found.values() if isinstance(n.how, (Literal, Value))]
    before = [(name, made) for name in values for made in _made_unseen(name, world)]
    by_shell = [(name, made) for name in values for made in _made_by_shell(name, world)]
    for message, names in ((_BEFORE, before), (_BY_SHELL, by_shell)):
        if names:
            lines = ", ".join(f"`{name}` ({made.statement.where})" for name, made in names)
            yield Finding("capture.unseen", Severity.INFO, "", message + lines)


def _made_unseen(name: str, world: World) -> list[Executed]:
    making = world.making(name) if world.seen.observer else None
    chain = making.chain if making else ()
    return [p for p in chain if not world.saw(p.statement) and _calls(p.statement.node)][:1]


def _made_by_shell(name: str, world: World) -> list[Executed]:
    latest = next(iter(world.history.of(name)), None)
    later = (p for p in reversed(world.history.executed) if latest is None or p.at > latest.at)
    shells = ((p, _SHELL.match(p.statement.text)) for p in later)
    return [p for p, shell in shells if shell and shell[1] == name][:1]


def _calls(node: ast.stmt) -> bool:
    return any(isinstance(inner, ast.Call) for inner in ast.walk(node))
