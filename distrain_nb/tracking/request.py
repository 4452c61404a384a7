"""Requests to mirror: a file in the folder of a run or a study, and a list of those to do."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from distrain_nb.backends.remote.processes import start_detached
from distrain_nb.config import Config, home, private_home
from distrain_nb.errors import DistrainError
from distrain_nb.secrets.guard import HIDDEN
from distrain_nb.tracking.kinds import MLFLOW, kind_of, kinds
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.private_folder import private_folder
from distrain_nb.worker.files.status import Owner, Status
from distrain_nb.worker.files.tracked import URI_VARIABLE, Tracked
from distrain_nb.worker.machine.environment import variables

if TYPE_CHECKING:
    from distrain_nb.tracking.kinds import Kind

OFF = "off"


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


def address(config: Config, environ: Mapping[str, str]) -> str:
    """Return where runs are mirrored to: as it is kept, else as MLflow's own variable has it; empty
    for nowhere. What is relative is so to this process's folder."""
    uri = config.mlflow or environ.get(URI_VARIABLE, "")
    if uri == OFF:
        return ""
    scheme, separator, rest = uri.partition(":///")
    if separator and scheme.startswith("sqlite") and not rest.startswith("/"):
        return f"{scheme}:///{Path(rest).resolve()}"
    plain = uri and ":" not in uri and uri != "databricks"
    return Path(uri).expanduser().resolve().as_uri() if plain else uri


def without_password(text: str, uri: str) -> str:
    """Return a text about a tracker, without the password that its address may have: a database's
    does."""
    try:
        password = urlsplit(uri).password
    except ValueError:
        return text
    for form in filter(None, (password, unquote(password or ""))):
        text = text.replace(f":{form}@", f":{HIDDEN}@")
    return text


PROCESS = "distrain_nb.tracking"
PROCESS_LOG = "tracking.log"  # text: what the process prints
OWNER_FILE = "owner"  # `status.Owner` of the process
ANSWER_WITHIN_S = 15.0
LOOK_EVERY_S = 0.02
START_AGAIN_AFTER_S = 10.0

# By this process, which is to reap them: for each list the last one, and when it was started.
_started: dict[Path, tuple[subprocess.Popen[bytes], float]] = {}


def begin(request: TrackingRequest, *, waits: bool) -> str:
    """Have a run mirrored from now on, which `request` names, if a tracker is set.

    With `waits` it returns when the tracker has a run for it, or is known to be out of reach, so
    that rank 0 can go on with that run. Gives what to tell whoever started it; empty if nothing.
    A tracker costs no run: whatever is wrong with it is told so.
    """
    bare, _ = _bare(request.uri)
    if not bare:
        return ""
    kind = kind_of(bare)
    lacking = missing_package(kind, bare)
    if lacking:
        return lacking
    stored = replace(request, uri=bare, key=key_of(request.path, request.created))
    try:
        stored.write()
        _see_to_it(kind)
        return _answer(stored) if waits else ""
    except (OSError, DistrainError, fields.Damaged) as error:
        return f"{_nothing(kind, bare)}: {error}"


def missing_package(kind: Kind, uri: str) -> str:
    """Say what to install for a tracker at an address; empty if it is installed."""
    lacking = f"{_nothing(kind, uri)}: pip install 'distrain-nb[{kind.extra}]'"
    return "" if kind.installed else lacking


def _nothing(kind: Kind, uri: str) -> str:
    return without_password(f"not mirrored to {kind.title} at {uri}", uri)


def catch_up() -> None:
    """Start a process again that was killed before all was done. Never raises."""
    for kind in kinds().values():
        with suppress(OSError, DistrainError):
            folder = home() / kind.folder
            if folder.is_dir() and any(folder.glob("*.json")):
                _see_to_it(kind)


def owner(kind: Kind = MLFLOW) -> Owner | None:
    """Return the process that mirrors runs to a kind of tracker now; None if there is none."""
    try:
        process = fields.read(Owner, home() / kind.folder / OWNER_FILE)
    except (OSError, fields.Damaged):
        return None
    return process if process.alive else None


def _see_to_it(kind: Kind) -> None:
    folder = home() / kind.folder
    last, since = _started.get(folder, (None, 0.0))
    alive = last is not None and last.poll() is None
    if owner(kind) is not None or (alive and time.monotonic() < since + START_AGAIN_AFTER_S):
        return
    _, login = _bare(address(Config.load(), os.environ))
    env = {**variables(), **login, "DISTRAIN_HOME": str(home())}
    arguments = ["-m", PROCESS, kind.folder]
    process = start_detached(arguments, folder / PROCESS_LOG, cwd="/", env=env)
    _started[folder] = process, time.monotonic()


def _answer(request: TrackingRequest) -> str:
    """Wait for the tracker's run; what keeps it from being there, empty if it is."""
    end = time.monotonic() + ANSWER_WITHIN_S
    while time.monotonic() < end:
        tracked = request.tracked
        if tracked is not None and (tracked.run or tracked.note):
            return "" if tracked.run else tracked.note
        _see_to_it(request.kind)
        time.sleep(LOOK_EVERY_S)
    late = f"has not answered within {ANSWER_WITHIN_S:g} s"
    return f"{request.kind.title} {late}: the run is mirrored once it does"


def _bare(uri: str) -> tuple[str, dict[str, str]]:
    """Return a URI without user and password, and the variables by which MLflow takes these."""
    try:
        parts = urlsplit(uri)
        user, password = parts.username, parts.password
    except ValueError:
        return uri, {}
    if parts.scheme not in ("http", "https") or user is None:
        return uri, {}
    login = {
        "MLFLOW_TRACKING_USERNAME": unquote(user),
        "MLFLOW_TRACKING_PASSWORD": unquote(password or ""),
    }
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), login
