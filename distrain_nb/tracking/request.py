"""Requests to mirror: a file in the folder of a run or a study, and a list of those to do."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.config import home, private_home
from distrain_nb.tracking.kinds import MLFLOW, kind_of
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.private_folder import private_folder
from distrain_nb.worker.files.status import Status
from distrain_nb.worker.files.tracked import Tracked

if TYPE_CHECKING:
    from distrain_nb.tracking.kinds import Kind


@dataclass(frozen=True)
class TrackingRequest:
    """A run, or a study, that a tracker is to have.

    `key` tells it from all others, also there; `created` is in seconds since the epoch.
    `parameters` and `tags` are as the tracker is to have them; `parent` is the folder of its study.
    With `ends_here` it is over when the process is gone that answers for it; else another may go
    on with it. With `joins` it goes on with the tracker's run of its name, if there is one.
    """

    uri: str
    experiment: str
    name: str
    key: str
    created: float
    folder: str
    parameters: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    parent: str = ""
    ends_here: bool = True
    joins: bool = False

    @property
    def kind(self) -> Kind:
        return kind_of(self.uri)

    @property
    def tracked(self) -> Tracked | None:
        """How far the tracker has it; None before it has been looked at. Raises
        `fields.Damaged`."""
        return Tracked.read(self.path, self.kind.tracked_file)

    @property
    def path(self) -> Path:
        return Path(self.folder)

    @property
    def status(self) -> Status:
        """How it is doing. Raises FileNotFoundError, `fields.Damaged`."""
        return (Status.current if self.ends_here else Status.read)(self.path)

    @property
    def has_ended(self) -> bool:
        """Whether it has come to its end; one that nobody has written of yet has not."""
        try:
            return self.status.state.final
        except FileNotFoundError:
            return False

    @property
    def goes_on(self) -> bool:
        """Whether somebody is at work on it, who may still have something to tell."""
        try:
            status = self.status
        except (OSError, fields.Damaged):
            return False
        return status.answered_for and not status.state.final

    def write(self) -> None:
        """Write the request into its folder, and then on the list of what is to be done. Raises
        OSError, StoreError."""
        data = fields.encode(self)
        replace_file(self.path / self.kind.request_file, data)
        replace_file(private_folder(private_home() / self.kind.folder) / f"{self.key}.json", data)

    def strike(self) -> None:
        """Remove the request from the list."""
        (home() / self.kind.folder / f"{self.key}.json").unlink(missing_ok=True)

    @classmethod
    def read(cls, folder: Path) -> TrackingRequest | None:
        """Read what MLflow is to have of a folder; None if nothing. Raises `fields.Damaged`."""
        try:
            return fields.read(cls, folder / MLFLOW.request_file)
        except FileNotFoundError:
            return None


def pending(
    kind: Kind = MLFLOW, cached: Mapping[str, TrackingRequest] | None = None
) -> dict[str, TrackingRequest]:
    """Return all that isn't done by its key, the oldest first; `cached` are not read again."""
    requests = {}
    for path in (home() / kind.folder).glob("*.json"):
        try:
            requests[path.stem] = (cached or {}).get(path.stem) or fields.read(
                TrackingRequest, path
            )
        except FileNotFoundError:  # just done
            continue
        except (OSError, fields.Damaged):
            path.unlink(missing_ok=True)  # nobody can do it
    return dict(sorted(requests.items(), key=lambda pair: pair[1].created))


def key_of(folder: Path, created: float) -> str:
    """Return a key that is equal for the same run only; numbers of folders may begin anew."""
    return hashlib.sha256(f"{os.uname().nodename}\0{folder}\0{created}".encode()).hexdigest()[:32]
