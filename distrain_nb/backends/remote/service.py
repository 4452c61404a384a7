"""What a cloud is asked by the process that carries a run there and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from distrain_nb.errors import DistrainError

if TYPE_CHECKING:
    from distrain_nb.backends.remote.submission import Spec
    from distrain_nb.backends.tuning import ServiceStudy, ServiceTrial
    from distrain_nb.image import Listener
    from distrain_nb.types import JsonObject
    from distrain_nb.worker.files.status import Process, State

# How far a service's log has been read: JSON values that only the service understands.
Cursor: TypeAlias = "Mapping[str, object]"


class Denied(DistrainError):
    """A permission is missing: asking again is of no use, doing without may be."""


class Unanswered(DistrainError):
    """A request got no answer: whether it has arrived nobody but the service knows."""


class Gone(DistrainError):
    """The service has no such job, or is deleting it."""


class LogEntry(NamedTuple):
    """A line that a replica has written. `time` is in seconds since the epoch; `role` is a pool's
    (`primary`, `workers`, `servers`, `reducers`, `evaluators`), `stream` is `o` or `e`; `points`
    are metrics that the service was told to read from it: name, step and value; `process` is the
    label of the process where the service knows it, and else our worker may name it in the text.
    Of a large job a hundred thousand come in a second, and a tuple is made in a quarter of the
    time."""

    time: float
    role: str
    replica: int
    text: str
    stream: str = "o"
    points: tuple[tuple[str, int, float], ...] = ()
    process: str = ""


@dataclass(frozen=True)
class Observed:
    """How a job is doing: its state, the phase in a few words, and the service's `error` if it
    failed.

    `reason` says why it is where it is, such as what it waits for. `expected` is when the service
    expects it to start, in seconds since the epoch, 0 where it doesn't say. `attempt` counts from
    1: a service may start a job anew that has lost its machines. `cause` is `preemption` or `lost`
    where that has ended it (`worker/supervisor/retries.py`). `processes` are those of the job,
    where the service has decided on them since it was submitted. `billed` are the seconds that it
    bills, where it says so.
    """

    state: State
    phase: str = ""
    error: str = ""
    reason: str = ""
    expected: float = 0.0
    attempt: int = 1
    cause: str = ""
    processes: tuple[Process, ...] = ()
    billed: float | None = None


@dataclass(frozen=True)
class Pace:
    """How a service is asked, in seconds.

    `look` is from one look at it to the next. `quiet` is how long an ended job has to have given no
    new lines for its log to count as read; 0 says that the log is whole once the state is final.
    `longest` is how long lines are waited for at most. `arrival` is how late a request may arrive
    that got no answer, and `fetch` for how long what a job left behind is asked for when the
    service doesn't give it.
    """

    look: float = 2.0
    quiet: float = 6.0
    longest: float = 60.0
    arrival: float = 20.0
    fetch: float = 120.0

    def of(self, endpoints: Mapping[str, str]) -> Pace:
        """Return the pace for these endpoints: a rehearsal's are quicker than the service."""
        if not endpoints:
            return self
        late = float(endpoints.get("late", 0))
        return Pace(look=0.3, quiet=1.0 + late, longest=60.0 + late, arrival=1.0, fetch=20.0)


@dataclass(frozen=True)
class Stored:
    """An object in the job's output folder: its name below that folder, its size in bytes, and
    when it was last written, in any form."""

    name: str
    size: int
    changed: str = ""


class OutputFolder(Protocol):
    """The job's output folder in an object store."""

    def objects(self, below: str) -> Sequence[Stored]:
        """Return the objects whose names start with `below`, such as `tensorboard/`."""

    def read(self, name: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` (exclusive) of an object."""


def renamed(name: str, start: str, other: str) -> str:
    """Return an object's name with another start."""
    return other + name.removeprefix(start) if name.startswith(start) else name


class Service(Protocol):
    """A job on a service. Every method may be called again by another process after a death."""

    @property
    def output(self) -> OutputFolder: ...

    def stage(self, program: Path, tell: Listener) -> JsonObject:
        """Bring the code where the job finds it: an image in a registry, or an archive in a bucket.

        `program` is the folder that `Program.write` has laid down. Gives the request as it is to
        be sent, with what only staging could tell (the image's digest).
        """

    def create(self, request: JsonObject) -> str:
        """Send the request and give the job's name.

        Raises Unanswered if it may have arrived all the same; any other DistrainError says that
        the service hasn't taken it.
        """

    def find(self, request: JsonObject) -> str:
        """Return the name of the job that the request has made; empty if there is none."""

    def observe(self, job: str) -> Observed:
        """Return how the job is doing. Raises Gone if the service doesn't have it."""

    def log(self, job: str, cursor: Cursor, *, last: bool) -> tuple[Sequence[LogEntry], Cursor]:
        """Return the lines since the cursor (empty at first), in order within each replica, each
        once.

        Lines that may still be overtaken by earlier ones are held back (in the cursor, as JSON)
        until they are settled; `last` gives them all, since the job has long ended.
        """

    def cancel(self, job: str) -> None:
        """Ask for the job to be stopped."""

    def links(self, job: str) -> Mapping[str, str]:
        """Return where a person finds the job and its folders, by what they are called."""


class TuningService(Service, Protocol):
    """A study on a service: the job is the one that tunes."""

    def study(self, job: str) -> ServiceStudy:
        """Return the spec of the study that the service runs. Raises OptionError for what no
        `StudySpec` says."""

    def trials(self, job: str) -> Sequence[ServiceTrial]:
        """Return all trials so far."""

    def trial_spec(self, job: str, trial: ServiceTrial) -> Spec:
        """Return the spec by which a trial's run is carried, once that has a job, with the folder
        of its output."""
