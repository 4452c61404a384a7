"""Training jobs on SageMaker's stand-in, asked for by boto3 and run under Docker."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from distrain_nb.places.sagemaker.stand_in.services import SageMakerStandIn
from tests.image.services.bases import BaseImage

from .training_jobs import BUCKET, ROLE, Aws, channel, request, standing_in, troubled


@pytest.fixture(scope="module")
def running(docker_host: None, small: BaseImage) -> Iterator[tuple[SageMakerStandIn, Aws]]:
    with standing_in(small) as both:
        yield both


@pytest.fixture(scope="module")
def aws(running: tuple[SageMakerStandIn, Aws]) -> Aws:
    running[1].put(
        **{f"data__{n}.txt": f"part {n}\n".encode() for n in range(4)},
        **{"data__deep__4.txt": b"part 4\n", "pictures__a.png": b"\x89A", "pictures__b.png": b"B"},
        manifest=json.dumps([{"prefix": f"s3://{BUCKET}/data/"}, "1.txt", "deep/4.txt"]).encode(),
        augmented=b"\n".join(
            json.dumps({"source-ref": f"s3://{BUCKET}/pictures/{n}.png", "class": n}).encode()
            for n in "ab"
        ),
    )
    return running[1]


TELLS = """\
import json, os, pathlib, socket, time, urllib.request
ml, me = pathlib.Path("/opt/ml"), socket.gethostname()
tell = lambda name, value: print(name, json.dumps(value))
config = {p.stem: json.loads(p.read_text()) for p in (ml / "input/config").glob("*.json")}
tell("resources", config["resourceconfig"])
tell("channels", config["inputdataconfig"])
tell("hyperparameters", {k: v for k, v in config["hyperparameters"].items() if k != "program"})
names = ("AWS_", "TRAI", "MINE", "OMP_")
tell("environment", {k: v for k, v in os.environ.items() if k[:4] in names})
data = ml / "input/data"
for folder in sorted(x for x in data.iterdir() if x.is_dir()):
    files = {str(x.relative_to(folder)): x.read_text() for x in folder.rglob("*") if x.is_file()}
    tell(folder.name, files)
tell("piped", [(data / f"piped_{n}").read_text() for n in range(3)])
tell("records", (data / "records_0").read_bytes().hex())

other = next(x for x in config["resourceconfig"]["hosts"] if x != me)
with socket.create_server(("", 2222)) as server:
    while True:
        try:
            friend = socket.create_connection((other, 2222))
            break
        except OSError:
            time.sleep(0.05)
    peer, address = server.accept()
    friend.sendall(me.encode())
    tell("met", [peer.recv(100).decode(), address[0] == socket.gethostbyname(other)])
with urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL_S3"] + "/my-bucket/data/1.txt") as file:
    tell("s3", file.read().decode())
for folder in ("model", "output/data", "output/tensorboard", "checkpoints"):
    (ml / folder / me).write_text(f"{folder} of {me}")
print("loss=0.5\\nloss=0.25")
"""
CHANNELS = [
    channel("whole", "data"),
    channel("mine", "data/", source={"S3DataDistributionType": "ShardedByS3Key"}),
    channel("listed", "manifest", "ManifestFile", InputMode="FastFile"),
    channel("one", "data/2.txt", ContentType="text/plain"),
    channel("piped", "data/deep", InputMode="Pipe"),
    channel(
        "records",
        "augmented",
        "AugmentedManifestFile",
        source={"AttributeNames": ["source-ref", "class"]},
        InputMode="Pipe",
        RecordWrapperType="RecordIO",
    ),
]


def told(lines: list[str]) -> dict[str, Any]:
    """What a host tells of itself."""
    return {
        name: json.loads(value)
        for name, _, value in (line.partition(" ") for line in lines)
        if value
    }


def archived(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]


def test_two_hosts_with_their_input_and_output(aws: Aws) -> None:
    asked = request(
        aws.base,
        TELLS,
        2,
        InputDataConfig=CHANNELS,
        Environment={"MINE": "1"},
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/kept"},
        TensorBoardOutputConfig={"S3OutputPath": f"s3://{BUCKET}/board"},
    )
    asked["HyperParameters"]["epochs"] = "60"
    aws.jobs.create_training_job(**asked)
    name = asked["TrainingJobName"]
    job = aws.wait(name)
    assert job["TrainingJobStatus"] == "Completed", aws.told(job)
    hosts = {host: told(aws.said(name, f"{host}-")) for host in ("algo-1", "algo-2")}
    for host, said in hosts.items():
        _check_config(host, said, job)
        assert len(said["whole"]) == 5 and said["whole"]["deep/4.txt"] == "part 4\n"
        assert said["listed"] == {"1.txt": "part 1\n", "deep/4.txt": "part 4\n"}
        assert said["s3"] == "part 1\n"
        assert said["one"] == {"2.txt": "part 2\n"}
        assert said["piped"] == ["part 4\n"] * 3
        record = "0a23d7ce02000000894100000a23d7ce01000000610000000a23d7ce0100000042000000"
        assert said["records"].startswith(record)
    parts = [set(said["mine"]) for said in hosts.values()]
    assert parts == [{"0.txt", "2.txt", "deep/4.txt"}, {"1.txt", "3.txt"}]
    assert [said["met"] for said in hosts.values()] == [["algo-2", True], ["algo-1", True]]
    _check_output(aws, job)


def _check_config(host: str, said: dict[str, Any], job: dict[str, Any]) -> None:
    assert said["resources"] == {
        "current_host": host,
        "current_instance_type": "ml.p3.2xlarge",
        "current_group_name": "homogeneousCluster",
        "hosts": ["algo-1", "algo-2"],
        "instance_groups": [
            {
                "instance_group_name": "homogeneousCluster",
                "instance_type": "ml.p3.2xlarge",
                "hosts": ["algo-1", "algo-2"],
            }
        ],
        "network_interface_name": "eth0",
    }
    assert said["hyperparameters"] == {"epochs": "60"}
    plain = {
        "TrainingInputMode": "File",
        "S3DistributionType": "FullyReplicated",
        "RecordWrapperType": "None",
    }
    assert said["channels"]["whole"] == plain
    assert said["channels"]["one"] == {**plain, "ContentType": "text/plain"}
    assert said["channels"]["mine"]["S3DistributionType"] == "ShardedByS3Key"
    assert said["channels"]["records"]["RecordWrapperType"] == "RecordIO"
    assert said["environment"]["TRAINING_JOB_ARN"] == job["TrainingJobArn"]
    assert said["environment"]["MINE"] == "1"
    assert said["environment"]["OMP_NUM_THREADS"] == str(max(1, (os.cpu_count() or 1) // 2))
    assert said["environment"]["OMP_WAIT_POLICY"] == "PASSIVE"


def _check_output(aws: Aws, job: dict[str, Any]) -> None:
    name, both = job["TrainingJobName"], ("algo-1", "algo-2")
    steps = [step["Status"] for step in job["SecondaryStatusTransitions"]]
    assert steps == ["Starting", "Starting", "Downloading", "Training", "Uploading", "Completed"]
    note = " ".join(aws.said(name, "rehearsal"))
    assert "containers of docker" in note and "ml.p3.2xlarge runs without its 1 x V100" in note
    assert [(x["MetricName"], x["Value"]) for x in job["FinalMetricDataList"]] == [("loss", 0.25)]
    assert job["ModelArtifacts"]["S3ModelArtifacts"].endswith(f"/{name}/output/model.tar.gz")
    model = archived(aws.read(f"out/{name}/output/model.tar.gz"))
    assert model == {host: f"model of {host}".encode() for host in both}
    assert set(archived(aws.read(f"out/{name}/output/output.tar.gz"))) == set(both)
    for host in both:
        assert aws.read(f"board/{name}/tensorboard-output/{host}").endswith(host.encode())
        assert aws.read(f"kept/{host}") == f"checkpoints of {host}".encode()


FAILS = """\
import pathlib, socket, sys, time
if socket.gethostname() == "algo-1":
    time.sleep(600)
pathlib.Path("/opt/ml/output/failure").write_text("the data is bad")
sys.exit(3)
"""
ENDLESS = """\
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path("/opt/ml/model/last").write_text("saved at the end")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready")
time.sleep(600)
"""


@pytest.fixture(scope="module")
def hasty(running: tuple[SageMakerStandIn, Aws]) -> Iterator[Aws]:
    with troubled(*running) as aws:
        yield aws


def test_a_host_that_fails_ends_the_others(hasty: Aws) -> None:
    job = hasty.wait(hasty.submit(FAILS, 2))
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"] == "AlgorithmError: the data is bad, exit code: 3"


def test_stopping_lets_the_program_save(aws: Aws) -> None:
    name = aws.submit(ENDLESS)
    aws.wait_for(name, "ready")
    aws.jobs.stop_training_job(TrainingJobName=name)
    job = aws.wait(name)
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "Stopped")
    model = archived(aws.read(f"out/{name}/output/model.tar.gz"))
    assert model == {"last": b"saved at the end"}
    with pytest.raises(ClientError, match="the training job is in status Stopped"):
        aws.jobs.stop_training_job(TrainingJobName=name)


def test_the_longest_run_time(hasty: Aws) -> None:
    job = hasty.wait(hasty.submit(ENDLESS, StoppingCondition={"MaxRuntimeInSeconds": 1}))
    assert job["TrainingJobStatus"] == "Stopped"
    assert job["SecondaryStatus"] == "MaxRuntimeExceeded"


def test_an_image_that_is_not_there(aws: Aws) -> None:
    algorithm = {"TrainingInputMode": "File", "TrainingImage": f"{aws.base}-missing"}
    job = aws.wait(aws.submit("", AlgorithmSpecification=algorithm))
    assert job["FailureReason"].startswith("ClientError: Cannot pull algorithm container.")


def test_jobs_have_tags_and_are_listed(aws: Aws) -> None:
    algorithm = {"TrainingInputMode": "File", "TrainingImage": f"{aws.base}-missing"}
    tags = [{"Key": "distrain-run", "Value": "one"}]
    for name in ("listed-1", "listed-2"):
        asked = request("", "", TrainingJobName=name, AlgorithmSpecification=algorithm, Tags=tags)
        arn = aws.jobs.create_training_job(**asked)["TrainingJobArn"]
        aws.wait(name)
    assert arn == "arn:aws:sagemaker:eu-west-1:123456789012:training-job/listed-2"
    aws.jobs.add_tags(ResourceArn=arn, Tags=[{"Key": "more", "Value": "2"}])
    found = aws.jobs.list_tags(ResourceArn=arn)["Tags"]
    assert found == [*tags, {"Key": "more", "Value": "2"}]
    pages = aws.jobs.get_paginator("list_training_jobs").paginate(
        NameContains="listed-", StatusEquals="Failed", PaginationConfig={"PageSize": 1}
    )
    summaries = [job for page in pages for job in page["TrainingJobSummaries"]]
    assert [job["TrainingJobName"] for job in summaries] == ["listed-2", "listed-1"]
    with pytest.raises(ClientError, match=rf"already exists \({arn}\)") as taken:
        aws.jobs.create_training_job(**asked)
    assert taken.value.response["Error"]["Code"] == "ResourceInUse"
    with pytest.raises(ClientError, match="Requested resource not found"):
        aws.describe("nobody")


FSX = {
    "FileSystemId": "fs-0123456789a",
    "FileSystemAccessMode": "ro",
    "FileSystemType": "FSxLustre",
    "DirectoryPath": "/data",
}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"TrainingJobName": "under_score"}, "'trainingJobName' .* regular expression pattern"),
    ({"RoleArn": "me"}, "2 validation errors detected: .*length greater than or equal to 20"),
    ({"HyperParameters": {"a": "x" * 2501}}, "Map value must satisfy .*less than or equal to 2500"),
    ({"Environment": {"9": "x"}}, "Map keys must satisfy constraint"),
    (
        {"ResourceConfig": {"InstanceType": "ml.p9.large", "InstanceCount": 1}},
        r"Value 'ml.p9.large' at 'resourceConfig.instanceType' .* enum value set: \[ml.m4.xlarge, ",
    ),
    ({"ResourceConfig": {"InstanceType": "ml.p3.2xlarge"}}, "an InstanceCount of at least 1"),
    ({"AlgorithmSpecification": {"TrainingInputMode": "File"}}, "AlgorithmName or TrainingImage"),
    (
        {
            "AlgorithmSpecification": {
                "TrainingInputMode": "File",
                "TrainingImage": "an/image:1",
                "MetricDefinitions": [{"Name": "loss", "Regex": "loss=("}],
            }
        },
        "Metric loss: 'loss=\\(': missing",
    ),
    ({"EnableManagedSpotTraining": True}, "Invalid MaxWaitTimeInSeconds. It must be present"),
    ({"StoppingCondition": {"MaxWaitTimeInSeconds": 9}}, "managed spot training only"),
    ({"InputDataConfig": [channel("a", "x"), channel("a", "x")]}, r"duplicate .*\['a'\]"),
    ({"InputDataConfig": [channel("a b", "x")]}, "inputDataConfig.1.member.channelName"),
    ({"InputDataConfig": [channel("a", "x", "AugmentedManifestFile")]}, "with input mode Pipe"),
    ({"InputDataConfig": [channel("a", "x", CompressionType="Gzip")]}, "with input mode Pipe"),
    (
        {
            "InputDataConfig": [
                {"ChannelName": "a", "DataSource": {"FileSystemDataSource": dict(FSX)}}
            ]
        },
        "a VpcConfig is required",
    ),
    ({"InputDataConfig": [channel("a", "nothing")]}, "No S3 objects found under S3 URL"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_what_the_service_would_refuse(aws: Aws, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ClientError, match=words) as refused:
        aws.jobs.create_training_job(**request(aws.base, "", **changes))
    assert refused.value.response["Error"]["Code"] == "ValidationException"


LINKS = """\
import os, pathlib
for folder in ("checkpoints", "model", "output/data"):
    folder = pathlib.Path("/opt/ml", folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "own").write_text("its own")
    (folder / "folder").symlink_to("{outside}")
    (folder / "file").symlink_to("{outside}/secret")
"""


def test_links_that_a_container_makes_lead_nowhere_on_the_host(aws: Aws, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    kept = {"CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/linked"}}
    name = aws.submit(LINKS.format(outside=tmp_path), **kept)
    job = aws.wait(name)
    assert job["TrainingJobStatus"] == "Completed", aws.told(job)
    assert aws.read("linked/own") == b"its own"
    for key in ("linked/folder/secret", "linked/file"):
        with pytest.raises(ClientError, match="NoSuchKey"):
            aws.read(key)
    for archive in ("model", "output"):
        files = archived(aws.read(f"out/{name}/output/{archive}.tar.gz"))
        assert b"of the host" not in files.values()
    aws.put(linked__folder__planted=b"planted")
    again = aws.wait(aws.submit("", **kept))
    assert again["TrainingJobStatus"] == "Completed", aws.told(again)
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


RESUMES = """\
import pathlib, socket, time
kept = pathlib.Path("/opt/ml/checkpoints")
print("found", sorted(x.name for x in kept.iterdir()))
if not any(kept.iterdir()):
    (kept / socket.gethostname()).write_text("step 7")
    print("saved")
    time.sleep(600)
"""


def test_a_spot_interruption_starts_the_job_again(
    running: tuple[SageMakerStandIn, Aws], aws: Aws
) -> None:
    with troubled(*running, "spot=algo-2@saved") as spot:
        name = spot.submit(
            RESUMES,
            2,
            EnableManagedSpotTraining=True,
            StoppingCondition={"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 3600},
            CheckpointConfig={"S3Uri": f"s3://{BUCKET}/resumed/"},
        )
        job = spot.wait(name)
        assert job["TrainingJobStatus"] == "Completed", spot.told(job)
        steps = [step["Status"] for step in job["SecondaryStatusTransitions"]]
        after = steps[steps.index("Interrupted") :]
        assert after[:4] == ["Interrupted", "Starting", "Downloading", "Training"]
        for host in ("algo-1-", "algo-2-"):
            assert "'algo-" in spot.said(name, host)[-1]


@pytest.mark.parametrize(
    ("faults", "code", "words"),
    [
        ("permission=sagemaker:CreateTrainingJob", "AccessDeniedException", "training-job/"),
        ("permission=iam:PassRole", "AccessDeniedException", f"iam:PassRole on resource: {ROLE}"),
        ("permission=sts:AssumeRole", "ValidationException", f"Could not assume role {ROLE}"),
        ("quota=ml.p3.2xlarge", "ResourceLimitExceeded", "'ml.p3.2xlarge for training job usage'"),
    ],
)
def test_what_the_caller_may_not(
    running: tuple[SageMakerStandIn, Aws], faults: str, code: str, words: str
) -> None:
    with troubled(*running, faults) as denied, pytest.raises(ClientError, match=words) as refused:
        denied.submit("")
    assert refused.value.response["Error"]["Code"] == code
