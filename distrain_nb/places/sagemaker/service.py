"""A job on SageMaker, from its code to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import IO, TYPE_CHECKING

from distrain_nb.backends.remote import variables
from distrain_nb.backends.remote.cloud import CloudService
from distrain_nb.backends.remote.sdk import NoOutput
from distrain_nb.backends.remote.submission import JsonT, fill_placeholders
from distrain_nb.places.sagemaker.client import client, plain_words
from distrain_nb.places.sagemaker.delivery import write_archive
from distrain_nb.places.sagemaker.instances import Instances
from distrain_nb.places.sagemaker.jobs import TrainingJobs
from distrain_nb.places.sagemaker.logs import GROUP, JobLog
from distrain_nb.places.sagemaker.metrics import MetricDefinitions
from distrain_nb.places.sagemaker.names import ACCOUNT, IMAGE, SOURCE
from distrain_nb.places.sagemaker.plan import SageMakerSpec
from distrain_nb.places.sagemaker.regions import partition_of
from distrain_nb.places.sagemaker.request import read
from distrain_nb.places.sagemaker.resources import make_bucket, make_repository
from distrain_nb.places.sagemaker.run_output import RunOutput
from distrain_nb.places.sagemaker.storage import S3Data
from distrain_nb.types import Json, JsonObject

if TYPE_CHECKING:
    from botocore.client import BaseClient

    from distrain_nb.backends.remote.delivery import ProgramFolder
    from distrain_nb.backends.remote.service import Cursor, LogEntry, Observed, OutputFolder


@dataclass(frozen=True)
class SageMakerService(CloudService[SageMakerSpec]):
    """A job on SageMaker, or on a rehearsal's stand-in."""

    @cached_property
    def output(self) -> OutputFolder:
        """The run's folder in its bucket."""
        return RunOutput(self._s3, self._bucket, self._folder)

    def create(self, request: JsonObject) -> str:
        """Send the request and give the job's name. Raises DistrainError, Unanswered if the job
        may be there all the same."""
        return self._jobs.create(self._completed(request))

    def find(self, request: JsonObject) -> str:
        """Return the run's job, empty if there is none. Raises DistrainError."""
        return self._jobs.find(self._completed(request))

    def _completed(self, request: JsonObject) -> dict[str, Json]:
        """Return the request with the values of variables."""
        environment = variables.restored_variables(
            read(request)["Environment"], self.spec.variables
        )
        return {**request, "Environment": environment}

    def observe(self, job: str) -> Observed:
        """Return how the job is doing. Raises DistrainError."""
        return replace(self._jobs.observe(job), processes=self._instances.processes(job))

    def log(self, job: str, cursor: Cursor, *, last: bool) -> tuple[Sequence[LogEntry], Cursor]:
        """Return the lines since the cursor, with the metrics that are in them. Raises
        DistrainError if CloudWatch can't be reached."""
        hosts = self._instances.count(job)
        if hosts is None and not last:
            return (), cursor  # nobody knows yet whose the lines are
        with plain_words("read the job's log"):
            log = JobLog(self._logs, job, hosts or 1)
            entries, after = log.read(cursor, self._lateness, last=last)
        points, after = self._metrics.read(entries, cursor, after)
        reported, instances = self._instances.report(job, cursor)
        return (*reported, *points), {**after, **instances}

    def cancel(self, job: str) -> None:
        """Ask for the job to be stopped. Raises DistrainError."""
        self._jobs.stop(job)

    def links(self, job: str) -> Mapping[str, str]:
        """Return the job, its log and its folders in the console; none where it isn't public."""
        region, console = self.spec.region, self._console
        if not console:
            return {}
        folder = f"{console}/s3/buckets/{self._bucket}?region={region}&prefix={self._folder}"
        group = GROUP.replace("/", "$252F")
        streams = f"$3FlogStreamNameFilter$3D{job}$252F"
        return {
            "job": f"{console}/sagemaker/home?region={region}#/jobs/{job}",
            "log": f"{console}/cloudwatch/home?region={region}#logsV2:log-groups/log-group/{group}"
            f"{streams}",
            "model": f"{folder}output/",
            "checkpoints": f"{folder}checkpoints/",
            "TensorBoard": f"{folder}tensorboard-output/",
        }

    @property
    def _console(self) -> str:
        """The console of the region; empty where it isn't public."""
        domain = partition_of(self.spec.region).console
        return f"https://{self.spec.region}.{domain}" if domain else ""

    @property
    def _folder(self) -> str:
        return f"{self.spec.below}/{self.spec.run}/"

    @cached_property
    def _data(self) -> S3Data:
        return S3Data(self._s3, self._bucket)

    def _prepare(self) -> None:
        if ACCOUNT in self.spec.bucket:
            make_bucket(self._s3, self._bucket, self.spec.region, self._account)

    def _staged(self, image: str) -> JsonObject:
        return self._filled(self.spec.request, {IMAGE: image})

    def _write_archive(self, program: ProgramFolder, file: IO[bytes]) -> str:
        write_archive(program, self.spec.framework, file)
        return SOURCE

    @cached_property
    def _account(self) -> str:
        sts = client("sts", self.spec.region, self.endpoints)
        with plain_words("ask AWS for the account"):
            return str(sts.get_caller_identity()["Account"])

    @cached_property
    def _bucket(self) -> str:
        return self._filled(self.spec.bucket, {})

    def _filled(self, value: JsonT, values: Mapping[str, str]) -> JsonT:
        """Fill in the values, and the account's number, which is asked for only if needed."""
        filled = fill_placeholders(value, values)
        return (
            fill_placeholders(filled, {ACCOUNT: self._account})
            if ACCOUNT in str(filled)
            else filled
        )

    def _put(self, name: str, file: IO[bytes]) -> None:
        key = self._folder + name
        with plain_words(f"write s3://{self._bucket}/{key}"):
            self._s3.put_object(Bucket=self._bucket, Key=key, Body=file)

    def _repository(self) -> str:
        if "registry" in self.endpoints:
            return f"{self.endpoints['registry']}/rehearsal/distrain"
        home = self._filled(self.spec.repository, {})
        if ACCOUNT in self.spec.repository:
            make_repository(self._client("ecr"), home.partition("/")[2])
        return home

    @cached_property
    def _metrics(self) -> MetricDefinitions:
        algorithm = read(self.spec.request)["AlgorithmSpecification"]
        return MetricDefinitions.of(algorithm.get("MetricDefinitions", ()))

    @cached_property
    def _instances(self) -> Instances:
        return Instances(read(self.spec.request), self._jobs.taken)

    @cached_property
    def _jobs(self) -> TrainingJobs:
        return TrainingJobs(self._client("sagemaker"))

    @cached_property
    def _s3(self) -> BaseClient:
        return self._client("s3")

    @cached_property
    def _logs(self) -> BaseClient:
        return self._client("logs")

    def _client(self, name: str) -> BaseClient:
        with plain_words("log in to AWS"):
            return client(name, self.spec.region, self.endpoints)


class ForeignService(SageMakerService):
    """A job that the SDK has started: its state, its log, its metric definitions, its end."""

    @cached_property
    def output(self) -> NoOutput:
        """Empty: only our worker writes event files and results where we look for them."""
        return NoOutput()

    def log(self, job: str, cursor: Cursor, *, last: bool) -> tuple[Sequence[LogEntry], Cursor]:
        """Return the lines since the cursor, with the metrics that the job's definitions find in
        them."""
        return self._described.log(job, cursor, last=last)

    @cached_property
    def _described(self) -> SageMakerService:
        """The service with the request that it says the job had."""
        with plain_words("ask what the job runs on"):
            asked = self._client("sagemaker").describe_training_job(TrainingJobName=self.spec.job)
        return SageMakerService(replace(self.spec, request=asked), self.endpoints)

    def links(self, job: str) -> Mapping[str, str]:
        """Return the job and its log in the console."""
        return {name: link for name, link in super().links(job).items() if name in ("job", "log")}
