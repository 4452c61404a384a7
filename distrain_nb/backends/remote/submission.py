"""What the process that carries a run reads first, in the run's folder."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from distrain_nb.backends.remote import variables
from distrain_nb.backends.remote.delivery import Delivery
from distrain_nb.backends.uploads import Upload
from distrain_nb.layout import Layout
from distrain_nb.layout.hardware import AMD64
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import JOURNAL_FILE, SUBMISSION_FILE
from distrain_nb.worker.files.status import Owner, Process, State, Status
from distrain_nb.worker.supervisor.retries import RunAttempt

if TYPE_CHECKING:
    from typing_extensions import Self


_SPEC = "told"  # its key in the file

JsonT = TypeVar("JsonT", bound="Json")


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a service needs to carry a run, all of it known when the run is submitted.

    `deliveries` are the ways in which the pools get the code; `base` is the image that it is put
    on, for machines of a `platform` with a kind of `device`; `request` is what is sent, with
    stand-ins for what staging finds out and for the values of `variables`, which have a file of
    their own. `requirements` are what the program imports, `required` what was asked for; `uploads`
    are data of this machine. A backend adds what its service needs besides.

    `job` is the name of a job that was there before its run, which is only followed; all else that
    is known then is where it is, and of a study's trial `run`, by which its output is found.
    `study` says that the request is for a study. The job is sent again up to `retries` times after
    ends of the causes in `retried`.
    """

    region: str = ""
    job: str = ""
    study: bool = False
    run: str = ""
    bucket: str = ""
    repository: str = ""
    builder: str = ""
    base: str = ""
    platform: str = AMD64
    device: str = ""
    requirements: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    request: dict[str, Json] = field(default_factory=dict)
    deliveries: tuple[Delivery, ...] = ()
    uploads: tuple[Upload, ...] = ()
    variables: dict[str, str] = field(default_factory=dict, repr=False)
    retries: int = 0
    retried: tuple[str, ...] = ()

    @classmethod
    def of(cls, raw: JsonObject) -> Self:
        """Read a spec from a submission's JSON. Raises `fields.Damaged`."""
        return fields.decode(cls, dict(raw), Path(SUBMISSION_FILE))


def retry_causes(layout: Layout) -> tuple[str, ...]:
    """Return what a run is started again after; empty for what that usually is."""
    return tuple(filter(None, (layout.retry_on or "").split(",")))


def fill_placeholders(request: JsonT, values: Mapping[str, str]) -> JsonT:
    """Return the request with each stand-in's value in every text that has it."""

    def within(part: Json) -> Json:
        if isinstance(part, str):
            for name, value in values.items():
                part = part.replace(name, value)
            return part
        if isinstance(part, dict):
            return {key: within(value) for key, value in part.items()}
        return [within(item) for item in part] if isinstance(part, list) else part

    return cast("JsonT", within(request))


@dataclass(frozen=True)
class Submission:
    """`spec` is the backend's `Spec` as JSON, with the values of its `variables`; `kernel` is the
    process that waits for the run, if one does; `rehearse` is the text after `--rehearse`, None for
    the service itself.
    """

    backend: str
    spec: dict[str, Json]
    processes: tuple[Process, ...]
    kernel: Owner | None = None
    rehearse: str | None = None

    def write(self, folder: Path) -> None:
        """No secret is in it: credentials come from the environment's own chain, and the values
        of variables have a file of their own until the job is submitted."""
        raw = asdict(self)
        raw[_SPEC] = raw.pop("spec")
        variables.store_variables(raw[_SPEC].pop("variables", {}), folder)
        replace_file(folder / SUBMISSION_FILE, json.dumps(raw, indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> Submission:
        """Raise FileNotFoundError; `fields.Damaged`."""
        path = folder / SUBMISSION_FILE
        raw = fields.load(path)
        submission = fields.decode(cls, {**raw, "spec": raw.get(_SPEC)}, path)
        return replace(
            submission, spec={**submission.spec, "variables": variables.stored_variables(folder)}
        )


@dataclass
class Journal:
    """How far a run has been carried, so that another process can go on from there.

    `request` is there once the code has been staged; `sent` is when it was last sent (seconds
    since the epoch), 0 as long as the service can't have it; `job` is there once the service has
    answered. `cursor` is how far the service's log has been read, which makes `log_size` bytes of
    ours and `points_size` of metrics; `labels` names the log's processes by their index; `denied`
    is what the log says of missing permissions. `missing` is what could not be fetched when the
    job had ended, and why. `attempt` is the one that the request is for, and `attempt_at` how many
    bytes of our log are of earlier ones.
    """

    request: dict[str, Json] | None = None
    sent: float = 0.0
    job: str = ""
    cursor: dict[str, object] = field(default_factory=dict)
    log_size: int = 0
    points_size: int = 0
    labels: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    attempt: RunAttempt = field(default_factory=RunAttempt)
    attempt_at: int = 0

    @classmethod
    def read(cls, folder: Path) -> Journal:
        """Return what an earlier process has written; empty where there was none. Raises
        `fields.Damaged`."""
        try:
            return fields.read(cls, folder / JOURNAL_FILE)
        except FileNotFoundError:
            return cls()

    def write(self, folder: Path) -> None:
        replace_file(folder / JOURNAL_FILE, fields.encode(self))


def follow(submission: Submission, folder: Path) -> None:
    """Have a run's folder as if its job, which was there before it, had been sent from here. The
    submission comes last: without it nobody carries the run."""
    job = str(submission.spec["job"])
    Journal(request={}, sent=time.time(), job=job).write(folder)
    Status(State.STARTING).enter(State.STARTING, "asking how the job is doing").write(folder)
    submission.write(folder)
