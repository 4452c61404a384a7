"""Runs that are started again from what earlier ones have saved, in folders that are shared with
this machine."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import cast

from distrain_nb.backends.remote.backend import RemoteBackend
from distrain_nb.backends.remote.options import RemoteOptionsT
from distrain_nb.backends.remote.plan import RemotePlanT
from distrain_nb.backends.remote.submission import Submission, fill_placeholders
from distrain_nb.errors import DistrainError
from distrain_nb.types import JsonObject
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import CHECKPOINTS_FOLDER, PROGRAM_FOLDER
from distrain_nb.worker.files.tracked import TRACKED_VARIABLE
from distrain_nb.worker.replica import shared


class ResumingBackend(RemoteBackend[RemoteOptionsT, RemotePlanT]):
    """A backend whose service is a `SharedFolderService`."""

    def has_saved(self, folder: Path) -> bool:
        """Return whether the run in that folder has left something in its checkpoint folder that
        this machine can read."""
        try:
            saved = _checkpoints(Submission.read(folder).spec)
            return saved is not None and any(saved.iterdir())
        except (OSError, fields.Damaged):
            return False

    def resume(self, before: Path, folder: Path) -> None:
        """Copy the program and the checkpoints, and submit the same job by a name of its own.
        Raises DistrainError where values of `--env` are not in this environment."""
        submission = Submission.read(before)
        earlier = submission.spec
        nonce = str(earlier["run"]).rpartition("-")[2]
        variables = _variables(cast("list[str]", earlier.get("hidden", [])))
        spec = fill_placeholders(earlier, {nonce: secrets.token_hex(4)})
        cast("dict[str, str]", spec["environment"]).pop(TRACKED_VARIABLE, None)
        source, target = _checkpoints(earlier), _checkpoints(spec)
        if source is None or target is None:
            raise DistrainError("its checkpoints are not in a folder that this machine shares")
        shutil.copytree(before / PROGRAM_FOLDER, folder / PROGRAM_FOLDER, symlinks=True)
        Path(str(spec["folder"])).mkdir(parents=True, mode=0o700)
        shutil.copytree(source, target, symlinks=True)
        spec["variables"] = {**variables}
        replace(submission, spec=spec, kernel=None).write(folder)
        self._begin(folder, rehearsed=False)
        self._start_carrying(folder)


def _checkpoints(spec: JsonObject) -> Path | None:
    folder = spec.get("folder")
    return Path(str(folder), shared.OUTPUT, CHECKPOINTS_FOLDER) if folder else None


def _variables(names: Iterable[str]) -> dict[str, str]:
    """Return the values that `--env` had given: they were forgotten at the run's end."""
    lost = [name for name in names if name not in os.environ]
    if lost:
        raise DistrainError(
            f"the values of --env are gone ({', '.join(lost)}): set them in this notebook's "
            f"environment, such as by `%env {lost[0]}=VALUE`, or submit again"
        )
    return {name: os.environ[name] for name in names}
