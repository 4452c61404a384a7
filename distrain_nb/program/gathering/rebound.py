"""Statements that run again with other values than they had in the notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.gathering.resolve import SourceCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.program.gathering.needed import Needed
    from distrain_nb.program.notebook.history import Executed, ExecutionHistory


def rebound(found: Mapping[str, Needed], history: ExecutionHistory) -> Iterator[Finding]:
    """A finding for each name that a statement saw and that another one has set since.

    What must be made again, because it depends on the world, must be made of the same.
    """
    made = [(n.name, n.how) for n in found.values() if isinstance(n.how, SourceCode)]
    repeated = {executed.at for _, how in made for executed in how.chain}
    late = history.late_annotations
    for name, how in made:
        for executed in how.chain:
            for use in executed.statement.names(late).needs.values():
                later = _set_since(use.name, executed, repeated, history)
                if not use.at_once or use.name == name or later is None:
                    continue
                where = f"{executed.statement.label}, line {use.line}"
                message = (
                    f"`{name}` is made again with the present `{use.name}`, which"
                    f" {later.statement.where} has set since"
                )
                if how.world:
                    message += f": run {executed.statement.where} again, or move it into the cell"
                severity = Severity.ERROR if how.world else Severity.WARNING
                yield Finding("capture.rebound", severity, where, message)


def _set_since(
    name: str,
    executed: Executed,
    repeated: set[tuple[int, int]],
    history: ExecutionHistory,
) -> Executed | None:
    """The statement that has set a name to something else since, unless both run again."""
    later = next((p for p in history.of(name) if p.at > executed.at), None)
    if later is None or later.statement.is_import or later.statement.is_definition:
        return None
    seen = next(iter(history.of(name, before=executed.at)), None)
    if seen and (seen.at in repeated or seen.statement.text == later.statement.text):
        return None
    return later
