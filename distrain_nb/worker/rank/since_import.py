"""Imports of the user's modules change nothing that the notebook has set since its own import.

The notebook imported a module, and set an environment variable or a default type after that. In a
rank the import may come last: what it sets would override what the notebook has.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from distrain_nb.worker.machine.environment import variables
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.process_setting import FIRST
from distrain_nb.worker.rank.process_state import TABLE, read, write


class SinceImport(NamedTuple):
    """What is another one in the notebook than when a module had been imported: the names of
    settings, as `process_state` has them, of variables of the environment, and of those that have
    been `deleted`. No values: variables may be secrets, and a rank has its own."""

    settings: List[str]
    variables: List[str]
    deleted: List[str]


def keep(since_import: Mapping[str, Sequence[Any]]) -> None:
    """Undo, of what the import of each module changes, what the notebook has set since."""
    on_import({name: _Before(SinceImport(*names)) for name, names in since_import.items()})


class _Before:
    """Settings and variables before a module is imported, which they have again after that."""

    def __init__(self, names: SinceImport) -> None:
        self.names = names
        self.settings: Dict[str, Any] = {}
        self.variables: Dict[str, str] = {}

    def begin(self) -> None:
        """Keep what the process has before the module's code runs."""
        self.settings, self.variables = dict(read()), variables()

    def __call__(self, _: Any) -> None:
        self._undo_settings()
        self._undo_variables()

    def _undo_settings(self) -> None:
        now = dict(read())
        for name in self.names.settings:
            usual = TABLE[name].usual if name in TABLE else FIRST
            before = self.settings.get(name, usual)  # of a package that the module has imported
            if name in now and before is not FIRST and now[name] != before:
                write(name, sys.modules[name.partition(":")[0]], before)

    def _undo_variables(self) -> None:
        for name in os.environ.keys() & {*self.names.variables}:
            # On other machines a rank may lack it: there it stays as the module has set it.
            os.environ[name] = self.variables.get(name, os.environ[name])
        for name in {*self.names.deleted} - self.variables.keys():
            os.environ.pop(name, None)
