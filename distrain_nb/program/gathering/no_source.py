"""Definitions that no executed cell has, and the `%run` of a file that has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.repairs import add_line

if TYPE_CHECKING:
    from distrain_nb.findings import Fix
    from distrain_nb.program.gathering.resolve import PendingName
    from distrain_nb.program.notebook.cells import Notebook

_RUN = re.compile(r"^[ \t]*(%run[ \t]+(?:-\S+[ \t]+)*([^\s#]+)[^\n#]*)", re.M)


def no_source(pending: PendingName, value: Any, notebook: Notebook) -> Finding:
    """Say that no executed cell defines a function or class."""
    kind = "class" if isinstance(value, type) else "function"
    way = "define it at the top level of a cell, or import it from a file"
    usual: tuple[str, tuple[Fix[str], ...]] = (f"not what any executed cell defines: {way}", ())
    reason, fixes = _run_that_defines(pending.name, notebook) or usual
    severity = Severity.ERROR if pending.required else Severity.WARNING
    message = f"the {kind} `{pending.name}` is {reason}"
    return Finding("capture.no-source", severity, pending.where, message, fixes)


def _run_that_defines(name: str, notebook: Notebook) -> tuple[str, tuple[Fix[str], ...]] | None:
    """Return what there is to say of the latest `%run` of a file with a definition of that name,
    and repairs of the cell."""
    definition = re.compile(rf"\b(?:def|class)[ \t]+{re.escape(name)}\b")
    for cell in reversed(notebook.cells):
        for match in reversed([*_RUN.finditer(cell.source)]):
            path = notebook.folder / match[2].strip("'\"")
            # Names of scripts may lack their ending.
            files = (path, Path(f"{path}.py"), Path(f"{path}.ipynb"))
            file = next((item for item in files if item.is_file()), None)
            if file is None or not definition.search(file.read_text("utf-8", "replace")):
                continue
            where = f"{cell.label}, line {cell.source[: match.start()].count(chr(10)) + 1}"
            defined = f"defined by `{match[1].strip()}` ({where}), whose file no run reads"
            beside = file.suffix == ".py" and file.parent == notebook.folder
            if beside and file.stem.isidentifier():
                line = f"from {file.stem} import {name}"
                return f"{defined}: write `{line}`", (add_line(line),)
            way = "define it at the top level of a cell, or import it from a .py file"
            return f"{defined}: {way}", ()
    return None
