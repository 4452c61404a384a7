"""The trials that a study's folder has: what has changed is read, everything else is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from distrain_nb.run.store import RUNS_FOLDER
from distrain_nb.study.files import TRIALS_FOLDER, TrialFile
from distrain_nb.study.run_curves import RunCurves
from distrain_nb.study.trial import StudyTrial
from distrain_nb.worker.files import fields

_NAME = re.compile(r"[1-9][0-9]*\.json")
_Version = tuple[int, int, int]


class TrialReader:
    """Reads them again and again; threads may share one. A file is replaced, never written over."""

    def __init__(self, folder: Path) -> None:
        """*folder* is the study's."""
        self._folder = folder / TRIALS_FOLDER
        self._runs = folder.parents[1] / RUNS_FOLDER
        self._known: dict[str, tuple[_Version, StudyTrial]] = {}
        self._ordered: tuple[StudyTrial, ...] = ()
        self._reading = Lock()

    def read(self) -> tuple[StudyTrial, ...]:
        """Return all trials, by number; the same tuple where nothing has changed. Raises
        `fields.Damaged`, OSError."""
        with self._reading:
            versions = dict(self._versions())
            fresh = {
                name: (version, self._trial(name))
                for name, version in versions.items()
                if name not in self._known or self._known[name][0] != version
            }
            if fresh or len(versions) != len(self._known):
                unchanged = {name: item for name, item in self._known.items() if name in versions}
                self._known = {**unchanged, **fresh}
                trials = (trial for _, trial in self._known.values())
                self._ordered = tuple(sorted(trials, key=lambda trial: trial.number))
            return self._ordered

    def _trial(self, name: str) -> StudyTrial:
        file = fields.read(TrialFile, self._folder / name)
        if file.run is None:
            return StudyTrial(file)
        folder = self._runs / str(file.run)
        curves = self._known[name][1].run_curves if name in self._known else None
        return StudyTrial(file, curves if curves and curves.folder == folder else RunCurves(folder))

    def _versions(self) -> Iterator[tuple[str, _Version]]:
        """Yield by name a key that differs once a file has been replaced. A trial that has ended
        is what it was while its inode is the same, which needs no look at the file."""
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    cached = self._known.get(entry.name)
                    if cached and cached[0][0] == entry.inode() and cached[1].state.final:
                        yield entry.name, cached[0]
                    elif cached or _NAME.fullmatch(entry.name):
                        status = entry.stat()
                        yield entry.name, (status.st_ino, status.st_mtime_ns, status.st_size)
        except FileNotFoundError:
            return
