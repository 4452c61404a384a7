"""Imports of the user's modules change nothing that the notebook has set since its own import.

The notebook imported a module, and set an environment variable or a default type after that. In a
rank the import may come last: what it sets would override what the notebook has.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Mapping, Sequence

from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.process_state import FIRST, TABLE, read, write

SETTINGS, VARIABLES, DELETED = "settings", "variables", "deleted"


def keep(since_import: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    """Undo, of what the import of each module changes, these settings and variables."""
    on_import({name: _Kept(names) for name, names in since_import.items()})


class _Kept:
    """Settings and variables before a module is imported, which they have again after that."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self.names = names
        self.settings: Dict[str, Any] = {}
        self.variables: Dict[str, str] = {}

    def begin(self) -> None:
        self.settings, self.variables = dict(read()), dict(os.environ)

    def __call__(self, _: Any) -> None:
        now = dict(read())
        for name in self.names[SETTINGS]:
            usual = TABLE[name].usual if name in TABLE else FIRST
            before = self.settings.get(name, usual)  # of a package that the module has imported
            if name in now and before is not FIRST and now[name] != before:
                write(name, sys.modules[name.partition(":")[0]], before)
        for name in os.environ.keys() & {*self.names[VARIABLES]}:
            # On other machines a rank may lack it: there it stays as the module has set it.
            os.environ[name] = self.variables.get(name, os.environ[name])
        for name in {*self.names[DELETED]} - self.variables.keys():
            os.environ.pop(name, None)
