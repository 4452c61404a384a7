"""Changes of objects that know the world which no statement that runs again makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.gathering.resolve import SourceCode
from distrain_nb.program.notebook.seen import is_at
from distrain_nb.worker.rank.expected import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.observed.changes import PartChange
    from distrain_nb.program.gathering.needed import Needed
    from distrain_nb.program.notebook.world import World


def lost(found: Mapping[str, Needed], world: World) -> Iterator[Finding]:
    """Yield an error for each object that is made again without a change that was seen."""
    for needed in found.values():
        if isinstance(needed.how, SourceCode) and needed.how.world:
            for change in world.seen.changes(needed.name):
                if _is_lost(change, needed.how, world):
                    yield _finding(change, needed)
                    break


def _is_lost(change: PartChange, how: SourceCode, world: World) -> bool:
    if any(is_at(change, executed.statement) for executed in how.chain):
        return False
    by = [e for e in world.history.executed if is_at(change, e.statement)]
    if not by:  # a magic has run the cell, of which statements are known by their cell alone
        return all(executed.statement.label != change.label for executed in how.chain)
    return not any(world.uses(executed.statement) for executed in by)


def _finding(change: PartChange, needed: Needed) -> Finding:
    where = f"{change.label}, line {change.line}"
    return Finding(
        "capture.process-bound",
        Severity.ERROR,
        needed.where[0],
        f"`{change.path}` is {shown(change.after)} in the notebook ({where}) and"
        f" {shown(change.before)} in the run, where `{needed.name}` is made again, as it knows the"
        " world: set it in the cell, or by a statement that names it",
    )
