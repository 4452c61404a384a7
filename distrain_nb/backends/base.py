"""What a backend is asked for, and the values that pass between it and the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol

from distrain_nb.config import Config
from distrain_nb.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from distrain_nb.findings import Finding
    from distrain_nb.layout import Layout
    from distrain_nb.program import Program
    from distrain_nb.worker.files.status import Status

Handle = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A program, the machines it is to run on, and how.

    `folder` is the working folder on this machine; `results` are names of rank 0 to bring back;
    `waits` says that somebody waits for it, so that it must not outlive them. `rehearse` is the
    text after `--rehearse`, None where the job goes to the service itself; `data` are the texts of
    `--data`, NAME=URI; `backend_options` are the options that only a cloud has a use for, by name,
    as far as they were given; `allowed_secrets` are what the guard lets pass.
    """

    program: Program
    layout: Layout
    folder: Path
    name: str = ""
    results: tuple[str, ...] = ()
    waits: bool = False
    config: Config = field(default_factory=Config)
    experiment: str = ""
    rehearse: str | None = None
    builder: str = "append"
    data: tuple[str, ...] = ()
    backend_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    allowed_secrets: tuple[str, ...] = ()


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


class Backend(Protocol):
    """A place where jobs run.

    A handle is what finds a run again, as JSON values, known before anything is sent; what is
    learned later belongs into the run's folder. `has_image` says whether ranks have the packages
    of an image, rather than those of the notebook.
    """

    name: str
    waits_by_default: bool
    has_image: bool

    def data(self, name: str, uri: str) -> str:
        """What the program is given for data at that URI, `--data NAME=URI`. Raises OptionError."""

    def brings(self, uri: str) -> bool:
        """Whether data at a URI come to the job's machines even if no name for them is read."""

    def plan(self, job: Job) -> Any:
        """The exact request, as a `Plan`. Pure: touches nothing outside."""

    def handle(self, plan: Any) -> Handle:
        """What the list of runs is to know of it, before it is sent."""

    def submit(self, plan: Any, folder: Path) -> None:
        """Send it; log, metrics, status and results of the run are to appear in `folder`.

        Where this raises an Exception, nothing has been sent.
        """

    def status(self, handle: Handle, folder: Path) -> Status:
        """How the run is doing."""

    def cancel(self, handle: Handle, folder: Path) -> None:
        """Ask for it to be stopped."""

    def fetch(self, handle: Handle, folder: Path) -> Mapping[str, str]:
        """Ask again for what an ended run left and could not be fetched, `results` among others;
        what is still missing, and why."""


def find(name: str) -> Backend:
    """The backend of that name: the package's own `local`, or one that is installed as an entry
    point of `distrain_nb.backends`. Raises OptionError naming those that there are.
    """
    if name == "local":  # looking through all that is installed takes longer than a warm start
        from distrain_nb.backends.local import LocalBackend

        return LocalBackend()
    if name not in _installed():
        _installed.cache_clear()  # it may have been installed since
    installed = _installed()
    if name not in installed:
        if name == "ai-platform":
            raise OptionError(
                "--on ai-platform: AI Platform Training takes no jobs from here. Copy the command "
                "that %distrain form shows for the layout, or write --on vertex, which succeeds it"
            )
        allowed = ", ".join(sorted(installed))
        raise OptionError(f"--on {name}: no such backend is installed; there are {allowed}")
    backend: Backend = installed[name].load()()
    return backend


@cache
def _installed() -> dict[str, EntryPoint]:
    """Looked for once: a list of runs asks for the backend of each."""
    return {entry.name: entry for entry in entry_points(group="distrain_nb.backends")}
