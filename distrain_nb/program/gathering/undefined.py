"""What may be meant by a name that the notebook does not have."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from distrain_nb.errors import closest
from distrain_nb.repairs import add_line, write_name

if TYPE_CHECKING:
    from collections.abc import Collection

    from distrain_nb.findings import Fix

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
    """A hint, and repairs of the cell: the import that is missing, or the name that is meant."""
    close = "" if name in _BY_CUSTOM else closest(name, known, cutoff=0.75)
    line = _BY_CUSTOM.get(name, f"import {name}")
    there = _is_installed(line.split()[1].partition(".")[0])
    fixes = (*([write_name(name, close)] if close else ()), *([add_line(line)] if there else ()))
    if close:
        return f"did you mean `{close}`?", fixes
    return "import it in the cell" if there else "define it before, or in the cell", fixes


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a module that hides where it is from
        return False
