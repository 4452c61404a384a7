"""What may be meant by a name that the notebook does not have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from distrain_nb.errors import closest
from distrain_nb.repairs import add_line, write_name

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from distrain_nb.findings import Fix
    from distrain_nb.program.notebook.cells import Notebook

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


@dataclass(frozen=True)
class RunFile:
    """A file that a cell has run by `%run`, and that defines a name."""

    name: str
    command: str
    where: str
    module: str  # what Python can import of it; empty for none

    @property
    def described(self) -> str:
        return f"defined by `{self.command}` ({self.where}), whose file no run reads"

    @property
    def advice(self) -> str:
        if self.module:
            return f"write `{self._line}`"
        return "define it at the top level of a cell, or import it from a .py file"

    @property
    def fixes(self) -> tuple[Fix[str], ...]:
        return (add_line(self._line),) if self.module else ()

    @property
    def _line(self) -> str:
        return f"from {self.module} import {self.name}"


_RUN = re.compile(r"^[ \t]*(%run[ \t]+(?:-\S+[ \t]+)*([^\s#]+)[^\n#]*)", re.M)


def run_that_defines(name: str, notebook: Notebook) -> RunFile | None:
    """Return the latest `%run` of a file with a definition of that name."""
    definition = re.compile(rf"\b(?:def|class)[ \t]+{re.escape(name)}\b")
    for cell in reversed(notebook.cells):
        for found in reversed([*_RUN.finditer(cell.source)]):
            file = _run_file(found[2].strip("'\""), notebook.folder)
            if file is not None and definition.search(file.read_text("utf-8", "replace")):
                where = f"{cell.label}, line {cell.source[: found.start()].count(chr(10)) + 1}"
                beside = file.suffix == ".py" and file.parent == notebook.folder
                module = file.stem if beside and file.stem.isidentifier() else ""
                return RunFile(name, found[1].strip(), where, module)
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
