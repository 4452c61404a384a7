"""What a backend brings and is asked for, and the values that pass between it and the rest."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from distrain_nb.backends.cost import NoPrice, Price
from distrain_nb.config import Config
from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.request import TAKEN, Request, ask
from distrain_nb.worker.files.session import REQUESTS
from distrain_nb.worker.files.status import Status

if TYPE_CHECKING:
    from distrain_nb.backends.settings import Settled
    from distrain_nb.backends.uploads import Upload
    from distrain_nb.findings import Finding
    from distrain_nb.layout import Layout
    from distrain_nb.layout.choices import Choice
    from distrain_nb.program import Program
    from distrain_nb.program.advice import RemoteFolder
    from distrain_nb.types import JsonObject, Unknown


class Health(str, Enum):
    """MISSING is what only some jobs need; BROKEN is in the way of every one."""

    GOOD = "good"
    MISSING = "missing"
    BROKEN = "wrong"


@dataclass(frozen=True)
class Check:
    """`result` says what there is; `remedy` what to do where that is not enough."""

    subject: str
    state: Health
    result: str
    remedy: str = ""


def packages(subject: str, names: Sequence[str], extra: str) -> Check:
    """Return whether the packages of those names are installed; `extra` brings them."""
    versions = {name: installed(name) for name in names}
    lacking = [name for name, number in versions.items() if number is None]
    if lacking:
        remedy = f"pip install 'distrain-nb[{extra}]'"
        return Check(subject, Health.MISSING, f"{', '.join(lacking)}: not installed", remedy)
    return Check(subject, Health.GOOD, ", ".join(f"{n} {number}" for n, number in versions.items()))


def login(account: str, remedy: str) -> Check:
    """Return whether there are credentials; `account` names them, empty where there are none."""
    if account:
        return Check("login", Health.GOOD, account)
    return Check("login", Health.MISSING, "none on this machine's disk or in its variables", remedy)


def allowed(subject: str, lacking: Sequence[str], remedy: str) -> Check:
    """Return whether the service allows all that is needed of something; `lacking` is what it does
    not."""
    if lacking:
        return Check(subject, Health.MISSING, f"not allowed: {', '.join(lacking)}", remedy)
    return Check(subject, Health.GOOD, "all that jobs need is allowed")


def installed(name: str) -> str | None:
    """Return the version of a distribution, None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


Handle: TypeAlias = "JsonObject"
OptionsT = TypeVar("OptionsT")
OptionsT_co = TypeVar("OptionsT_co", covariant=True)


@dataclass(frozen=True)
class Job(Generic[OptionsT_co]):
    """A program, the machines it is to run on, and how.

    `folder` is the working folder on this machine; `options` are those that the backend declares;
    `results` are names of rank 0 to bring back; `waits` says that somebody waits for it, so that
    it must not outlive them. `data` are the texts of `--data`, NAME=URI, `uploads` what
    of it is on this machine and is to go elsewhere; `allowed_secrets` are what the guard lets pass;
    `environ` are the variables of the process that asks for the job,
    `defaults` the settings that the backend found on this machine, `machine` what else a plan
    depends on there; `nonce` makes its run's name its own. The job of a `trial` of a study has
    its number, as text. A job of this machine ends after the seconds of `cost_limit`, with its
    words. With `as_rank` and `steps`, texts of these options, ranks of it run alone on
    this machine.
    """

    program: Program
    layout: Layout
    folder: Path
    options: OptionsT_co
    name: str = ""
    results: tuple[str, ...] = ()
    waits: bool = False
    config: Config = field(default_factory=Config)
    experiment: str = ""
    data: tuple[str, ...] = ()
    uploads: tuple[Upload, ...] = ()
    allowed_secrets: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    defaults: Settled = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    nonce: str = field(default_factory=lambda: secrets.token_hex(4))
    trial: str | None = None
    cost_limit: tuple[float | None, str] = (None, "")
    as_rank: str = ""
    steps: str = ""


def named(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of texts such as `--data` has them, NAME=VALUE."""
    for text in texts:
        name, _, value = text.partition("=")
        yield name, value


class Plan(Protocol):
    """What would be sent, whole: `str` of it is what `--dry-run` shows."""

    @property
    def findings(self) -> Sequence[Finding]: ...

    @property
    def ranks_per_replica(self) -> int:
        """How many processes each training replica runs."""

    @property
    def gpus(self) -> int:
        """How many GPUs a training replica has."""

    def __str__(self) -> str: ...


@runtime_checkable
class BuildsImage(Protocol):
    """What a plan has besides whose job runs an image that is built for it."""

    def target(self) -> str:
        """Return the image's reference, with stand-ins for what isn't known before."""


@runtime_checkable
class InstallsPackages(Protocol):
    """What a plan has besides whose job installs packages."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Return what is installed for the program, a requirement each, and what an image has of
        it."""


PlanT = TypeVar("PlanT", bound=Plan)


class Backend(ABC, Generic[OptionsT, PlanT]):
    """A place where jobs run, with all that the rest needs to know of it.

    `name` is what `--on` takes, `title` what people call it; `here` says that it is this machine,
    so that jobs end with it; `asks`, that ranks can ask whoever sits at the notebook. `options` is
    a frozen dataclass of what jobs there have besides the common options (`backends.options`).
    `has_image` says whether ranks have the packages of an image, rather than those of the notebook.
    `example` are options of a small job: `--help` shows it, and `%distrain doctor` names the
    settings that it lacks.
    `mounted` are folders, each with a slash at its end, that its machines have of their own.
    `reads` are the fields of a layout that `plan` reads, such as `workers`, `workers.machine` and
    `launcher`: the form offers them, and any other that a layout has is an error or a warning.
    `implies_primary` says that a job whose layout names no primary has one all the same. Of places
    that the fact tables know, `layout.place` has both. `paid_phases` are beginnings of phases in
    which a run has its machines besides those in which it runs.

    A handle is what finds a run again, as JSON values, known before anything is sent; what is
    learned later belongs into the run's folder.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    options: type[OptionsT]
    here: ClassVar[bool] = False
    asks: ClassVar[bool] = False
    waits_by_default: ClassVar[bool] = False
    has_image: ClassVar[bool] = False
    example: ClassVar[Mapping[str, str]] = {}
    mounted: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ("ranks_per_replica",)
    implies_primary: ClassVar[bool] = False
    paid_phases: ClassVar[tuple[str, ...]] = ()

    def defaults(self, environ: Mapping[str, str]) -> Settled:  # noqa: ARG002
        """Return the settings that the cloud's own tools and the place have on this machine, by
        name, such as `region`, with where they were found: they hold for a job for which nothing
        else was chosen. Reads files, and asks the place's own services, within seconds. Raises
        OptionError for a file that can't be read."""
        return {}

    def machine(self, job: Job[OptionsT]) -> Mapping[str, str]:  # noqa: ARG002
        """Return by name what else a plan of this job depends on: facts of this machine, and
        answers of services within seconds. Raises OptionError."""
        return {}

    def settings(self, job: Job[OptionsT]) -> Settled:  # noqa: ARG002
        """Return the settings that hold for a job, by name, each with its origin. Pure, as `plan`
        is."""
        return {}

    def offers(self, layout: Layout, path: str) -> Iterable[Choice]:  # noqa: ARG002
        """Return values of a field of a layout, such as `region` or `workers.machine`, beyond those
        of the fact tables. Completion and the form offer them."""
        return ()

    def about(self, layout: Layout, texts: Mapping[str, str]) -> Iterable[Finding]:  # noqa: ARG002
        """Yield what the place says of a layout with the texts of its own fields, such as limits of
        a cluster: the form shows it while it is filled in. Repairs are of a cell's text. The
        findings of `plan` have it too."""
        return ()

    def price(self, layout: Layout) -> Price:  # noqa: ARG002
        """Return what a layout's machines cost an hour in its region, by the service's own list,
        asked with the user's login (`prices.cached_answer` keeps it for a day). Takes seconds.
        Raises NoPrice."""
        raise NoPrice(f"{self.title} has no list of prices: write them into prices.yaml")

    @abstractmethod
    def plan(self, job: Job[OptionsT]) -> PlanT:
        """Return the exact request: of the same job always the same. Pure: what was found on this
        machine comes with the job. Raises OptionError."""

    @abstractmethod
    def submit(self, plan: PlanT, folder: Path) -> None:
        """Send it; log, metrics, status and results of the run are to appear in `folder`.

        Where this raises an Exception, nothing has been sent.
        """

    @abstractmethod
    def status(self, handle: Handle, folder: Path) -> Status:
        """Return how the run is doing."""

    @abstractmethod
    def cancel(self, handle: Handle, folder: Path) -> None:
        """Ask for it to be stopped."""

    def data(self, name: str, uri: str) -> str:  # noqa: ARG002
        """Return the path or URI that a program gets for `--data NAME=URI`. Raises OptionError."""
        return uri

    def bucket(self, uri: str) -> str:
        """Return the path or URI by which a program there reads and writes what a bucket has.
        Raises OptionError for a bucket that it doesn't reach."""
        return uri

    def staging(self, job: Job[OptionsT]) -> str:  # noqa: ARG002
        """Return the URI below which data of this machine are uploaded for a job; empty where its
        ranks read them by their path. The job has no program yet."""
        return ""

    def parts(self, text: str) -> tuple[str, str]:
        """Return the URI or path in a text of `--data`, and what is written behind it."""
        return text, ""

    def remote_folders(self, job: Job[OptionsT]) -> Sequence[RemoteFolder]:  # noqa: ARG002
        """Folders of a job's machines whose files are fetched one by one when they are opened."""
        return ()

    def brings(self, uri: str) -> bool:  # noqa: ARG002
        """Return whether data at a URI come to the job's machines even if no name for them is
        read."""
        return False

    def handle(self, plan: PlanT) -> Handle:  # noqa: ARG002
        """Return what the list of runs shows of a job before it is sent."""
        return {}

    def experiments(self, plan: PlanT) -> str:  # noqa: ARG002
        """Return where the service itself keeps experiments, for a job that is filed under one: an
        address that `tracking` knows; empty where it has none."""
        return ""

    def fetch(self, handle: Handle, folder: Path) -> Mapping[str, str]:  # noqa: ARG002
        """Ask again for what an ended run left and could not be fetched, `results` among others;
        what is still missing, and why."""
        return {}

    def checks(self) -> Iterable[Check]:
        """Yield the backend's checks for `%distrain doctor`. Starts nothing, asks no service."""
        return ()

    def access(self, settled: Settled) -> Iterable[Check]:  # noqa: ARG002
        """Check by the service itself the login and its permissions, with the `settings` of a small
        job. Changes nothing; every call takes seconds at most."""
        return ()


@runtime_checkable
class Resumes(Protocol):
    """What a backend has besides that starts runs again from what they have saved."""

    def has_saved(self, folder: Path) -> bool:
        """Return whether the run in that folder has left something in its checkpoint folder."""

    def resume(self, before: Path, folder: Path) -> None:
        """Start the program of the run in the folder `before` as the run in `folder`, with what
        it has saved. Raises DistrainError."""


@runtime_checkable
class HoldsSessions(Protocol):
    """What a backend has besides whose ranks can stay between cells."""

    def start_session(self, plan: Unknown, folder: Path) -> None:
        """Start the ranks of a plan as the session of a folder. Returns at once; the folder's
        status says when they are ready. Raises OptionError for a plan whose processes can't stay,
        DistrainError."""

    def session_status(self, folder: Path) -> Status:
        """Return how the session of a folder is doing. Raises OSError; `fields.Damaged`."""

    def session_plan(self, job: Unknown, folder: Path, ranks: Sequence[int]) -> Plan:
        """Return the plan of a cell for these ranks of the session in a folder."""


def submit_cell(folder: Path, session: Path) -> None:
    """Have the ranks of a session run the cell of a run. Raises DistrainError where it has ended
    meanwhile."""
    answer = ask(session / REQUESTS, lambda writing: Request(folder, writing))
    if answer != TAKEN:
        raise DistrainError(
            f"session {session.name} can't run the cell: {answer or 'it has ended'}"
        )


AnyBackend: TypeAlias = "Backend[Unknown, Unknown]"
AnyJob: TypeAlias = "Job[object]"
