"""SageMaker's stand-in, as a program that uses boto3 sees it."""

from __future__ import annotations

import base64
import contextlib
import itertools
import time
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from distrain_nb.places.sagemaker.stand_in import SYNTAX as SAGEMAKER
from distrain_nb.places.sagemaker.stand_in.jobs import TrainingJobService
from distrain_nb.places.sagemaker.stand_in.protocol import serve
from distrain_nb.places.sagemaker.stand_in.services import SageMakerStandIn, stand_in
from distrain_nb.places.sagemaker.stand_in.tuning_jobs import TuningJobService
from distrain_nb.rehearsal.faults import Faults
from tests.image.services.bases import BaseImage

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "my-bucket"
ROLE = "arn:aws:iam::123456789012:role/Training"
REGION = "eu-west-1"
GROUP = "/aws/sagemaker/TrainingJobs"

# An argument has at most 256 characters and a hyperparameter 2500, without line breaks.
_RUN = (
    "import base64,json,zlib;p=json.load(open('/opt/ml/input/config/hyperparameters.json'));"
    "exec(zlib.decompress(base64.b64decode(p['program'])))"
)
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Aws:
    """The stand-in at its endpoints, with a base image that has Python."""

    endpoints: dict[str, str]
    base: str

    def client(self, name: str, **settings: Any) -> Any:
        return boto3.client(
            name,
            region_name=REGION,
            endpoint_url=self.endpoints[name],
            aws_access_key_id="rehearsal",
            aws_secret_access_key="rehearsal",
            # what is wrong is to be told by the service
            config=Config(parameter_validation=False, **settings),
        )

    def impatient(self, name: str) -> Any:
        """A client that doesn't try again."""
        return self.client(name, retries={"total_max_attempts": 1})

    @property
    def jobs(self) -> Any:
        return self.client("sagemaker")

    def put(self, **objects: bytes) -> None:
        s3 = self.client("s3")
        for name, data in objects.items():
            key = name.replace("__", "/")
            # for all to read, since hosts of tests have no boto3 to sign requests with
            s3.put_object(Bucket=BUCKET, Key=key, Body=data, ACL="public-read")

    def read(self, key: str) -> bytes:
        return bytes(self.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read())

    def submit(self, program: str, hosts: int = 1, **more: Any) -> str:
        asked = request(self.base, program, hosts, **more)
        self.jobs.create_training_job(**asked)
        return str(asked["TrainingJobName"])

    def describe(self, name: str) -> dict[str, Any]:
        return dict(self.jobs.describe_training_job(TrainingJobName=name))

    def wait(self, name: str) -> dict[str, Any]:
        while (told := self.describe(name))["TrainingJobStatus"] in ("InProgress", "Stopping"):
            time.sleep(0.1)
        return told

    def said(self, name: str, host: str = "algo-") -> list[str]:
        return [event["message"] for event in self.events(name, host)]

    def events(self, name: str, host: str = "algo-") -> list[dict[str, Any]]:
        pages = self.client("logs").get_paginator("filter_log_events")
        found = pages.paginate(logGroupName=GROUP, logStreamNamePrefix=f"{name}/{host}")
        events = (event for page in found for event in page["events"])
        # moto gives those of other streams too
        return [x for x in events if x["logStreamName"].startswith(f"{name}/{host}")]

    def wait_for(self, name: str, text: str) -> None:
        while not self._prints(name, text):
            assert self.describe(name)["TrainingJobStatus"] == "InProgress", self.said(name)
            time.sleep(0.1)

    def _prints(self, name: str, text: str) -> bool:
        logs = self.client("logs")
        with contextlib.suppress(logs.exceptions.ResourceNotFoundException):
            return text in self.said(name)
        return False

    def told(self, job: dict[str, Any]) -> str:
        """What a failing test shows of a job."""
        return "\n".join((job.get("FailureReason", ""), *self.said(job["TrainingJobName"])))


def request(image: str, program: str, hosts: int = 1, **more: Any) -> dict[str, Any]:
    packed = base64.b64encode(zlib.compress(program.encode())).decode()
    asked = {
        "TrainingJobName": f"job-{next(_numbers)}",
        "RoleArn": ROLE,
        "AlgorithmSpecification": {
            "TrainingImage": image,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python3", "-uc", _RUN],
            "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
        },
        "HyperParameters": {"program": packed},
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out"},
        "ResourceConfig": {
            "InstanceType": "ml.p3.2xlarge",
            "InstanceCount": hosts,
            "VolumeSizeInGB": 1,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    }
    return {**asked, **more}


def channel(name: str, uri: str, kind: str = "S3Prefix", **more: Any) -> dict[str, Any]:
    source = {"S3DataType": kind, "S3Uri": f"s3://{BUCKET}/{uri}", **more.pop("source", {})}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}, **more}


@contextlib.contextmanager
def standing_in(small: BaseImage, faults: str = "") -> Iterator[tuple[SageMakerStandIn, Aws]]:
    with stand_in(Faults.parse(faults, SAGEMAKER), [BUCKET]) as running:
        base = f"{running.endpoints['registry']}/bases/python:3.11"
        small.push(base)
        yield running, Aws(dict(running.endpoints), base)


@contextlib.contextmanager
def troubled(running: SageMakerStandIn, aws: Aws, faults: str = "") -> Iterator[Aws]:
    """The same machine and buckets under an API where something goes wrong, and little patience."""
    chosen = Faults.parse(faults, SAGEMAKER)
    jobs = TrainingJobService(replace(running.context, faults=chosen, grace=1.0))
    tuning = TuningJobService(jobs)
    with serve({**jobs.operations(), **tuning.operations()}) as url:
        yield replace(aws, endpoints={**aws.endpoints, "sagemaker": url})
        tuning.close()
        jobs.close()
