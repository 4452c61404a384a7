"""One training job on its way: its hosts run, and what becomes of them becomes its status."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from contextlib import closing
from dataclasses import replace
from itertools import count

from botocore.exceptions import ClientError

from distrain_nb.errors import DistrainError
from distrain_nb.layout.catalog import current
from distrain_nb.places.sagemaker.stand_in.attempt import Attempt, JobContext, TrainingJob
from distrain_nb.places.sagemaker.stand_in.checks import with_available_instances
from distrain_nb.places.sagemaker.stand_in.hosts import hosts
from distrain_nb.rehearsal.engine import GRACE_S
from distrain_nb.rehearsal.faults import JobFailed
from distrain_nb.rehearsal.job_folder import OutsideJobFolder

_log = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.2
_SAVE_EVERY_S = 1.0
_MAX_RUNTIME_S = 86400
_KILLED = 137
_INTERNAL = "InternalServerError: We encountered an internal error. Please try again."


class TrainingJobExecution:
    """Takes a job from its start to its end, on a thread of its own."""

    def __init__(self, job: TrainingJob, context: JobContext) -> None:
        self._job = job
        self._context = context
        self._record = job.record
        self._stopped = threading.Event()
        self._grace = context.grace
        self._created = time.monotonic()
        self._trained = 0.0
        self._interruptions = list(context.faults.preemptions)
        steps = context.steps.copy()
        self._thread = threading.Thread(
            target=steps.run, args=(self._run,), name=job.name, daemon=True
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Have it stopped soon."""
        self._stopped.set()

    def abandon(self) -> None:
        """Have it stopped at once."""
        self._grace = 0.0
        self._stopped.set()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self._allocate()
            self._note_omissions()
            end = self._attempts()
        except JobFailed as error:
            reason = str(error)
        except Exception as error:  # whatever it was, the job must not seem to run for ever
            _log.exception("the job %s can't go on", self._job.name)
            reason = f"InternalServerError: {error!r}"
        else:
            self._context.streams.send()
            self._record.enter(end)
            return
        self._context.streams.send()
        self._record.fail(reason)

    def _allocate(self) -> None:
        """Take the job's instances. Raises JobFailed where there is no capacity for them."""
        chosen = with_available_instances(self._job.request, self._context.faults.full)
        resources = chosen["ResourceConfig"]
        if chosen is not self._job.request:
            self._record.select(resources["InstanceType"], resources["InstanceCount"])
        self._job = replace(self._job, request=chosen)

    def _attempts(self) -> str:
        """Start the hosts until no instance is taken away; gives the job's last status."""
        retries = self._job.request.get("RetryStrategy", {}).get("MaximumRetryAttempts", 0)
        for number in count():
            end = self._attempt(number)
            if end != "Interrupted":
                return end
            if self._job.request.get("EnableManagedSpotTraining"):
                self._enter("Interrupted")
            elif retries:
                retries -= 1
                self._enter("Restarting")
            else:
                raise JobFailed(_INTERNAL)
        raise AssertionError

    def _attempt(self, number: int) -> str:
        self._enter("Starting", "Preparing the instances for training")
        self._pull()
        names = [host.name for host in hosts(self._job.request)]
        suffix = hashlib.sha256(f"{self._job.arn}{number}".encode()).hexdigest()[:10]
        try:
            network = self._context.engine.network(f"distrain-{suffix}", names, apart=True)
        except DistrainError as error:
            raise JobFailed(f"InternalServerError: {error}") from None
        with closing(Attempt(self._context, self._job, number, network)) as attempt:
            self._enter("Downloading")
            try:
                attempt.prepare()
            except ClientError as error:
                raise JobFailed(
                    f"ClientError: Data download failed:{_refusal_text(error)}"
                ) from None
            except OutsideJobFolder as error:
                raise JobFailed(f"ClientError: Data download failed:{error}") from None
            if self._stopped.is_set():
                return "Stopped"
            self._enter("Training")
            attempt.start()
            end = self._watch(attempt)
            if end != "Interrupted":
                self._upload(attempt)
            return end

    def _enter(self, phase: str, message: str = "") -> None:
        if not self._stopped.is_set():
            self._record.enter(phase, message)

    def _note_omissions(self) -> None:
        """Write into a stream of its own how hosts run in a rehearsal, and what of theirs isn't
        here."""
        notes = [f"This is a rehearsal on one machine. {self._context.engine.note}"]
        for instance in dict.fromkeys(host.instance for host in hosts(self._job.request)):
            row = current().instances.get(instance)
            if row is not None and (row.gpu_count or row.neuron_count):
                hardware = f"{row.gpu_count} x {row.gpu_name}"
                if not row.gpu_count:
                    hardware = f"{row.neuron_count} x {row.neuron_name}"
                notes.append(
                    f"Each {instance} runs without its {hardware}: a rehearsal has no accelerators."
                )
        if (self._job.request.get("InfraCheckConfig") or {}).get("EnableInfraCheck"):
            notes.append("No instance is tested first: a rehearsal has no health check.")
        files = [x for x in self._job.request.get("InputDataConfig", ()) if _of_file_system(x)]
        notes += [
            f"Channel {x['ChannelName']} is empty: a rehearsal has no file systems." for x in files
        ]
        streams = self._context.streams
        stream = streams.open(self._job.region, self._job.notes.name)
        for note in notes:
            streams.write(stream, note)

    def _pull(self) -> None:
        try:
            if self._context.faults.permission.startswith("ecr:"):
                raise DistrainError(f"The role lacks {self._context.faults.permission}.")
            self._context.engine.pull(self._job.request["AlgorithmSpecification"]["TrainingImage"])
        except DistrainError as error:
            raise JobFailed(
                "ClientError: Cannot pull algorithm container. Either the image does not exist "
                f"or its permissions are incorrect. {error}"
            ) from None

    def _watch(self, attempt: Attempt) -> str:
        """Watch until all hosts have ended, one failed, or the job has to stop; return which."""
        began = saved = time.monotonic()
        while True:
            stopped = self._stopped.wait(_LOOK_EVERY_S)
            now = time.monotonic()
            if now - saved >= _SAVE_EVERY_S:
                self._save(attempt)
                saved = time.monotonic()
            if attempt.trouble():
                raise JobFailed(f"ClientError: Data download failed:{attempt.trouble()}")
            end = "Stopped" if stopped else self._over(attempt, now - began)
            if end:
                attempt.stop(0.0 if end == "Interrupted" else self._grace)
                self._save(attempt)
                self._trained += now - began
                return end

    def _over(self, attempt: Attempt, ran: float) -> str:
        """Return how the job ends now; empty while it goes on."""
        statuses = attempt.statuses()
        for host, status in statuses.items():
            if status:
                self._fail(attempt, host, status)
        if all(status == 0 for status in statuses.values()):
            return "Completed"
        for loss in self._interruptions:
            if loss.text in attempt.printed if loss.text else ran >= loss.seconds:
                self._interruptions.remove(loss)
                if loss.replica not in statuses:
                    raise JobFailed(f"spot={loss.replica}: the hosts are {', '.join(statuses)}.")
                return "Interrupted"
        condition = self._job.request.get("StoppingCondition") or {}
        if self._trained + ran >= condition.get("MaxRuntimeInSeconds", _MAX_RUNTIME_S):
            return "MaxRuntimeExceeded"
        waits = condition.get("MaxWaitTimeInSeconds")
        if waits and time.monotonic() - self._created >= waits:
            return "MaxWaitTimeExceeded"
        return ""

    def _fail(self, attempt: Attempt, host: str, status: int) -> None:
        attempt.stop(min(self._grace, GRACE_S))
        self._save(attempt)
        reason = attempt.failure(host)
        if status == _KILLED and not reason:
            raise JobFailed(
                "ClientError: Please use an instance type with more memory, or reduce the size "
                "of training data processed on an instance."
            )
        raise JobFailed(f"AlgorithmError: {reason}, exit code: {status}")

    def _save(self, attempt: Attempt) -> None:
        try:
            attempt.save()
        except ClientError as error:
            raise JobFailed(f"ClientError: Artifact upload failed:{_refusal_text(error)}") from None

    def _upload(self, attempt: Attempt) -> None:
        self._record.enter("Uploading")
        try:
            self._record.keep_model(attempt.upload())
        except ClientError as error:
            raise JobFailed(f"ClientError: Artifact upload failed:{_refusal_text(error)}") from None


def _refusal_text(refused: ClientError) -> str:
    """Describe S3's error in the service's words."""
    error = refused.response["Error"]
    action = f"{refused.operation_name} ({error['Code']}: {error['Message']})"
    return f"S3 refused {action}. Please ensure that the job's role may do this."


def _of_file_system(channel: dict[str, object]) -> bool:
    return "FileSystemDataSource" in channel["DataSource"]  # type: ignore[operator]
