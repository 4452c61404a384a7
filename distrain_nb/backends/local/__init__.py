"""This machine: replicas and ranks are processes, started from a warm fork server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.local.plan import FOLDERS, LocalPlan, plan
from distrain_nb.backends.local.warm import hand_over
from distrain_nb.errors import OptionError
from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.files.status import State, Status, request_cancel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.backends.base import Handle, Job


class LocalBackend:
    """The default backend. A cell waits for its run, and the run ends with it."""

    name = "local"
    waits_by_default = True
    has_image = False

    def brings(self, uri: str) -> bool:  # noqa: ARG002
        """Whether data at a URI come to the job's machines even if no name for them is read."""
        return False

    def data(self, name: str, uri: str) -> str:
        path = Path(uri.removeprefix("file://")).expanduser()
        if not path.exists():
            raise OptionError(f"--data {name}={uri}: there is no {path} on this machine")
        return str(path.resolve())

    def plan(self, job: Job) -> LocalPlan:
        return plan(job)

    def handle(self, plan: LocalPlan) -> Handle:  # noqa: ARG002
        return {}

    def submit(self, plan: LocalPlan, folder: Path) -> None:
        plan.job.program.write(folder / PROGRAM_FOLDER)
        for name in FOLDERS.values():
            (folder / name).mkdir()
        plan.launch.write(folder)
        Status(State.STARTING).enter(State.STARTING, "starting").write(folder)
        hand_over(folder, plan.job.config.idle)

    def status(self, handle: Handle, folder: Path) -> Status:  # noqa: ARG002
        return Status.current(folder)

    def cancel(self, handle: Handle, folder: Path) -> None:  # noqa: ARG002
        request_cancel(folder)

    def fetch(self, handle: Handle, folder: Path) -> Mapping[str, str]:  # noqa: ARG002
        return {}
