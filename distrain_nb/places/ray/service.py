"""A job of a Ray cluster, as the process that carries a run sees it: by its dashboard alone."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from distrain_nb import __version__
from distrain_nb.backends.remote.service import Gone, Observed, Unanswered
from distrain_nb.backends.remote.shared_folder import START, SharedFolderService
from distrain_nb.errors import DistrainError
from distrain_nb.places.ray.dashboard import Dashboard, Headers
from distrain_nb.places.ray.plan import RaySpec
from distrain_nb.places.ray.replica import order_package
from distrain_nb.types import JsonObject
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.orders import packed
from distrain_nb.worker.files.status import State
from distrain_nb.worker.replica import shared
from distrain_nb.worker.supervisor.retries import LOST, RunAttempt

if TYPE_CHECKING:
    from distrain_nb.image import Listener
    from distrain_nb.worker.files.orders import Order

TRAVEL = ("demand.py", "driver.py", "replica.py")  # of this package, with each job
JOB, STATE, NEXT, NODE = "job.json", "driver.json", "next-parcel", "node"
SENT = (shared.CODE, START, JOB, shared.VARIABLES)  # what of the folder travels with a job
_DRIVER_LOST = frozenset(["JOB_SUPERVISOR_ACTOR_DIED"])
_LAST_WORDS = 2000
_AT_ONCE = 200  # parcels


@dataclass(frozen=True)
class RayService(SharedFolderService[RaySpec]):
    """A job, and a folder that has its files: the one that the cluster shares with this machine, or
    `home`, which the job's parcels are unpacked in."""

    home: Path
    _dashboards: list[Dashboard] = field(default_factory=list, repr=False)

    @property
    def folder(self) -> Path:
        return Path(self.spec.folder) if self.spec.folder else self.home

    @property
    def _dashboard(self) -> Dashboard:
        if not self._dashboards:
            credentials = Headers.find(self.spec.credentials, os.environ)
            self._dashboards.append(Dashboard.at(self.spec.address, credentials))
        return self._dashboards[0]

    def stage(self, program: Path, tell: Listener) -> JsonObject:
        """Lay down the program, the worker, the driver and what these are told."""
        super().stage(program, tell)
        package = __package__ or ""
        target = self.folder / shared.CODE / "worker" / Path(*package.split("."))
        target.mkdir(parents=True, exist_ok=True)
        for name in TRAVEL:
            shutil.copy(Path(__file__).with_name(name), target / name)
        self._tell_driver()
        # The head's shell runs this line: nothing of the user's stands in it unquoted.
        where = shlex.quote(self.spec.folder) if self.spec.folder else '"$PWD"'
        python = shlex.quote(self.spec.python)
        if self.spec.python.startswith("~/"):
            python = f"~/{shlex.quote(self.spec.python[2:])}"
        code = f'{where}/{shared.CODE}/worker:"$PYTHONPATH"'
        return {
            "entrypoint": f"PYTHONPATH={code} exec {python} -m {package}.driver {where}",
            "submission_id": self._id,
            "runtime_env": self.spec.runtime_env,
            "metadata": {"distrain-nb": __version__},
        }

    def prepare_attempt(self, request: JsonObject, attempt: RunAttempt, retries: int) -> JsonObject:
        """Forget how the last job has ended: the next one has another id."""
        request = super().prepare_attempt(request, attempt, retries)
        for name in (STATE, NEXT, NODE):
            (self.folder / name).unlink(missing_ok=True)
        self._tell_driver()
        return {**request, "submission_id": self._id}

    @property
    def _id(self) -> str:
        attempt = self.attempt
        return self.spec.run if attempt < 2 else f"{self.spec.run}-{attempt}"

    def _tell_driver(self) -> None:
        stays = shared.SESSION_VARIABLE in self.spec.environment
        row = {**self.spec.driver, "name": self._id, "shared": self.spec.folder, "stays": stays}
        (self.folder / JOB).write_text(json.dumps(row), encoding="utf-8")

    def create(self, request: JsonObject) -> str:
        """Upload the code, unless nodes have it in a shared folder, and send the job."""
        runtime = dict(cast("JsonObject", request["runtime_env"]))
        if not self.spec.folder:
            data = self._package()
            name = f"_ray_pkg_{hashlib.sha256(data).hexdigest()[:32]}.zip"
            if not self._dashboard.has_package(name):
                self._dashboard.upload(name, data)
            runtime["working_dir"] = f"gcs://{name}"
        try:
            job = self._dashboard.submit({**request, "runtime_env": runtime})
        except Unanswered:
            raise
        except DistrainError as error:
            if "already exists" not in str(error):  # a request of ours that got no answer
                raise
            job = self._id
        return self._sent(job)

    def _package(self) -> bytes:
        """Return the job's folder as a zip archive, of the same files always the same."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(self.folder.rglob("*")):
                if path.is_file() and path.relative_to(self.folder).parts[0] in SENT:
                    entry = zipfile.ZipInfo(str(path.relative_to(self.folder)))
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    entry.external_attr = (0o600 | path.stat().st_mode & 0o100) << 16
                    archive.writestr(entry, path.read_bytes())
        return buffer.getvalue()

    def _sent(self, job: str) -> str:
        """Forget the values of `--env` once the cluster has the job, unless its nodes read them
        here."""
        if job and not self.spec.folder:
            (self.folder / shared.VARIABLES).unlink(missing_ok=True)
        return job

    def find(self, request: JsonObject) -> str:  # noqa: ARG002
        """Return the job's id if the cluster has it."""
        try:
            self._dashboard.job(self._id)
        except Gone:
            return ""
        return self._sent(self._id)

    def observe(self, job: str) -> Observed:
        """Return how it is doing, by the cluster's words, the driver's and those of the ranks."""
        try:
            row = self._dashboard.job(job)
        except Gone:
            ended = self._by_files()
            if ended:
                return ended
            raise Gone(
                f"the cluster at {self.spec.address} doesn't know the job {job} any more: its head "
                "was started anew, or somebody has deleted the job"
            ) from None
        node, status = str(row.get("driver_node_id") or ""), str(row["status"])
        if node and not self.spec.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / NODE).write_text(node, encoding="utf-8")
            self._unpack(node)
        if status == "PENDING":
            return Observed(State.QUEUED, "preparing the job's environment")
        if status == "RUNNING":
            return self._running()
        if status == "SUCCEEDED":
            if not self.spec.folder and self._driver_state().get("phase") != "ended":
                raise Unanswered("the job has ended, and not all that it has written has come yet")
            return Observed(State.SUCCEEDED)
        if status == "STOPPED":
            cancelled = (self.home.parent / CANCEL_FILE).exists()
            return Observed(State.CANCELLED, error="" if cancelled else "stopped on the cluster")
        cause = self._cause() or (LOST if str(row.get("error_type")) in _DRIVER_LOST else "")
        return Observed(State.FAILED, error=self._why() or self._of_ray(row), cause=cause)

    def _running(self) -> Observed:
        state = self._driver_state()
        phase, reason = str(state.get("phase", "")), str(state.get("reason", ""))
        if phase == "waiting for nodes":
            return Observed(State.QUEUED, phase, reason=reason)
        if phase in ("running", "ended"):
            return Observed(State.RUNNING, reason=self.failing())
        return Observed(State.STARTING, phase or "starting the driver")

    def give(self, order: Order, files: Mapping[str, Path]) -> None:
        """Upload it as a package that the driver looks for, unless nodes share a folder with this
        machine."""
        if self.spec.folder:
            super().give(order, files)
        else:
            self._dashboard.upload(order_package(self._id, order.number), packed(order, files))

    def pull(self) -> None:
        if not self.spec.folder:
            with suppress(FileNotFoundError):
                self._unpack((self.folder / NODE).read_text(encoding="utf-8"))

    def lost(self) -> Mapping[int, str]:
        lost = cast("dict[str, str]", self._driver_state().get("lost", {}))
        return {int(number): why for number, why in lost.items()}

    def _by_files(self) -> Observed | None:
        """Return how the job has ended by what the driver said last."""
        state = self._driver_state()
        if state.get("phase") == "ended" and state.get("code") == 0:
            return Observed(State.SUCCEEDED)
        if state.get("phase") in ("ended", "failed"):
            return Observed(State.FAILED, error=self._why(), cause=self._cause())
        return None

    def _cause(self) -> str:
        return str(self._driver_state().get("cause", ""))

    def _why(self) -> str:
        """Return why the job has failed: what the driver knows, and the rank that failed first."""
        reason = str(self._driver_state().get("error", ""))
        failed = self.first_failure()
        return "\n".join(filter(None, (reason, failed or ("" if reason else self._last_words()))))

    def _last_words(self) -> str:
        """Return what a replica has printed that isn't its ranks'."""
        for path in sorted((self.folder / shared.REPLICAS).glob("*/said")):
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            if text:
                return text[-_LAST_WORDS:]
        return ""

    def _of_ray(self, row: JsonObject) -> str:
        message = str(row.get("message") or "")[-_LAST_WORDS:].strip()
        if "No module named 'ray'" in message:
            python = self.spec.python
            message += f"\n`{python}` of the head node has no Ray: --python says which one does"
        return message

    def cancel(self, job: str) -> None:
        self._dashboard.stop(job)

    def links(self, job: str) -> Mapping[str, str]:
        dashboard = {"dashboard": f"{self._dashboard.address}/#/jobs/{job}"}
        return {**dashboard, **(super().links(job) if self.spec.folder else {})}

    def _driver_state(self) -> JsonObject:
        try:
            return cast("JsonObject", json.loads((self.folder / STATE).read_bytes()))
        except FileNotFoundError:
            return {}

    def _unpack(self, node: str) -> None:
        """Unpack the parcels that have come since. One that is unpacked again changes nothing."""
        number = self._next()
        for _ in range(_AT_ONCE):
            data = self._dashboard.file(node, f"distrain/{self._id}/{number:08d}")
            if data is None:
                return
            for path, at, content in pieces(unwrapped(data)):
                self._put(path, at, content)
            number += 1
            replace_file(self.folder / NEXT, str(number).encode())

    def _next(self) -> int:
        try:
            return int((self.folder / NEXT).read_text())
        except FileNotFoundError:
            return 1

    def _put(self, name: str, at: int, content: bytes) -> None:
        path = self.folder / name
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise DistrainError(f"the job sent a file for {name!r}, which is outside of its folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        if at < 0:
            replace_file(path, content)
            return
        with path.open("r+b" if at else "wb") as file:
            file.seek(at)
            file.write(content)


def unwrapped(parcel: bytes) -> bytes:
    """Return what is in a parcel. Raises Unanswered for one that has not come whole."""
    size, _, data = parcel.partition(b"\n")
    if not size.isdigit() or len(data) != int(size):
        raise Unanswered(f"{len(data)} of {size.decode(errors='replace')} bytes of a parcel came")
    return data


def pieces(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Yield path, place and bytes of each piece of a parcel."""
    start = 0
    while start < len(data):
        end = data.index(b"\n", start)
        head = json.loads(data[start:end])
        start = end + 1 + head["size"]
        yield head["path"], head["at"], data[end + 1 : start]
