"""Names that the notebook does not have: what is meant by them, and which the cell sets itself."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import closest
from distrain_nb.program.gathering.resolve import SourceCode
from distrain_nb.program.python.names import names_of
from distrain_nb.program.python.reads import Read
from distrain_nb.repairs import add_line, write_name

if TYPE_CHECKING:
    import ast
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from distrain_nb.findings import Fix
    from distrain_nb.program.gathering.resolve import Needed
    from distrain_nb.program.notebook.cells import Notebook
    from distrain_nb.program.notebook.history import ExecutionHistory
    from distrain_nb.program.python.names import Names


# What notebooks call these modules by custom.
_BY_CUSTOM = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "sns": "import seaborn as sns",
    "tf": "import tensorflow as tf",
    "keras": "from tensorflow import keras",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "dist": "import torch.distributed as dist",
    "DDP": "from torch.nn.parallel import DistributedDataParallel as DDP",
    "hvd": "import horovod.torch as hvd",
    "jnp": "import jax.numpy as jnp",
}


def undefined_name(name: str, known: Collection[str]) -> tuple[str, tuple[Fix[str], ...]]:
    """Return a hint, and repairs of the cell: the import that is missing, or the name that is
    meant."""
    close = "" if name in _BY_CUSTOM else closest(name, known, cutoff=0.75)
    line = _BY_CUSTOM.get(name, f"import {name}")
    there = _is_installed(line.split()[1].partition(".")[0])
    fixes = (*([write_name(name, close)] if close else ()), *([add_line(line)] if there else ()))
    if close:
        return f"did you mean `{close}`?", fixes
    return "import it in the cell" if there else "define it before, or in the cell", fixes


def listed(names: Sequence[str], shown: int = 12) -> str:
    """Return names for a sentence, and how many more there are."""
    first = ", ".join(f"`{name}`" for name in names[:shown]) or "none"
    return f"{first} and {len(names) - shown} more" if len(names) > shown else first


_RUN = re.compile(r"^[ \t]*(%run[ \t]+(?:-\S+[ \t]+)*([^\s#]+)[^\n#]*)", re.M)


def run_that_defines(name: str, notebook: Notebook) -> tuple[str, tuple[Fix[str], ...]] | None:
    """Return what there is to say of the latest `%run` of a file with a definition of that name,
    and repairs of the cell."""
    definition = re.compile(rf"\b(?:def|class)[ \t]+{re.escape(name)}\b")
    for cell in reversed(notebook.cells):
        for match in reversed([*_RUN.finditer(cell.source)]):
            file = _run_file(match[2].strip("'\""), notebook.folder)
            if file is None or not definition.search(file.read_text("utf-8", "replace")):
                continue
            where = f"{cell.label}, line {cell.source[: match.start()].count(chr(10)) + 1}"
            defined = f"defined by `{match[1].strip()}` ({where}), whose file no run reads"
            beside = file.suffix == ".py" and file.parent == notebook.folder
            if beside and file.stem.isidentifier():
                line = f"from {file.stem} import {name}"
                return f"{defined}: write `{line}`", (add_line(line),)
            return (
                f"{defined}: define it at the top level of a cell, or import it from a .py file",
                (),
            )
    return None


def _run_file(text: str, folder: Path) -> Path | None:
    """What `%run` reads: names of scripts may lack their ending."""
    files = (folder / text, folder / f"{text}.py", folder / f"{text}.ipynb")
    return next((file for file in files if file.is_file()), None)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a module that hides where it is from
        return False


# -- names that the cell sets itself ---------------------------------------------------------------


def own_names(
    tree: ast.Module, names: Names, history: ExecutionHistory, namespace: Mapping[str, Any]
) -> frozenset[str]:
    """Return names that functions of the notebook find in the program because the cell has set
    them.

    The cell is walked once more with the bodies of the notebook's functions, which count as
    called where their names are read.
    """
    bodies = {name: _reads(name, history) for name in history.bindings}
    for name, value in namespace.items():
        made_here = getattr(type(value), "__module__", "") == namespace.get("__name__")
        if made_here and name in bodies:
            bodies[name].append(Read(type(value).__qualname__.partition(".")[0], 0))
    needed = names_of(tree.body, bodies=bodies).needs
    return frozenset(names.binds - needed.keys())


def set_by_functions(found: Mapping[str, Needed], history: ExecutionHistory) -> set[str]:
    """Return names that definitions which come along declare `global` and set when they are
    called."""
    statements = [
        executed.statement
        for needed in found.values()
        if isinstance(needed.how, SourceCode)
        for executed in needed.how.chain
    ]
    late = history.late_annotations
    return {name for s in statements for name in s.names(late).binds - s.binds}


def _reads(name: str, history: ExecutionHistory) -> list[Read]:
    statement = history.of(name)[0].statement
    uses = statement.names(history.late_annotations).needs.values()
    return [
        Read(use.name, use.line)
        for use in uses
        if use.name != name and not (statement.is_definition and use.at_once)
    ]
