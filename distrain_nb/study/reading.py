"""The trials that a study's folder has: what has changed is read, everything else is known."""

from __future__ import annotations

import os
import re
from threading import Lock
from typing import TYPE_CHECKING

from distrain_nb.study.files import TRIALS_FOLDER, TrialFile
from distrain_nb.study.trial import StudyTrial
from distrain_nb.worker.files import fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAME = re.compile(r"[1-9][0-9]*\.json")
_Version = tuple[int, int, int]


class TrialReader:
    """Reads them again and again; threads may share one. A file is replaced, never written over."""

    def __init__(self, folder: Path) -> None:
        """*folder* is the study's."""
        self._folder = folder / TRIALS_FOLDER
        self._known: dict[str, tuple[_Version, StudyTrial]] = {}
        self._ordered: tuple[StudyTrial, ...] = ()
        self._reading = Lock()

    def read(self) -> tuple[StudyTrial, ...]:
        """Return all trials, by number; the same tuple where nothing has changed. Raises
        `fields.Damaged`, OSError."""
        with self._reading:
            versions = dict(self._versions())
            fresh = {
                name: (version, StudyTrial(fields.read(TrialFile, self._folder / name)))
                for name, version in versions.items()
                if name not in self._known or self._known[name][0] != version
            }
            if fresh or len(versions) != len(self._known):
                kept = {name: item for name, item in self._known.items() if name in versions}
                self._known = {**kept, **fresh}
                trials = (trial for _, trial in self._known.values())
                self._ordered = tuple(sorted(trials, key=lambda trial: trial.number))
            return self._ordered

    def _versions(self) -> Iterator[tuple[str, _Version]]:
        """What is another one once a file has been replaced, by its name. A trial that has ended
        is what it was while its inode is the same, which needs no look at the file."""
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    known = self._known.get(entry.name)
                    if known and known[0][0] == entry.inode() and known[1].state.final:
                        yield entry.name, known[0]
                    elif known or _NAME.fullmatch(entry.name):
                        status = entry.stat()
                        yield entry.name, (status.st_ino, status.st_mtime_ns, status.st_size)
        except FileNotFoundError:
            return
