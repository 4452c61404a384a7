"""Where the user's own code lives: the notebook, and each module beside it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib.util import decode_source
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.program.notebook.cells import Cell
from distrain_nb.program.notebook.history import ExecutionHistory, history
from distrain_nb.program.notebook.local_modules import gone_file, is_installed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType


@dataclass(frozen=True, eq=False)
class OwnModule:
    """Names, and the statements that made them."""

    namespace: Mapping[str, Any]
    history: ExecutionHistory


@dataclass
class OwnModules:
    """The user's own modules by their names; installed packages are none. `gone` are those that
    were asked for and whose files are there no more."""

    notebook: OwnModule
    gone: set[str] = field(default_factory=set)
    _known: dict[str, OwnModule | None] = field(default_factory=dict)

    def of(self, name: str | None) -> OwnModule | None:
        """Return the module of that name, if it is the user's own."""
        if name == self.notebook.namespace.get("__name__", "__main__"):
            return self.notebook
        if not name:
            return None
        if name not in self._known:
            self._known[name] = _read(sys.modules.get(name))
            gone = gone_file(name)
            if gone and not is_installed(gone):
                self.gone.add(name)
        return self._known[name]


def _read(module: ModuleType | None) -> OwnModule | None:
    file = getattr(module, "__file__", None)
    if module is None or not file or not str(file).endswith(".py"):
        return None
    root = module.__name__.partition(".")[0]
    if root in sys.stdlib_module_names or root == "distrain_nb":
        return None
    path = Path(file).absolute()
    if is_installed(path):
        return None
    try:
        source = decode_source(path.read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    return OwnModule(vars(module), history([Cell(str(path), source)]))
