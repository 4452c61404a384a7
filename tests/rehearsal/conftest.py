"""The stand-in under a private Docker daemon, and the real client libraries that talk to it."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from grpc import insecure_channel

from distrain_nb import rehearsal
from distrain_nb.image import Recipe, build
from distrain_nb.program import Cell, Notebook, capture
from tests.image.services.bases import BaseImage, small_base
from tests.image.services.docker import Docker, docker_daemon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.cloud.aiplatform_v1 import JobServiceClient, PipelineServiceClient, types
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.storage import Bucket

    from distrain_nb.program import Program

PARENT = "projects/my-project/locations/us-central1"
BUCKET = "my-bucket"
OVER = ("SUCCEEDED", "FAILED", "CANCELLED")


@dataclass(frozen=True)
class Cloud:
    """The stand-in, as a program that uses Google's client libraries sees it.

    Each imports its library itself: a process that runs no rehearsal does without them.
    """

    endpoints: dict[str, str]
    base: str

    @property
    def jobs(self) -> JobServiceClient:
        from google.cloud.aiplatform_v1 import JobServiceClient
        from google.cloud.aiplatform_v1.services.job_service import transports

        channel = insecure_channel(self.endpoints["aiplatform"])
        return JobServiceClient(transport=transports.JobServiceGrpcTransport(channel=channel))

    @property
    def pipelines(self) -> PipelineServiceClient:
        from google.cloud.aiplatform_v1 import PipelineServiceClient
        from google.cloud.aiplatform_v1.services.pipeline_service import transports

        transport = transports.PipelineServiceGrpcTransport(
            channel=insecure_channel(self.endpoints["aiplatform"])
        )
        return PipelineServiceClient(transport=transport)

    @property
    def logging(self) -> LoggingServiceV2Client:
        from google.cloud.logging_v2.services import logging_service_v2
        from google.cloud.logging_v2.services.logging_service_v2 import transports

        channel = insecure_channel(self.endpoints["logging"])
        return logging_service_v2.LoggingServiceV2Client(
            transport=transports.LoggingServiceV2GrpcTransport(channel=channel)
        )

    @property
    def bucket(self) -> Bucket:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        options = {"api_endpoint": self.endpoints["storage"]}
        credentials = AnonymousCredentials()
        client = storage.Client("my-project", credentials=credentials, client_options=options)
        return client.bucket(BUCKET)

    def image(self, source: str, name: str = "program", *, look_inside: bool = False) -> str:
        """An image of a program, built and pushed as a job's is."""
        target = f"{self.endpoints['registry']}/rehearsal/{name}:1"
        return build(program_of(source), Recipe(self.base, target, look_inside=look_inside)).uri

    def submit(self, *pools: dict[str, Any], **spec: Any) -> types.CustomJob:
        spec = {"base_output_directory": {"output_uri_prefix": f"gs://{BUCKET}/out"}, **spec}
        job = {"display_name": "a job", "job_spec": {"worker_pool_specs": pools, **spec}}
        return self.jobs.create_custom_job(parent=PARENT, custom_job=job)

    def wait(self, name: str) -> types.CustomJob:
        while True:
            job = self.jobs.get_custom_job(name=name)
            if job.state.name.removeprefix("JOB_STATE_") in OVER:
                return job
            time.sleep(0.1)

    def log(self, job: str) -> list[tuple[str, str]]:
        """Task and text of every entry of a job."""
        request = {
            "resource_names": ["projects/my-project"],
            "filter": f'resource.type="ml_job" AND resource.labels.job_id="{job.split("/")[-1]}"',
            "order_by": "timestamp asc",
            "page_size": 1000,
        }
        return [
            (entry.resource.labels["task_name"], entry.json_payload["message"])
            for entry in self.logging.list_log_entries(request)
        ]

    def told(self, job: types.CustomJob) -> str:
        """What a failing test shows of a job."""
        lines = (f"{task} {text}" for task, text in self.log(job.name))
        return "\n".join((job.error.message, *lines))

    def said(self, job: str, task: str) -> list[str]:
        return [text for who, text in self.log(job) if who == task]

    def wait_for(self, job: str, task: str, text: str) -> None:
        while not any(text in line for line in self.said(job, task)):
            time.sleep(0.1)


def program_of(source: str) -> Program:
    return capture(Cell("Cell In[1]", source), 1, Notebook({}, (), Path.cwd()))


def pool(image: str, replicas: int = 1, **container: Any) -> dict[str, Any]:
    return {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": replicas,
        "container_spec": {"image_uri": image, **container},
    }


SECRET = "correct horse\nbattery staple"
TOLD = "import os, time\nprint(repr(os.environ['MINE']), os.environ['HOME'])\ntime.sleep(600)"


def assert_unlisted(cloud: Cloud) -> None:
    """A replica has its variables, and no command line of this machine has their values."""
    given = [{"name": "MINE", "value": SECRET}, {"name": "HOME", "value": "/tmp"}]
    name = cloud.submit(pool(cloud.image(TOLD), env=given)).name
    cloud.wait_for(name, "workerpool0-0", f"{SECRET!r} /tmp")
    listed = [path for path in Path("/proc").glob("[0-9]*/cmdline") if SECRET in _text(path)]
    cloud.jobs.cancel_custom_job(name=name)
    assert cloud.wait(name).state.name == "JOB_STATE_CANCELLED"
    assert not listed


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended
        return ""


@pytest.fixture(scope="session")
def small() -> BaseImage:
    return small_base()


@pytest.fixture(scope="session")
def docker() -> Iterator[Docker]:
    with docker_daemon() as daemon:
        yield daemon


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Images and layers are kept between the tests of a session, and from nobody else."""
    patch = pytest.MonkeyPatch()
    patch.setenv("DISTRAIN_HOME", str(tmp_path_factory.mktemp("home")))
    patch.setenv("DOCKER_CONFIG", str(tmp_path_factory.mktemp("docker")))
    yield
    patch.undo()


@contextlib.contextmanager
def cloud_with(small: BaseImage, faults: str = "") -> Iterator[Cloud]:
    with rehearsal.vertex(faults, [BUCKET]) as endpoints:
        base = f"{endpoints['registry']}/bases/python:3.11"
        small.push(base)
        yield Cloud(dict(endpoints), base)


@pytest.fixture(scope="session")
def docker_host(docker: Docker, home: None) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("DOCKER_HOST", f"unix://{docker.socket}")
    yield
    patch.undo()


@pytest.fixture
def no_docker(home: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers where the container engine should be."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'nobody'}")


@pytest.fixture(scope="session")
def cloud(docker_host: None, small: BaseImage) -> Iterator[Cloud]:
    """The stand-in under Docker, with nothing going wrong."""
    with cloud_with(small) as running:
        yield running
