"""The interface of backends, and the values that it takes and returns."""

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
    """The state of what a check looks at. MISSING keeps some jobs from running, BROKEN all."""

    GOOD = "good"
    MISSING = "missing"
    BROKEN = "wrong"


@dataclass(frozen=True)
class Check:
    """The result of a check of `%distrain doctor`. If it is not good, `remedy` says what to do."""

    subject: str
    state: Health
    result: str
    remedy: str = ""


def packages(subject: str, names: Sequence[str], extra: str) -> Check:
    """Check whether these packages are installed. *extra* is the extra that installs them."""
    versions = {name: installed(name) for name in names}
    lacking = [name for name, number in versions.items() if number is None]
    if lacking:
        remedy = f"pip install 'distrain-nb[{extra}]'"
        return Check(subject, Health.MISSING, f"{', '.join(lacking)}: not installed", remedy)
    return Check(subject, Health.GOOD, ", ".join(f"{n} {number}" for n, number in versions.items()))


def login(account: str, remedy: str) -> Check:
    """Check whether there are credentials. *account* names them, or is empty."""
    if account:
        return Check("login", Health.GOOD, account)
    return Check("login", Health.MISSING, "none on this machine's disk or in its variables", remedy)


def allowed(subject: str, lacking: Sequence[str], remedy: str) -> Check:
    """Check whether a service allows what jobs need. *lacking* are permissions that it refuses."""
    if lacking:
        return Check(subject, Health.MISSING, f"not allowed: {', '.join(lacking)}", remedy)
    return Check(subject, Health.GOOD, "all that jobs need is allowed")


def installed(name: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


Handle: TypeAlias = "JsonObject"
OptionsT = TypeVar("OptionsT")
OptionsT_co = TypeVar("OptionsT_co", covariant=True)


@dataclass(frozen=True)
class Job(Generic[OptionsT_co]):
    """A program, the machines to run it on, and options.

    `folder` is the working folder on this machine. `options` are those that the backend declares.
    `results` are names to bring back from rank 0. A job that `waits` ends when the process ends
    that waits for it. `data` are the texts of `--data`, NAME=URI. `uploads` are files of `data` on
    this machine that a job elsewhere needs. `allowed_secrets` are what the guard lets pass.

    `environ` are the variables of the process that asks for the job. `defaults` are settings that
    the backend found on this machine. `machine` has all other facts that a plan depends on. `nonce`
    makes the run's name unique.

    `trial` is the number of a study's trial, as text. `cost_limit` has seconds after which a job of
    this machine ends, and the reason in words. `as_rank` and `steps` are texts of these options:
    ranks then run alone on this machine.
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
    """Yield names and values of texts NAME=VALUE, such as those of `--data`."""
    for text in texts:
        name, _, value = text.partition("=")
        yield name, value


class Plan(Protocol):
    """The exact request that `submit` would send. `str` of a plan is the output of `--dry-run`."""

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
    """A plan of a job that runs in an image built for it."""

    def target(self) -> str:
        """Return the image's reference, with placeholders for what is not known yet."""


@runtime_checkable
class InstallsPackages(Protocol):
    """A plan of a job that installs packages."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Return the requirements of the program. Some may already be in the image."""


PlanT = TypeVar("PlanT", bound=Plan)


class Backend(ABC, Generic[OptionsT, PlanT]):
    """The code for one place: it plans, submits, observes and cancels jobs.

    `name` is the value of `--on`, and `title` the name that people read. `options` is a frozen
    dataclass of the place's own options (`backends.options`). `example` are options of a small job:
    `--help` shows them, and `%distrain doctor` checks their settings.

    With `here`, jobs run on this machine and end with it. With `asks`, ranks can ask the user of
    the notebook. With `has_image`, ranks have the packages of an image, else those of the notebook.
    `mounted` are folders that the place's machines have, each with a slash at the end.
    `paid_phases` are beginnings of phases in which a run that isn't running yet has its machines.

    `reads` are the fields of a layout that `plan` reads, such as `workers`, `workers.machine` and
    `launcher`. The form offers these fields. Any other field in a layout is an error or a warning.
    With `implies_primary`, a job has a primary replica even if its layout names none. If
    `layout.place` knows the place, its declaration there counts.

    A handle finds a run again. Its JSON values are known before anything is sent. Everything that
    is learned later belongs into the run's folder.
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
        """Return settings of this machine by name, such as `region`, with their origin.

        They hold unless the user chose something else. This reads files and asks services of the
        machine, within seconds. Raises OptionError for a file that can't be read.
        """
        return {}

    def machine(self, job: Job[OptionsT]) -> Mapping[str, str]:  # noqa: ARG002
        """Return all other facts that a plan of this job depends on, by name.

        They are facts of this machine, and answers that services give within seconds. Raises
        OptionError.
        """
        return {}

    def settings(self, job: Job[OptionsT]) -> Settled:  # noqa: ARG002
        """Return the settings in effect for a job, by name, each with its origin.

        Pure, as `plan` is.
        """
        return {}

    def offers(self, layout: Layout, path: str) -> Iterable[Choice]:  # noqa: ARG002
        """Return values for a field of a layout that the fact tables don't have.

        Completion and the form offer them. *path* is a field such as `region` or `workers.machine`.
        """
        return ()

    def about(self, layout: Layout, texts: Mapping[str, str]) -> Iterable[Finding]:  # noqa: ARG002
        """Yield findings about a layout, such as limits of a cluster, while the form is filled in.

        *texts* are those of the place's own fields. Repairs change a cell's text. The findings of
        `plan` include these.
        """
        return ()

    def price(self, layout: Layout) -> Price:  # noqa: ARG002
        """Return the price of a layout's machines for an hour in its region.

        The service's own list is asked with the user's login, which takes seconds
        (`prices.cached_answer` keeps the answer for a day). Raises NoPrice.
        """
        raise NoPrice(f"{self.title} has no list of prices: write them into prices.yaml")

    @abstractmethod
    def plan(self, job: Job[OptionsT]) -> PlanT:
        """Return the exact request for a job.

        Pure: the same job has the same request.

        Facts of this machine come with the job. Raises OptionError.
        """

    @abstractmethod
    def submit(self, plan: PlanT, folder: Path) -> None:
        """Send the job of a plan.

        Log, metrics, status and results of the run will appear in *folder*. If this raises an
        Exception, nothing has been sent.
        """

    @abstractmethod
    def status(self, handle: Handle, folder: Path) -> Status:
        """Return the status of a run."""

    @abstractmethod
    def cancel(self, handle: Handle, folder: Path) -> None:
        """Ask the service or supervisor to stop a run."""

    def data(self, name: str, uri: str) -> str:  # noqa: ARG002
        """Return the path or URI that a program gets for `--data NAME=URI`. Raises OptionError."""
        return uri

    def bucket(self, uri: str) -> str:
        """Return the path or URI of a bucket for a program there.

        Raises OptionError if it can't reach it.
        """
        return uri

    def staging(self, job: Job[OptionsT]) -> str:  # noqa: ARG002
        """Return the URI below which data of this machine are uploaded for a job.

        It is empty if ranks read the data by path. The job has no program yet.
        """
        return ""

    def parts(self, text: str) -> tuple[str, str]:
        """Return the URI or path in a text of `--data`, and the rest of the text."""
        return text, ""

    def remote_folders(self, job: Job[OptionsT]) -> Sequence[RemoteFolder]:  # noqa: ARG002
        """Return folders of a job's machines that fetch each file when it is opened."""
        return ()

    def brings(self, uri: str) -> bool:  # noqa: ARG002
        """Return whether data at a URI reach the machines even if no code reads their name."""
        return False

    def handle(self, plan: PlanT) -> Handle:  # noqa: ARG002
        """Return the handle of a job that has not been sent yet."""
        return {}

    def experiments(self, plan: PlanT) -> str:  # noqa: ARG002
        """Return the address of the service's own experiments for a job with an experiment.

        `tracking` knows the address. It is empty if the service has no experiments.
        """
        return ""

    def fetch(self, handle: Handle, folder: Path) -> Mapping[str, str]:  # noqa: ARG002
        """Fetch what was missing when a run ended, such as `results`.

        Return what still is, with reasons.
        """
        return {}

    def checks(self) -> Iterable[Check]:
        """Yield the backend's checks for `%distrain doctor`. Starts nothing, asks no service."""
        return ()

    def access(self, settled: Settled) -> Iterable[Check]:  # noqa: ARG002
        """Ask the service about the login and its permissions, with the settings of a small job.

        This changes nothing. Every call takes seconds at most.
        """
        return ()


@runtime_checkable
class Resumes(Protocol):
    """A backend that starts runs again from what they have saved."""

    def has_saved(self, folder: Path) -> bool:
        """Return whether the run of a folder has saved something in its checkpoint folder."""

    def resume(self, before: Path, folder: Path) -> None:
        """Start the program of the run in *before* as a new run in *folder*.

        It begins with what the earlier run has saved. Raises DistrainError.
        """


@runtime_checkable
class HoldsSessions(Protocol):
    """A backend whose ranks can stay between cells."""

    def start_session(self, plan: Unknown, folder: Path) -> None:
        """Start the ranks of a plan as the session of a folder.

        This returns at once. The folder's status says when the ranks are ready. Raises OptionError
        for a plan whose processes can't stay, and DistrainError.
        """

    def session_status(self, folder: Path) -> Status:
        """Return the status of a folder's session. Raises OSError; `fields.Damaged`."""

    def session_plan(self, job: Unknown, folder: Path, ranks: Sequence[int]) -> Plan:
        """Return the plan of a cell for these ranks of the session in a folder."""


def submit_cell(folder: Path, session: Path) -> None:
    """Have a session's ranks run the cell of a run.

    Raises DistrainError if the session has ended.
    """
    answer = ask(session / REQUESTS, lambda writing: Request(folder, writing))
    if answer != TAKEN:
        raise DistrainError(
            f"session {session.name} can't run the cell: {answer or 'it has ended'}"
        )


AnyBackend: TypeAlias = "Backend[Unknown, Unknown]"
AnyJob: TypeAlias = "Job[object]"
