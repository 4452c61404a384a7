"""The files in a run's folder from which its carrier starts: the submission and the journal."""

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
from distrain_nb.worker.supervisor.retries import RETRIED, RunAttempt

if TYPE_CHECKING:
    from typing_extensions import Self


_SPEC = "told"  # its key in the file

JsonT = TypeVar("JsonT", bound="Json")


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a service needs to carry a run. All of it is known when the run is submitted.

    `deliveries` are the ways in which the pools get the code. `base` is the image below the code,
    for machines of a `platform` with a kind of `device`. `request` is sent to the service. It has
    placeholders for what staging finds out, and for the values of `variables`, which have a file of
    their own. `requirements` are the packages that the program imports, `required` those that the
    user asked for. `uploads` are data of this machine. A backend adds the fields that its service
    needs.

    `job` is the name of a job that is older than its run and is only followed. Of such a job, only
    its location is known, and for a study's trial `run`, by which its output is found. `study` says
    that the request is for a study. The job is sent again up to `retries` times if it ends by one
    of the causes in `retried`.
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
    """Return the causes after which a run is started again; empty for the usual ones."""
    return tuple(filter(None, (layout.retry_on or "").split(",")))


def fill_placeholders(request: JsonT, values: Mapping[str, str]) -> JsonT:
    """Return the request with values in the place of all placeholders."""

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
    """The submission of a run.

    `spec` is the backend's `Spec` as JSON, with the values of its `variables`. `kernel` is the
    process that waits for the run, if there is one. `rehearse` is the text after `--rehearse`, or
    None for the service itself.
    """

    backend: str
    spec: dict[str, Json]
    processes: tuple[Process, ...]
    kernel: Owner | None = None
    rehearse: str | None = None

    @property
    def retries(self) -> int:
        """How often the job is sent again at most: 0 for a job that is only followed."""
        return int(str(self.spec.get("retries") or 0))

    @property
    def retried(self) -> tuple[str, ...]:
        """The causes after which it is sent again."""
        causes = self.spec.get("retried")
        return (tuple(map(str, causes)) if isinstance(causes, list) else ()) or RETRIED

    def write(self, folder: Path) -> None:
        """Write the submission, without any secret.

        Credentials come from the environment's own chain. The values of variables have a file of
        their own until the job is submitted.
        """
        raw = asdict(self)
        raw[_SPEC] = raw.pop("spec")
        variables.store_variables(raw[_SPEC].pop("variables", {}), folder)
        replace_file(folder / SUBMISSION_FILE, json.dumps(raw, indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> Submission:
        """Read the submission. Raises FileNotFoundError; `fields.Damaged`."""
        path = folder / SUBMISSION_FILE
        raw = fields.load(path)
        submission = fields.decode(cls, {**raw, "spec": raw.get(_SPEC)}, path)
        return replace(
            submission, spec={**submission.spec, "variables": variables.stored_variables(folder)}
        )


@dataclass
class Journal:
    """How far a run has been carried, so that another process can continue.

    `request` is set once the code has been staged. `sent` is the time of the last request (seconds
    since the epoch), or 0 if the service can't have it. `job` is set once the service has answered.
    `cursor` is the position in the service's log. Up to there, our log has `log_size` bytes and the
    metrics `points_size`. `labels` names the log's processes by their index. `denied` has what the
    log says about missing permissions. `missing` is what could not be fetched after the job had
    ended, with reasons. `attempt` is the one that the request is for. `attempt_at` is the size of
    our log when it began.
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
        """Return what an earlier process has written; an empty journal if there is none.

        Raises `fields.Damaged`.
        """
        try:
            return fields.read(cls, folder / JOURNAL_FILE)
        except FileNotFoundError:
            return cls()

    def write(self, folder: Path) -> None:
        replace_file(folder / JOURNAL_FILE, fields.encode(self))


def follow(submission: Submission, folder: Path) -> None:
    """Write a run's folder for a job that is older than the run, as if it had been sent from here.

    The submission is written last: without it, nobody carries the run.
    """
    job = str(submission.spec["job"])
    Journal(request={}, sent=time.time(), job=job).write(folder)
    Status(State.STARTING).enter(State.STARTING, "asking how the job is doing").write(folder)
    submission.write(folder)
