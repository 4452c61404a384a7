"""The interface of backends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from distrain_nb.backends.checks import Check
from distrain_nb.backends.job import Job
from distrain_nb.backends.plan import Plan
from distrain_nb.backends.price import NoPrice, Price
from distrain_nb.worker.files.status import Status

if TYPE_CHECKING:
    from distrain_nb.backends.settings import Settled
    from distrain_nb.findings import Finding
    from distrain_nb.layout import Layout
    from distrain_nb.layout.choices import Choice
    from distrain_nb.program.advice import RemoteFolder
    from distrain_nb.types import JsonObject, Unknown


Handle: TypeAlias = "JsonObject"
OptionsT = TypeVar("OptionsT")
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
        (`price_list.cached_answer` keeps the answer for a day). Raises NoPrice.
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


AnyBackend: TypeAlias = "Backend[Unknown, Unknown]"
