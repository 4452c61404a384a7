"""A job's code on its way to S3, what comes back from there, and one job for one request."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.api import program
from distrain_nb.backends.remote.service import Stored
from distrain_nb.errors import DistrainError
from distrain_nb.places.sagemaker.backend import SageMakerBackend
from distrain_nb.places.sagemaker.client import client
from distrain_nb.places.sagemaker.resources import make_repository
from distrain_nb.places.sagemaker.run_output import RunOutput
from distrain_nb.places.sagemaker.service import SageMakerService
from distrain_nb.places.sagemaker.stand_in import SYNTAX as SAGEMAKER
from distrain_nb.places.sagemaker.stand_in.services import SageMakerStandIn, stand_in
from distrain_nb.rehearsal.faults import Faults
from distrain_nb.worker.files.status import State
from tests.rehearsal.training_jobs import Aws, troubled
from tests.sagemaker.jobs import laid, planned

pytestmark = pytest.mark.slow

PREFIX = "distrain/run-1/"


@pytest.fixture
def s3(aws: Mapping[str, str]) -> Any:
    made = client("s3", "us-east-1", aws)
    made.create_bucket(Bucket="my-bucket")
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program("print('here')\n").write(tmp_path / "program")
    return tmp_path / "program"


def test_files_go_to_the_bucket_that_nobody_named(aws: Mapping[str, str], folder: Path) -> None:
    options = {"bucket": "", "role": "training"}
    spec = planned(laid(image="mine:1"), options=options).spec()
    service = SageMakerService(spec, aws)
    request = service.stage(folder, lambda _: None)
    bucket = "sagemaker-us-west-2-123456789012"
    assert request["OutputDataConfig"]["S3OutputPath"] == f"s3://{bucket}/distrain"
    assert request["RoleArn"] == "arn:aws:iam::123456789012:role/training"
    listed = client("s3", "us-west-2", aws).list_objects_v2(Bucket=bucket)["Contents"]
    names = {each["Key"].removeprefix(f"distrain/{spec.run}/code/") for each in listed}
    assert {"program/main.py", "worker/distrain_nb/worker/__main__.py"} <= names
    service.stage(folder, lambda _: None)  # the bucket is there by now
    assert bucket in service.links("job")["model"]


def test_a_submission_of_version_0_1_0_is_read(aws: Mapping[str, str], folder: Path) -> None:
    texts = dict.fromkeys(("run", "region", "bucket", "repository", "builder", "base"), "x")
    told = {**texts, "way": "IMAGE", "framework": None, "requirements": [], "request": {"a": 1}}
    service = SageMakerBackend().service(told, aws, folder)
    assert (service.spec.framework, service.spec.request) == (None, {"a": 1})
    with pytest.raises(DistrainError, match="another version of distrain-nb planned this run"):
        service.stage(folder, lambda _: None)


def test_a_repository_that_nobody_named_is_made(aws: Mapping[str, str]) -> None:
    ecr = client("ecr", "us-east-1", {"ecr": aws["s3"]})
    for _ in range(2):
        make_repository(ecr, "distrain")
    (made,) = ecr.describe_repositories()["repositories"]
    assert made["repositoryName"] == "distrain"


def test_an_archive_goes_where_the_container_looks(
    aws: Mapping[str, str], s3: Any, folder: Path
) -> None:
    spec = planned(options={"python_package": True}).spec()
    request = SageMakerService(spec, aws).stage(folder, lambda _: None)
    where = request["HyperParameters"]["sagemaker_submit_directory"].strip('"')
    bucket, _, key = where.removeprefix("s3://").partition("/")
    body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        names = archive.getnames()
    assert {
        "distrain_program.py",
        "program/main.py",
        "distrain_nb/worker/replica/script.py",
    } <= set(names)


def test_a_bucket_that_is_not_there_is_named(aws: Mapping[str, str], folder: Path) -> None:
    spec = planned(laid(image="mine:1"), options={"bucket": "not-there"}).spec()
    with pytest.raises(DistrainError, match=r"Can't write s3://not-there/.*Make it, or name"):
        SageMakerService(spec, aws).stage(folder, lambda _: None)


def archived(**members: bytes) -> bytes:
    """An archive as the service makes it, with members that nobody should follow."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo("results/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return packed.getvalue()


def test_results_and_event_files_are_read_in_pieces(s3: Any) -> None:
    output = RunOutput(s3, "my-bucket", PREFIX)
    assert output.objects("results/") == []
    members = {"results__loss.pkl": b"0123456789", "results__deep__x": b"", "other": b"no"}
    objects = {
        "output/output.tar.gz": archived(**members),
        "tensorboard-output/a/events": b"abcdef",
        "tensorboard-output/empty/": b"",
        "tensorboard/mine": b"not ours",
    }
    for name, data in objects.items():
        s3.put_object(Bucket="my-bucket", Key=PREFIX + name, Body=data)
    output = RunOutput(s3, "my-bucket", PREFIX)
    results = [Stored("results/loss.pkl", 10), Stored("results/deep/x", 0)]
    assert output.objects("results/") == results
    assert output.read("results/loss.pkl", 3, 5) == b"34"
    assert output.read("results/loss.pkl", 8, 99) == b"89"
    assert output.objects("tensorboard/") == [Stored("tensorboard/a/events", 6)]
    assert output.read("tensorboard/a/events", 1, 3) == b"bc"
    s3.put_object(Bucket="my-bucket", Key=f"{PREFIX}output/output.tar.gz", Body=b"\x1f\x8bcut")
    with pytest.raises(DistrainError, match="Can't read s3://my-bucket/distrain/run-1/output/out"):
        RunOutput(s3, "my-bucket", PREFIX).objects("results/")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SageMakerStandIn]:
    patch = pytest.MonkeyPatch()
    patch.setenv("DISTRAIN_HOME", str(tmp_path_factory.mktemp("home")))
    with stand_in(Faults.parse("lost=1", SAGEMAKER), ["my-bucket"]) as started:
        yield started
    patch.undo()


def service_of(plan_options: dict[str, Any], endpoints: Mapping[str, str]) -> SageMakerService:
    spec = planned(laid("ml.m5.xlarge", image="127.0.0.1:9/none:1"), options=plan_options).spec()
    return SageMakerService(spec, endpoints)


def test_a_lost_answer_makes_no_second_job(running: SageMakerStandIn, folder: Path) -> None:
    service = service_of({}, running.endpoints)
    request = service.stage(folder, lambda _: None)
    job = service.create(request)
    assert job == service.spec.run
    again = SageMakerService(service.spec, running.endpoints)  # after a death
    assert again.create(request) == job
    listed = client("sagemaker", "us-west-2", running.endpoints).list_training_jobs()
    assert [each["TrainingJobName"] for each in listed["TrainingJobSummaries"]] == [job]
    others = {**request, "Environment": {}}
    with pytest.raises(DistrainError, match=r"Can't submit the job: .* must be unique"):
        again.create(others)
    while not (seen := again.observe(job)).state.final:
        assert seen.phase
    assert seen.state is State.FAILED
    assert seen.error
    again.cancel(job)  # which has ended


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ("permission=sagemaker:CreateTrainingJob", "lacks the permission sagemaker:Create"),
        ("permission=iam:PassRole", "lacks the permission iam:PassRole on arn:aws:iam"),
        ("permission=sts:AssumeRole", "Could not assume role"),
        ("quota=ml.m5.xlarge", "Ask for more in the console's Service Quotas"),
    ],
)
def test_who_may_not_is_told_what_is_missing(
    running: SageMakerStandIn, folder: Path, faults: str, said: str
) -> None:
    with troubled(running, Aws(dict(running.endpoints), ""), faults) as aws:
        service = service_of({}, aws.endpoints)
        request = service.stage(folder, lambda _: None)
        with pytest.raises(DistrainError, match=said):
            service.create(request)
