"""What is to be mirrored: a file in the folder of a run or a study, and a list of those to do."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.config import home, private_home
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import private_folder, replace_file
from distrain_nb.worker.files.folder import TRACKING_FILE
from distrain_nb.worker.files.status import Status
from distrain_nb.worker.files.tracked import URI_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.config import Config

TRACKING_FOLDER = "tracking"  # of DISTRAIN_HOME: a file for each run or study that isn't done
OFF = "off"


@dataclass(frozen=True)
class TrackingRequest:
    """A run, or a study, that MLflow is to have.

    `key` tells it from all others, also in MLflow; `created` is in seconds since the epoch.
    `parameters` and `tags` are as MLflow is to have them; `parent` is the folder of its study.
    With `ends_here` it is over when the process is gone that answers for it; else another may go
    on with it.
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

    @property
    def path(self) -> Path:
        return Path(self.folder)

    @property
    def status(self) -> Status:
        """How it is doing. Raises FileNotFoundError, `fields.Damaged`."""
        return (Status.current if self.ends_here else Status.read)(self.path)

    @property
    def goes_on(self) -> bool:
        """Whether somebody is at work on it, who may still have something to tell."""
        try:
            status = self.status
        except (OSError, fields.Damaged):
            return False
        return status.answered_for and not status.state.final

    def write(self) -> None:
        """Into its folder, and then on the list of what is to be done. Raises OSError,
        StoreError."""
        data = fields.encode(self)
        replace_file(self.path / TRACKING_FILE, data)
        replace_file(private_folder(private_home() / TRACKING_FOLDER) / f"{self.key}.json", data)

    def strike(self) -> None:
        """Off the list."""
        (home() / TRACKING_FOLDER / f"{self.key}.json").unlink(missing_ok=True)

    @classmethod
    def read(cls, folder: Path) -> TrackingRequest | None:
        """What is to be mirrored of a folder; None if nothing is. Raises `fields.Damaged`."""
        try:
            return fields.read(cls, folder / TRACKING_FILE)
        except FileNotFoundError:
            return None


def pending(known: Mapping[str, TrackingRequest] | None = None) -> dict[str, TrackingRequest]:
    """All that isn't done by its key, the oldest first; `known` are not read again."""
    found = {}
    for path in (home() / TRACKING_FOLDER).glob("*.json"):
        try:
            found[path.stem] = (known or {}).get(path.stem) or fields.read(TrackingRequest, path)
        except FileNotFoundError:  # just done
            continue
        except (OSError, fields.Damaged):
            path.unlink(missing_ok=True)  # nobody can do it
    return dict(sorted(found.items(), key=lambda item: item[1].created))


def key_of(folder: Path, created: float) -> str:
    """The same for the same run; numbers of folders may begin anew."""
    return hashlib.sha256(f"{os.uname().nodename}\0{folder}\0{created}".encode()).hexdigest()[:32]


def address(config: Config, environ: Mapping[str, str]) -> str:
    """Where runs are mirrored to: as it is kept, else as MLflow's own variable has it; empty for
    nowhere. What is relative is so to this process's folder."""
    uri = config.mlflow or environ.get(URI_VARIABLE, "")
    if uri == OFF:
        return ""
    scheme, separator, rest = uri.partition(":///")
    if separator and scheme.startswith("sqlite") and not rest.startswith("/"):
        return f"{scheme}:///{Path(rest).resolve()}"
    plain = uri and ":" not in uri and uri != "databricks"
    return Path(uri).expanduser().resolve().as_uri() if plain else uri
