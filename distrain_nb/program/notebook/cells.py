"""Cells and notebooks: everything that capture looks at, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from distrain_nb.observed import Observer


@dataclass(frozen=True)
class Cell:
    """One executed cell.

    `label` is its name in tracebacks, such as "Cell In[7]". `source` is the whole cell as its
    author sees it, a magic line included, so that line numbers are those on the screen.
    """

    label: str
    source: str


@dataclass(frozen=True)
class Notebook:
    """What a cell may need: names, the executed cells (oldest first), and the folder of modules.

    `given` are values that take the place of the notebook's: those that options set. `optional`
    are names among them that need not be read, as what they name is there all the same. `observer`
    saw what its cells asked about the world.
    """

    namespace: Mapping[str, Any]
    cells: Sequence[Cell]
    folder: Path
    given: Mapping[str, Any] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    observer: Observer | None = None


def working_folder() -> Path:
    """Where Python runs. Raises OptionError if that folder has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise OptionError(
            "the working folder has been removed: change to one that exists, as in `%cd ~`"
        ) from None
