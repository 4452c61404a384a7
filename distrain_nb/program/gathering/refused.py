"""Findings about names that can't be captured."""

from __future__ import annotations

import builtins
from importlib.util import find_spec
from typing import TYPE_CHECKING

from distrain_nb.errors import closest
from distrain_nb.findings import Finding, Severity
from distrain_nb.program.advice.reading import CUSTOMARY
from distrain_nb.program.gathering.own_names import set_by_functions
from distrain_nb.repairs import add_line, write_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from distrain_nb.findings import Fix
    from distrain_nb.program.gathering.resolve import Needed, PendingName
    from distrain_nb.program.notebook.cells import Notebook
    from distrain_nb.program.notebook.history import ExecutionHistory


def not_captured(pending: PendingName, why: str) -> Finding:
    """Return the finding for a name that the cell sets itself before it reads it."""
    message = f"`{pending.name}` is not captured, as the cell sets its own ({why})"
    return Finding("capture.not-carried", Severity.INFO, pending.where, message)


def of_prompt(name: str, where: str) -> Finding:
    """Return the finding about a name that only a prompt has."""
    message = (
        f"`{name}` belongs to the notebook and does not exist in a run:"
        " assign what you need of it to a variable in another cell"
    )
    return Finding("capture.not-portable", Severity.ERROR, where, message)


def undefined(
    missing: Iterable[PendingName],
    gathered: Mapping[str, Needed],
    history: ExecutionHistory,
    notebook: Notebook,
) -> Iterator[Finding]:
    """Yield findings about names that the notebook does not have."""
    set_inside = set_by_functions(gathered, history)
    for pending in missing:
        if pending.name not in set_inside:
            names = {*notebook.namespace, *dir(builtins)}
            hint, fixes = undefined_name(pending.name, names)
            severity = Severity.ERROR if pending.at_once else Severity.WARNING
            message = f"`{pending.name}` is not defined in the notebook: {hint}"
            yield Finding("capture.undefined-name", severity, pending.where, message, fixes)


def undefined_name(name: str, known: Collection[str]) -> tuple[str, tuple[Fix[str], ...]]:
    """Return a hint, and repairs of the cell: the import that is missing, or the name that is
    meant."""
    close = "" if name in CUSTOMARY else closest(name, known, cutoff=0.75)
    package, _, part = CUSTOMARY.get(name, name).rpartition(".")
    own = part if part == name else f"{part} as {name}"
    line = f"from {package} import {own}" if package else f"import {own}"
    try:
        there = find_spec((package or part).partition(".")[0]) is not None
    except (ImportError, ValueError):  # a module that hides where it is from
        there = False
    fixes = (*([write_name(name, close)] if close else ()), *([add_line(line)] if there else ()))
    if close:
        return f"did you mean `{close}`?", fixes
    return "import it in the cell" if there else "define it before, or in the cell", fixes
