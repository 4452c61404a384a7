"""One custom job on its way: its replicas run, and what becomes of them becomes its state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from distrain_nb.errors import DistrainError
from distrain_nb.layout import Role
from distrain_nb.places.vertex.stand_in.entries import SERVICE, Entries
from distrain_nb.places.vertex.stand_in.job_resource import JobResource, States
from distrain_nb.places.vertex.stand_in.replicas import (
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
from distrain_nb.places.vertex.stand_in.secret_manager import secret_manager
from distrain_nb.rehearsal.engine import fit
from distrain_nb.rehearsal.failures import JobFailed
from distrain_nb.rehearsal.job_thread import JobThread
from distrain_nb.rehearsal.notes import engine_note, without
from distrain_nb.rehearsal.replicas import AttemptEnd, Replicas

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import types

    from distrain_nb.places.vertex.stand_in.buckets import Buckets
    from distrain_nb.rehearsal.engine import Engine
    from distrain_nb.rehearsal.faults import Faults

_PRIMARY = "workerpool0-0"
_MISSING = re.compile(r"No such file or directory.*/gcs/")


@dataclass(frozen=True)
class CustomJobContext:
    """The surroundings of jobs. Steps of jobs are reported in the context `steps`."""

    engine: Engine
    buckets: Buckets
    entries: Entries
    faults: Faults
    steps: Context = field(default_factory=copy_context)


class CustomJobExecution(JobThread):
    """`resource` is the job as the service shows it; `trial` is that of a study."""

    def __init__(
        self,
        resource: JobResource,
        spec: types.CustomJobSpec,
        context: CustomJobContext,
        trial: TrialPlace | None = None,
    ) -> None:
        super().__init__(resource.name, context.steps.copy())
        self.resource = resource
        self._spec = spec
        self._engine = context.engine
        self._buckets = context.buckets
        self._entries = context.entries
        self._faults = context.faults
        self._trial = trial
        if trial:
            self._entries.label(self.name, trial.number)
        self._members = {member.task: member for member in members(self.name, spec)}
        self._explained = False
        self._services: Mapping[str, str] = {}

    def cancel(self) -> None:
        """Have it stopped soon, unless it has ended."""
        if self.resource.cancel():
            self.cancelled.set()

    def run(self) -> None:
        """Run the job, from pulling the images to its last state."""
        self.resource.enter(States.JOB_STATE_PENDING)
        self._say("Waiting for job to be provisioned.")
        self._engine = fit(self._engine, self._images())
        self._note_omissions()
        self._pull()
        self._run_replicas()
        self._finish(States.JOB_STATE_SUCCEEDED, "Job completed successfully.")

    def fail(self, reason: str) -> None:
        self._finish(States.JOB_STATE_FAILED, reason)

    def _finish(self, state: Any, words: str) -> None:
        if self.cancelled.is_set():
            state, words = States.JOB_STATE_CANCELLED, "Job is cancelled."
        failed = state == States.JOB_STATE_FAILED
        self._say(words, "e" if failed else "o")
        self.resource.enter(state, words if failed else "")

    def _pull(self) -> None:
        for name in self._images():
            if self.cancelled.is_set():
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
        hosts = [member.host for member in self._members.values()]
        network = self._engine.network(f"distrain-{cluster_id(self.name)}", hosts)
        replicas = Replicas(network, list(self._faults.preemptions), self._read)
        try:
            self._sync()
            with secret_manager(self._faults.permission) as port:
                if needs_secrets(self._spec):
                    self._services = secret_service_variables(network.reach(port))
                self._start(replicas, self._members)
                end = self._watch(replicas)
            self._conclude(replicas, end)
        finally:
            replicas.stop()
            replicas.close()
            self._sync()
            for note in self._buckets.keep():
                self._say(note)

    def _note_omissions(self) -> None:
        self._say(engine_note(self._engine))
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
                kind = machine.accelerator_type.name
                hardware = f"{machine.accelerator_count} x {kind} per replica"
                self._say(without(f"Worker pool {position}", hardware))

    def _start(self, replicas: Replicas, tasks: Iterable[str]) -> None:
        trial = self._trial
        named = trial.number if trial else None
        cluster = job_cluster(self.name, self._spec, replicas.network.addresses, named)
        folders = self._buckets.folders()
        containers = {}
        for task in tasks:
            member = self._members[task]
            container = replica(self.name, self._spec, member, cluster, folders, self._services)
            containers[task] = trial_container(container, trial, member) if trial else container
        replicas.start(containers)
        self.resource.enter(States.JOB_STATE_RUNNING)

    def _read(self, task: str, stream: str, text: str) -> None:
        self._entries.write(self.name, task, text, stream)
        if _MISSING.search(text) and not self._explained:
            self._explained = True
            folder = f"{self._buckets.data}/BUCKET"
            self._say(f"In a rehearsal, /gcs/BUCKET has the files below {folder}.")

    @property
    def _timeout(self) -> float:
        timeout: Any = self._spec.scheduling.timeout  # a timedelta, whatever its annotation says
        return float(timeout.total_seconds()) if timeout else 0.0

    def _watch(self, replicas: Replicas) -> AttemptEnd:
        """Watch until the primary ends, a replica fails, time is up or the job is cancelled."""
        limits = {"timeout": self._timeout} if self._timeout else {}
        while True:
            end = replicas.watch([_PRIMARY], limits, self.cancelled, self._sync)
            if end.cause != "lost":
                return end
            self._restart(replicas, end.replica)

    def _restart(self, replicas: Replicas, task: str) -> None:
        """Start a replica whose machine was taken away on another, or the whole job anew."""
        replicas.stop([task], grace=0.0)
        self._say(f"The replica {task} was preempted.", "e")
        if self._spec.scheduling.disable_retries:
            raise JobFailed(f"The replica {task} was preempted, and retries are disabled.")
        tasks = [task]
        if self._spec.scheduling.restart_job_on_worker_restart:
            self.resource.enter(States.JOB_STATE_PENDING)
            replicas.stop()
            tasks = list(self._members)
        self._say(f"Restarting {', '.join(tasks)}.")
        self._sync()
        self._start(replicas, tasks)

    def _conclude(self, replicas: Replicas, end: AttemptEnd) -> None:
        if end.cause == "failed":
            raise JobFailed(self._exited(end.replica, end.status))
        if end.cause == "timeout":
            raise JobFailed(
                f"The job has run for its timeout of {self._timeout:g} s and was stopped."
            )
        if end.cause == "completed":
            self._end_with_primary(replicas)

    def _end_with_primary(self, replicas: Replicas) -> None:
        """Stop the others; what was still running is named, except what never ends by itself."""
        tasks = [task for task in self._members if replicas.status(task) is None]
        replicas.stop(tasks)
        serving = {Role.SERVERS, Role.REDUCERS}
        if any(member.role is Role.SERVERS for member in self._members.values()):
            serving.add(Role.WORKERS)
        for task in tasks:
            if self._members[task].role not in serving and replicas.status(task):
                self._say(
                    f"The replica {task} was still running when the primary replica ended, "
                    "and was stopped: what it had not yet printed or saved is lost.",
                    "e",
                )

    def _exited(self, task: str, status: int) -> str:
        _, project, _, _, _, number = self.name.split("/")
        query = f'resource.type="ml_job"\nresource.labels.job_id="{number}"'
        return (
            f"The replica {task} exited with a non-zero status of {status}. To find out more "
            "about why your job exited please check the logs: "
            f"https://console.cloud.google.com/logs/viewer?project={project}"
            f"&resource=ml_job%2Fjob_id%2F{number}&advancedFilter={quote(query, safe='')}"
        )

    def _sync(self) -> None:
        for bucket in self._buckets.mounted():
            bucket.sync()

    def _say(self, text: str, stream: str = "o") -> None:
        self._entries.write(self.name, SERVICE, text, stream)
