"""One training job on its way: its hosts run, and what becomes of them becomes its status."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count

from botocore.exceptions import ClientError

from distrain_nb.errors import DistrainError
from distrain_nb.layout.catalog import current
from distrain_nb.places.sagemaker.stand_in.attempt import Attempt, TrainingJobContext
from distrain_nb.places.sagemaker.stand_in.channels import channels
from distrain_nb.places.sagemaker.stand_in.hosts import hosts
from distrain_nb.places.sagemaker.stand_in.instances import with_available_instances
from distrain_nb.places.sagemaker.stand_in.refusals import INTERNAL
from distrain_nb.places.sagemaker.stand_in.training_job import TrainingJob
from distrain_nb.rehearsal.engine import GRACE_S
from distrain_nb.rehearsal.failures import JobFailed
from distrain_nb.rehearsal.job_folder import OutsideJobFolder
from distrain_nb.rehearsal.job_thread import JobThread
from distrain_nb.rehearsal.notes import engine_note, without
from distrain_nb.rehearsal.replicas import AttemptEnd

_SAVE_EVERY_S = 1.0
_MAX_RUNTIME_S = 86400
_KILLED = 137
_STATUSES = {"completed": "Completed", "stopped": "Stopped"}


class TrainingJobExecution(JobThread):
    """Takes a job from its start to its end."""

    internal = INTERNAL

    def __init__(self, job: TrainingJob, context: TrainingJobContext) -> None:
        super().__init__(job.name, context.steps.copy())
        self.job = job
        self._context = context
        self._grace = context.grace
        self._created = time.monotonic()
        self._saved = 0.0
        self._trained = 0.0
        self._losses = list(context.faults.preemptions)

    def cancel(self) -> str:
        """Have it stopped soon if it is in progress. Returns the status that it had."""
        status = self.job.record.stop()
        if status == "InProgress":
            self.cancelled.set()
        return status

    def abandon(self) -> None:
        """Have it stopped at once."""
        self._grace = 0.0
        self.cancelled.set()

    def run(self) -> None:
        self._allocate()
        self._note_omissions()
        end = self._attempts()
        self._context.streams.send()
        self.job.record.enter(end.limit or _STATUSES[end.cause])

    def fail(self, reason: str) -> None:
        self._context.streams.send()
        self.job.record.fail(reason)

    def _allocate(self) -> None:
        """Take the job's instances. Raises JobFailed where there is no capacity for them."""
        chosen = with_available_instances(self.job.request, self._context.faults.full)
        resources = chosen["ResourceConfig"]
        if chosen is not self.job.request:
            self.job.record.select(resources["InstanceType"], resources["InstanceCount"])
        self.job = replace(self.job, request=chosen)

    def _attempts(self) -> AttemptEnd:
        """Start the hosts until no instance is taken away."""
        retries = self.job.request.get("RetryStrategy", {}).get("MaximumRetryAttempts", 0)
        for number in count():
            end = self._attempt(number)
            if end.cause != "lost":
                return end
            if self.job.request.get("EnableManagedSpotTraining"):
                self._enter("Interrupted")
            elif retries:
                retries -= 1
                self._enter("Restarting")
            else:
                raise JobFailed(f"{INTERNAL}: We encountered an internal error. Please try again.")
        raise AssertionError

    def _attempt(self, number: int) -> AttemptEnd:
        self._enter("Starting", "Preparing the instances for training")
        self._pull()
        names = [host.name for host in hosts(self.job.request)]
        suffix = hashlib.sha256(f"{self.job.arn}{number}".encode()).hexdigest()[:10]
        network = self._context.engine.network(f"distrain-{suffix}", names, apart=True)
        attempt = Attempt(self._context, self.job, number, network, self._losses)
        with closing(attempt):
            self._enter("Downloading")
            with _refusals("Data download"):
                attempt.prepare()
            if self.cancelled.is_set():
                return AttemptEnd("stopped")
            self._enter("Training")
            attempt.start()
            end = self._watch(attempt)
            if end.cause == "failed":
                raise JobFailed(_failure(end.status, attempt.failure(end.replica)))
            if end.cause != "lost":
                self._upload(attempt)
            return end

    def _enter(self, phase: str, message: str = "") -> None:
        if not self.cancelled.is_set():
            self.job.record.enter(phase, message)

    def _note_omissions(self) -> None:
        """Write into a stream of its own how hosts run in a rehearsal, and what of theirs isn't
        here."""
        notes = [engine_note(self._context.engine)]
        for instance in dict.fromkeys(host.instance for host in hosts(self.job.request)):
            row = current().instances.get(instance)
            if row is not None and (row.gpu_count or row.neuron_count):
                hardware = f"{row.gpu_count} x {row.gpu_name}"
                if not row.gpu_count:
                    hardware = f"{row.neuron_count} x {row.neuron_name}"
                notes.append(without(f"Each {instance}", hardware))
        if (self.job.request.get("InfraCheckConfig") or {}).get("EnableInfraCheck"):
            notes.append("No instance is tested first: a rehearsal has no health check.")
        files = [channel.name for channel in channels(self.job.request) if not channel.source]
        notes += [f"Channel {name} is empty: a rehearsal has no file systems." for name in files]
        streams = self._context.streams
        stream = streams.open(self.job.region, self.job.notes.name)
        for note in notes:
            streams.write(stream, note)

    def _pull(self) -> None:
        try:
            if self._context.faults.permission.startswith("ecr:"):
                raise DistrainError(f"The role lacks {self._context.faults.permission}.")
            self._context.engine.pull(self.job.request["AlgorithmSpecification"]["TrainingImage"])
        except DistrainError as error:
            raise JobFailed(
                "ClientError: Cannot pull algorithm container. Either the image does not exist "
                f"or its permissions are incorrect. {error}"
            ) from None

    def _watch(self, attempt: Attempt) -> AttemptEnd:
        """Return when all hosts have ended, one failed or is lost, or the job has to stop; they are
        stopped, and saved."""
        condition = self.job.request.get("StoppingCondition") or {}
        longest = condition.get("MaxRuntimeInSeconds", _MAX_RUNTIME_S)
        limits = {"MaxRuntimeExceeded": longest - self._trained}
        waits = condition.get("MaxWaitTimeInSeconds")
        if waits:
            limits["MaxWaitTimeExceeded"] = self._created + waits - time.monotonic()
        names = [host.name for host in hosts(self.job.request)]
        end = attempt.replicas.watch(names, limits, self.cancelled, partial(self._look, attempt))
        self._trained += attempt.replicas.ran
        graces = {"lost": 0.0, "failed": min(self._grace, GRACE_S)}
        attempt.replicas.stop(grace=graces.get(end.cause, self._grace))
        self._save(attempt)
        return end

    def _look(self, attempt: Attempt) -> None:
        if time.monotonic() - self._saved >= _SAVE_EVERY_S:
            self._save(attempt)
            self._saved = time.monotonic()
        if attempt.trouble():
            raise JobFailed(f"ClientError: Data download failed:{attempt.trouble()}")

    def _save(self, attempt: Attempt) -> None:
        with _refusals("Artifact upload"):
            attempt.save()

    def _upload(self, attempt: Attempt) -> None:
        self.job.record.enter("Uploading")
        with _refusals("Artifact upload"):
            self.job.record.keep_model(attempt.upload())


@contextmanager
def _refusals(step: str) -> Iterator[None]:
    """Fail the job where S3 refuses what a step needs, or a key is no file's name."""
    try:
        yield
    except ClientError as error:
        refusal = error.response["Error"]
        raise JobFailed(
            f"ClientError: {step} failed:S3 refused {error.operation_name} ({refusal['Code']}: "
            f"{refusal['Message']}). Please ensure that the job's role may do this."
        ) from None
    except OutsideJobFolder as error:
        raise JobFailed(f"ClientError: {step} failed:{error}") from None


def _failure(status: int, reason: str) -> str:
    """Describe a host's failure in the service's words; `reason` is what it has written itself."""
    if status == _KILLED and not reason:
        return (
            "ClientError: Please use an instance type with more memory, or reduce the size "
            "of training data processed on an instance."
        )
    return f"AlgorithmError: {reason}, exit code: {status}"
