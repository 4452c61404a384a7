"""One custom job on its way: its replicas run, and what becomes of them becomes its state."""

from __future__ import annotations

import base64
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import Context
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from google.cloud.aiplatform_v1 import types

from distrain_nb.errors import DistrainError
from distrain_nb.layout import Role
from distrain_nb.places.vertex.stand_in.entries import SERVICE, Entries
from distrain_nb.places.vertex.stand_in.replicas import (
    Member,
    TrialPlace,
    cluster_id,
    image,
    job_cluster,
    left_out,
    members,
    needs_secrets,
    reduces,
    replica,
    secret_service_variables,
    trial_container,
)
from distrain_nb.program.program import report
from distrain_nb.rehearsal.access import serve_json
from distrain_nb.rehearsal.engine import fit
from distrain_nb.rehearsal.faults import NO_ACCELERATORS, JobFailed, secret_value

if TYPE_CHECKING:
    from email.message import Message

    from distrain_nb.places.vertex.stand_in.buckets import Buckets
    from distrain_nb.rehearsal.engine import Engine, Network, Running
    from distrain_nb.rehearsal.faults import Faults, Preemption


_log = logging.getLogger(__name__)

States = types.JobState
_LOOK_EVERY_S = 0.2
_MISSING = re.compile(r"No such file or directory.*/gcs/")


class CustomJobExecution:
    """`enter` gets each state with the job's name, and what went wrong; steps are reported in
    `context`."""

    def __init__(
        self,
        job: str,
        spec: types.CustomJobSpec,
        engine: Engine,
        buckets: Buckets,
        entries: Entries,
        faults: Faults,
        enter: Callable[..., None],
        context: Context,
        trial: TrialPlace | None = None,
    ) -> None:
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name=job, daemon=True
        )
        self._job = job
        self._spec = spec
        self._engine = engine
        self._buckets = buckets
        self._entries = entries
        self._enter = enter
        self._preemptions = list(faults.preemptions)
        self._permission = faults.permission
        self._trial = trial
        if trial:
            entries.label(job, trial.number)
        self._members = members(job, spec)
        self._running: dict[str, Running] = {}
        self._readers: list[threading.Thread] = []
        self._printed: set[str] = set()
        self._explained = False
        self._services: Mapping[str, str] = {}
        self._cancelled = threading.Event()

    def start(self) -> None:
        """Begin, on a thread of its own."""
        self._thread.start()

    def cancel(self) -> None:
        """Have it stopped soon."""
        self._cancelled.set()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def _run(self) -> None:
        """Run the job, from pulling the images to its last state."""
        state, error = States.JOB_STATE_SUCCEEDED, ""
        try:
            self._enter(self._job, States.JOB_STATE_PENDING)
            self._say("Waiting for job to be provisioned.")
            self._engine = fit(self._engine, self._images())
            self._note_omissions()
            self._pull()
            self._run_replicas()
        except JobFailed as failure:
            state, error = States.JOB_STATE_FAILED, str(failure)
        except Exception as failure:  # whatever it was, the job must not seem to run for ever
            _log.exception("the job %s can't go on", self._job)
            state, error = States.JOB_STATE_FAILED, f"Internal error: {failure!r}"
        if self._cancelled.is_set():
            state, error = States.JOB_STATE_CANCELLED, ""
        words = {
            States.JOB_STATE_SUCCEEDED: "Job completed successfully.",
            States.JOB_STATE_CANCELLED: "Job is cancelled.",
        }
        self._say(error or words[state], "e" if error else "o")
        self._enter(self._job, state, error)

    def _pull(self) -> None:
        for name in self._images():
            if self._cancelled.is_set():
                return
            self._say(f"Pulling the image {name}.")
            try:
                self._engine.pull(name)
            except DistrainError as error:
                raise JobFailed(
                    f"Failed to pull image {name!r}: {error}. Make sure that the image "
                    "exists and that the job's service account may read it."
                ) from None

    def _images(self) -> Iterable[str]:
        """Return the images that the job needs, each once."""
        pools = [pool for pool in self._spec.worker_pool_specs if pool.replica_count]
        return dict.fromkeys(image(pool) for pool in pools if not reduces(pool))

    def _run_replicas(self) -> None:
        hosts = [member.host for member in self._members]
        name = f"distrain-{cluster_id(self._job)}"
        try:
            network = self._engine.network(name, hosts)
        except DistrainError as error:
            raise JobFailed(str(error)) from None
        try:
            self._sync()
            with secret_manager(self._permission) as port:
                if needs_secrets(self._spec):
                    self._services = secret_service_variables(network.reach(port))
                self._start(network, self._members)
                self._enter(self._job, States.JOB_STATE_RUNNING)
                self._watch(network)
        finally:
            self._stop(self._members)
            network.close()
            for reader in self._readers:
                reader.join()
            self._sync()
            for note in self._buckets.keep():
                self._say(note)

    def _note_omissions(self) -> None:
        self._say(f"This is a rehearsal on one machine. {self._engine.note}")
        ours = self._spec.psc_interface_config.network_attachment, *self._spec.reserved_ip_ranges
        for name in filter(None, ours):
            self._say(f"{name} is not used: a rehearsal has a network of its own.")
        for position, pool in enumerate(self._spec.worker_pool_specs):
            machine = pool.machine_spec
            if left_out(pool, self._spec):
                self._say(
                    f"Worker pool {position} is left out: Reduction Server works with GPUs only, "
                    "and the reducers of distrain-nb with torch.distributed only."
                )
            elif reduces(pool):
                self._say(
                    f"Worker pool {position} runs reducers of distrain-nb for gloo in place of "
                    "Reduction Server, which works with GPUs only."
                )
            elif pool.replica_count and machine.accelerator_count:
                self._say(
                    f"Worker pool {position} runs without its {machine.accelerator_count} x "
                    f"{machine.accelerator_type.name} per replica: {NO_ACCELERATORS}"
                )

    def _start(self, network: Network, which: Iterable[Member]) -> None:
        trial = self._trial
        named = trial.number if trial else None
        cluster = job_cluster(self._job, self._spec, network.addresses, named)
        folders = self._buckets.folders()
        which = list(which)
        for number, member in enumerate(which, 1):
            report(f"starting replica {number} of {len(which)}")
            container = replica(self._job, self._spec, member, cluster, folders, self._services)
            if trial:
                container = trial_container(container, trial, member)
            running = network.start(container)
            self._running[member.task] = running
            reader = threading.Thread(target=self._read, args=(member.task, running), daemon=True)
            reader.start()
            self._readers.append(reader)

    def _read(self, task: str, running: Running) -> None:
        for stream, text in running.lines():
            self._entries.write(self._job, task, text, stream)
            self._explain(text)
            waited_for = [
                preemption.text for preemption in tuple(self._preemptions) if preemption.text
            ]
            self._printed.update(part for part in waited_for if part in text)

    def _watch(self, network: Network) -> None:
        """Watch until the primary ends, a replica fails, time is up or the job is cancelled."""
        began = time.monotonic()
        timeout: Any = self._spec.scheduling.timeout  # a timedelta, whatever its annotation says
        limit = timeout.total_seconds() if timeout else 0.0
        while not self._cancelled.wait(_LOOK_EVERY_S):
            self._sync()
            ran = time.monotonic() - began
            if limit and ran > limit:
                raise JobFailed(f"The job has run for its timeout of {limit:g} s and was stopped.")
            due = next(
                (preemption for preemption in self._preemptions if self._is_due(preemption, ran)),
                None,
            )
            if due is not None:
                self._preemptions.remove(due)
                self._preempt(network, due)
                continue
            statuses = {task: running.status() for task, running in self._running.items()}
            for task, status in statuses.items():
                if status:
                    self._fail(task, status)
            if statuses["workerpool0-0"] == 0:
                self._end_with_primary(statuses)
                return

    def _end_with_primary(self, statuses: Mapping[str, int | None]) -> None:
        """Stop the others; what was still running is named, except what never ends by itself."""
        members = [m for m in self._members if statuses.get(m.task, 0) is None]
        self._stop(members)
        serving = {Role.SERVERS, Role.REDUCERS}
        if any(member.role is Role.SERVERS for member in self._members):
            serving.add(Role.WORKERS)
        for member in members:
            if member.role not in serving and self._running[member.task].status():
                self._say(
                    f"The replica {member.task} was still running when the primary replica ended, "
                    "and was stopped: what it had not yet printed or saved is lost.",
                    "e",
                )

    def _is_due(self, preemption: Preemption, ran: float) -> bool:
        return preemption.text in self._printed if preemption.text else ran >= preemption.seconds

    def _preempt(self, network: Network, preemption: Preemption) -> None:
        """Stop a replica as if its machine had gone away; the service starts it on another."""
        taken = [member for member in self._members if member.task == preemption.replica]
        if not taken:
            raise JobFailed(f"preempt={preemption.replica}: the job has no such replica.")
        self._stop(taken, grace=0.0)
        self._say(f"The replica {preemption.replica} was preempted.", "e")
        if self._spec.scheduling.disable_retries:
            raise JobFailed(
                f"The replica {preemption.replica} was preempted, and retries are disabled."
            )
        if self._spec.scheduling.restart_job_on_worker_restart:
            self._enter(self._job, States.JOB_STATE_PENDING)
            self._stop(self._members)
            taken = list(self._members)
        self._say(f"Restarting {', '.join(member.task for member in taken)}.")
        self._sync()
        self._start(network, taken)
        self._enter(self._job, States.JOB_STATE_RUNNING)

    def _stop(self, which: Iterable[Member], **grace: float) -> None:
        running = [self._running[x.task] for x in which if x.task in self._running]
        if running:
            with ThreadPoolExecutor(len(running)) as threads:
                list(threads.map(lambda process: process.stop(**grace), running))

    def _fail(self, task: str, status: int) -> NoReturn:
        _, project, _, _, _, number = self._job.split("/")
        query = f'resource.type="ml_job"\nresource.labels.job_id="{number}"'
        raise JobFailed(
            f"The replica {task} exited with a non-zero status of {status}. To find out more "
            "about why your job exited please check the logs: "
            f"https://console.cloud.google.com/logs/viewer?project={project}"
            f"&resource=ml_job%2Fjob_id%2F{number}&advancedFilter={quote(query, safe='')}"
        )

    def _sync(self) -> None:
        for bucket in self._buckets.mounted():
            bucket.sync()

    def _explain(self, text: str) -> None:
        """Say once where a rehearsal's buckets have their objects."""
        if _MISSING.search(text) and not self._explained:
            self._explained = True
            folder = f"{self._buckets.data}/BUCKET"
            self._say(f"In a rehearsal, /gcs/BUCKET has the files below {folder}.")

    def _say(self, text: str, stream: str = "o") -> None:
        self._entries.write(self._job, SERVICE, text, stream)


_ACCOUNT = "rehearsal"
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
_VERSION = re.compile(r"/v1/(projects/[^/]+/secrets/([^/]+)/versions/[^/:]+):access")
PERMISSION = "secretmanager.versions.access"


def secret_manager(permission: str) -> AbstractContextManager[int]:
    """Serve both; gives the port. `permission` is the one that the job lacks."""
    return serve_json(lambda path, headers, _: _answer(path, headers, permission))


def _answer(path: str, headers: Message, permission: str) -> tuple[int, dict[str, Any]]:
    if path == _TOKEN and headers.get("Metadata-Flavor") == "Google":
        return 200, {"access_token": _ACCOUNT, "expires_in": 3599, "token_type": "Bearer"}
    match = _VERSION.fullmatch(path)
    if match is None:
        return 404, _error(404, f"{path} was not found.")
    if headers.get("Authorization") != f"Bearer {_ACCOUNT}":
        return 401, _error(401, "Request is missing required authentication credential.")
    if permission == PERMISSION:
        return 403, _error(403, f"Permission '{PERMISSION}' denied for resource '{match[1]}'.")
    data = base64.b64encode(secret_value(match[2]).encode()).decode()
    return 200, {"name": match[1], "payload": {"data": data}}


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
