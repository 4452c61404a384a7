"""The request: what the API's own model takes, what the SDK sends, what a shell can send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import boto3
import pytest

from distrain_nb.api import prepare
from distrain_nb.backends.remote.submission import fill_placeholders
from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout import Layout
from distrain_nb.layout.formats import exports_of, read_any
from distrain_nb.layout.rules import check
from distrain_nb.places.sagemaker.forms.estimator import estimator_text
from distrain_nb.places.sagemaker.forms.request import training_job
from distrain_nb.places.sagemaker.names import ACCOUNT, IMAGE, RUN
from distrain_nb.places.sagemaker.plan import SageMakerSpec
from tests.sagemaker.jobs import EVERYTHING, P4, PLAN, ROLE, SCRIPT, laid, planned
from tests.sagemaker.model import report

SDK: dict[str, Any] = json.loads((Path(__file__).parent / "sdk_requests.json").read_text())
MPI_OPTIONS = "-verbose --NCCL_DEBUG=INFO -x OMPI_MCA_btl_vader_single_copy_mechanism=none"
EPOCHS = ("epochs=60", "batch-size=256")

LAYOUTS = {
    "one host": laid("ml.m5.xlarge"),
    "the document's Horovod": laid(launcher="mpi", ranks_per_replica="1", mpi_options=MPI_OPTIONS),
    "the document's parameter servers": laid(launcher="parameter-server"),
    "spot": laid(P4, spot=True, timeout="2h", max_wait="1d", checkpoint="s3://my-bucket/kept"),
    "instance types to choose from": laid("2*ml.p4d.24xlarge|4*ml.g5.12xlarge"),
    "the same count of each": laid("2*ml.p4d.24xlarge|ml.p4de.24xlarge", max_wait="2h"),
    "a primary besides": Layout.of(
        "sagemaker", primary="ml.m5.xlarge,disk=50", workers="3*ml.m5.xlarge,disk=50",
        region="eu-west-1",
    ),
}  # fmt: skip


TWO_GROUPS = Layout.of(
    "sagemaker", primary="ml.c5.xlarge", workers="2*ml.p3.8xlarge,disk=50", region="eu-west-1"
)


def test_a_primary_on_another_instance_is_a_group_of_its_own() -> None:
    plan = planned(TWO_GROUPS, code="import torch\n")
    assert not errors(plan.findings)
    request = fill_placeholders(plan.request, {RUN: "run", ACCOUNT: "1" * 12, IMAGE: "image"})
    assert not report(request)
    assert request["ResourceConfig"] == {
        "InstanceGroups": [
            {"InstanceGroupName": "primary", "InstanceType": "ml.c5.xlarge", "InstanceCount": 1},
            {"InstanceGroupName": "workers", "InstanceType": "ml.p3.8xlarge", "InstanceCount": 2},
        ],
        "VolumeSizeInGB": 50,
    }
    assert plan.ranks_per_replica == 1  # which every host has room for
    assert [f.code for f in check(TWO_GROUPS)] == ["instances-differ"]
    (refused,) = errors(planned(TWO_GROUPS, options=SCRIPT).findings)
    assert (refused.code, refused.where) == ("sagemaker.instance-groups", "primary")


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(
    "options", [{}, EVERYTHING, {**EVERYTHING, **SCRIPT}], ids=["plain", "all", "script"]
)
def test_the_api_takes_it(layout: Layout, options: dict[str, Any]) -> None:
    plan = planned(layout, name="My run", results=("loss",), experiment="trials", options=options)
    allowed = {"sagemaker.keep-alive-spot"} if layout.spot and options else set()
    assert {f.code for f in errors(plan.findings)} == allowed
    assert not report(
        fill_placeholders(plan.request, {RUN: "run", ACCOUNT: "1" * 12, IMAGE: "image"})
    )


def test_every_option_is_where_the_api_has_it() -> None:
    request = planned(
        LAYOUTS["a primary besides"],
        options=EVERYTHING,
        results=("loss", "net"),
        experiment="trial",
    ).request
    train, fast, slow = request["InputDataConfig"]
    assert train == {
        "ChannelName": "train",
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": "s3://my-bucket/train",
                "S3DataDistributionType": "ShardedByS3Key",
            }
        },
        "ContentType": "text/csv",
        "InputMode": "FastFile",
    }
    assert fast["DataSource"]["FileSystemDataSource"] == {
        "FileSystemId": "fs-0123456789abcdef0",
        "FileSystemAccessMode": "rw",
        "FileSystemType": "FSxLustre",
        "DirectoryPath": "/fsx/data",
    }
    assert slow["DataSource"]["FileSystemDataSource"]["FileSystemType"] == "EFS"
    assert slow["DataSource"]["FileSystemDataSource"]["DirectoryPath"] == "/"
    assert request["HyperParameters"] == {
        "epochs": "60",
        "schedule": '"cosine"',
        "layers": "[64, 10]",
    }
    assert request["ResourceConfig"] == {
        "InstanceType": "ml.m5.xlarge",
        "InstanceCount": 4,
        "VolumeSizeInGB": 50,
        "VolumeKmsKeyId": "key-1",
        "KeepAlivePeriodInSeconds": 1800,
        "TrainingPlanArn": PLAN,
    }
    assert request["VpcConfig"] == {
        "SecurityGroupIds": ["sg-1"],
        "Subnets": ["subnet-1", "subnet-2"],
    }
    assert request["RetryStrategy"] == {"MaximumRetryAttempts": 3}
    assert request["RemoteDebugConfig"] == {"EnableRemoteDebug": True}
    assert request["EnableNetworkIsolation"] is request["EnableInterContainerTrafficEncryption"]
    assert request["OutputDataConfig"] == {
        "KmsKeyId": "key-1",
        "S3OutputPath": "s3://my-bucket/distrain",
    }
    assert {tag["Key"]: tag["Value"] for tag in request["Tags"]} == {
        "team": "vision",
        "cost center": "12",
        "distrain_experiment": "trial",
        "distrain_run": RUN,
    }
    assert request["AlgorithmSpecification"]["MetricDefinitions"] == [
        {"Name": "loss", "Regex": "loss=([0-9.]+)"}
    ]
    assert request["Environment"]["DISTRAIN_RESULTS"] == "loss,net"
    assert request["Environment"]["NCCL_DEBUG"] == "INFO"


def test_machines_that_encrypt_their_own_storage_take_no_key() -> None:
    sent = planned(laid(P4), options={"kms_key": "key-1"}).request
    assert "VolumeKmsKeyId" not in sent["ResourceConfig"]
    assert sent["OutputDataConfig"]["KmsKeyId"] == "key-1"


def test_spot_has_a_time_to_wait_even_if_nobody_names_one() -> None:
    times = planned(laid(spot=True, timeout="1h")).request["StoppingCondition"]
    assert times == {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 90000}
    times = planned(LAYOUTS["spot"]).request["StoppingCondition"]
    assert times == {"MaxRuntimeInSeconds": 7200, "MaxWaitTimeInSeconds": 86400}


def test_without_spot_the_time_to_wait_is_for_capacity() -> None:
    layout = laid(P4, timeout="1h", max_wait="2h")
    plan = planned(layout)
    times = plan.request["StoppingCondition"]
    assert times == {"MaxRuntimeInSeconds": 3600, "MaxPendingTimeInSeconds": 7200}
    assert not plan.findings
    assert not check(layout)
    assert read_any(json.dumps(training_job(layout))).layout.max_wait == 7200
    spot = laid(P4, timeout="1h", max_wait="2h", spot=True)
    assert read_any(json.dumps(training_job(spot))).layout.max_wait == 7200
    text = estimator_text(layout)
    assert "max_wait" not in text
    (form,) = (form for form in exports_of("sagemaker") if form.name == "sagemaker-python")
    assert "max_wait" in form.left_out(layout)


SENT_BY_SDK = {
    "the document's parameter servers": (
        laid(launcher="parameter-server", framework="tensorflow-1.13"),
        {**SCRIPT, "hyperparameter": (*EPOCHS, "model_dir=s3://my-bucket/cifar10")},
    ),
    "the document's Horovod": (
        laid(launcher="mpi", framework="tensorflow-1.13", ranks_per_replica="1",
             mpi_options=MPI_OPTIONS),
        {**SCRIPT, "hyperparameter": EPOCHS},
    ),
    "mirrored workers": (laid(launcher="tensorflow", framework="tensorflow-2.11"), SCRIPT),
    "torchrun": (laid(P4, launcher="torchrun", framework="pytorch-2.0.1"), SCRIPT),
    "mpi with PyTorch": (laid(P4, launcher="mpi", framework="pytorch-2.0.1"), SCRIPT),
    "data parallel": (
        laid(P4, framework="pytorch-2.0.1", distribution="smdistributed.dataparallel",
             mpi_options="-verbose"),
        SCRIPT,
    ),
    "PyTorch DDP": (
        laid(P4, framework="pytorch-2.0.1", distribution="pytorchddp", mpi_options="-verbose"),
        SCRIPT,
    ),
    "model parallel": (
        laid(P4, framework="pytorch-1.13.1", distribution="smdistributed.modelparallel",
             launcher="mpi"),
        {**SCRIPT, "hyperparameter": ("mp_parameters={'partitions': 2}",)},
    ),
    "one host with all that there is": (
        laid("ml.m5.xlarge,disk=50", launcher="python", framework="pytorch-2.0.1", spot=True,
             timeout="1h", max_wait="2h", checkpoint="s3://my-bucket/checkpoints"),
        {
            **SCRIPT, "label": ("team=vision",), "env": ("NCCL_DEBUG=INFO",),
            "metric": ("loss=loss=([0-9.]+)",), "subnet": ("subnet-1",),
            "security_group": ("sg-1",), "kms_key": "key-1", "encrypt": True, "isolate": True,
            "attempts": "3", "web_access": True,
        },
    ),
    "a warm pool": (
        laid("2*ml.m5.xlarge", launcher="python", framework="pytorch-2.0.1"),
        {**SCRIPT, "keep_alive": "1800"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SENT_BY_SDK)
def test_the_sdk_sends_the_same(name: str) -> None:
    layout, options = SENT_BY_SDK[name]
    plan = planned(layout, code="x = 1\n", data=("train=s3://my-bucket/train",), options=options)
    theirs, ours = SDK[name], fill_placeholders(plan.request, {RUN: "run"})
    assert ours["HyperParameters"] == theirs["HyperParameters"]
    same = [key for key in theirs if key not in ("AlgorithmSpecification", "ProfilerConfig")]
    for key in (*same, "AlgorithmSpecification"):  # ours says more: our tag, our variables
        assert is_within(theirs[key], ours[key]), key


def is_within(theirs: Any, ours: Any) -> bool:
    """Whether all that the SDK sends is in ours with the same value."""
    if isinstance(theirs, dict):
        asked = {k: v for k, v in theirs.items() if k != "EnableSageMakerMetricsTimeSeries"}
        return all(key in ours and is_within(value, ours[key]) for key, value in asked.items())
    if isinstance(theirs, list):
        return all(any(is_within(each, other) for other in ours) for each in theirs)
    return bool(theirs == ours)


@pytest.mark.parametrize("name", ["the document's parameter servers", "the document's Horovod"])
def test_the_document_s_container_is_too_old_for_a_captured_program(name: str) -> None:
    layout, options = SENT_BY_SDK[name]
    found = planned(layout, code="import tensorflow\n", options=options).findings
    assert [f.code for f in found] == ["sagemaker.python"]
    assert "Python 3.6" in found[0].message
    assert not check(layout)


def test_three_ways_for_the_code() -> None:
    built = planned().request["AlgorithmSpecification"]
    assert built["TrainingImage"] == IMAGE
    assert built["ContainerEntrypoint"] == ["python3", "-m", "distrain_nb.worker"]
    own = planned(laid(image="mine:1")).request
    assert own["AlgorithmSpecification"]["TrainingImage"] == "mine:1"
    assert own["AlgorithmSpecification"]["ContainerEntrypoint"][:2] == ["sh", "-c"]
    assert own["InputDataConfig"][0]["ChannelName"] == "distrain"
    folder = own["Environment"]["DISTRAIN_PROGRAM"]
    assert folder == "/opt/ml/input/data/distrain/program"
    script = planned(options=SCRIPT).request
    assert "ContainerEntrypoint" not in script["AlgorithmSpecification"]
    assert "pytorch-training:" in script["AlgorithmSpecification"]["TrainingImage"]
    mine = planned(laid(image="mine:1"), options=SCRIPT).request
    assert mine["AlgorithmSpecification"]["TrainingImage"] == "mine:1"


def test_what_an_image_is_built_on() -> None:
    assert "pytorch-training:2.8.0-gpu-py312" in planned().base
    assert planned(code="x = 1\n").base.startswith("python:3.")
    assert planned(options={"base": "mine:1"}).base == "mine:1"
    # AWS's registry wants a login, which a rehearsal has not
    assert planned(rehearse="").base.startswith("python:3.")
    assert planned(laid(framework="tensorflow-1.13")).base.startswith("python:3.")


@pytest.mark.parametrize(
    ("layout", "code", "launcher", "ranks"),
    [
        (laid(P4), "import torch\n", "torchrun", "8"),
        (laid(P4), "import horovod.torch\nimport torch\n", "mpi", "8"),
        (laid(P4), "import tensorflow\n", "tensorflow", "1"),
        (laid(P4, launcher="parameter-server"), "import tensorflow\n", "parameter-server", "1"),
        (laid("2*ml.m5.xlarge"), "import torch\n", "torchrun", "1"),
        (laid("ml.m5.xlarge", ranks_per_replica="3"), "x = 1\n", "python", "3"),
    ],
)  # fmt: skip
def test_the_worker_is_told_what_starts_how_many(
    layout: Layout, code: str, launcher: str, ranks: str
) -> None:
    plan = planned(layout, code=code)
    told = plan.request["Environment"]
    assert (launcher, ranks) == (told["DISTRAIN_LAUNCHER"], told["DISTRAIN_RANKS"])
    assert plan.ranks_per_replica == int(ranks)
    options = planned(laid(launcher="mpi", mpi_options="-verbose")).request["Environment"]
    assert options["DISTRAIN_MPI_OPTIONS"] == "-verbose"


def test_a_shell_sends_the_same(tmp_path: Path) -> None:
    """The printed command, run with an `aws` that keeps what it gets."""
    options = {"hyperparameter": ("PRICE=5$ `x` \\ \"'",), "role": "training", "bucket": ""}
    plan = planned(laid("ml.m5.xlarge"), name="My run", options=options)
    fake = tmp_path / "aws"
    fake.write_text(
        '#!/bin/sh\nif [ "$1" = sts ]; then echo 123456789012; exit; fi\n'
        f'for each; do printf "%s\\0" "$each"; done > {tmp_path}/got\n'
    )
    fake.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-ec", str(plan)], env={**os.environ, **path}, check=True)
    *got, body, _ = (tmp_path / "got").read_text().split("\0")
    assert got == ["sagemaker", "create-training-job", "--region", "us-west-2", "--cli-input-json"]
    sent = json.loads(body)
    values = {RUN: sent["TrainingJobName"], ACCOUNT: "123456789012"}
    image = fill_placeholders(f"{plan.settings.repository}:{RUN}", values)
    assert sent == fill_placeholders(plan.request, {**values, IMAGE: image})
    assert sent["RoleArn"] == ROLE
    assert sent["TrainingJobName"].startswith("my-run-")


def test_data_are_a_channel_and_a_name_in_the_cell() -> None:
    prepared = prepare(
        "print(train, there)\n", on="sagemaker", workers="ml.m5.xlarge", region="us-west-2",
        role=ROLE, data=("train=s3://my-bucket/train,mode=FastFile", "there=/opt/ml/input/data/x"),
    )  # fmt: skip
    (channel,) = prepared.plan.request["InputDataConfig"]
    assert (channel["ChannelName"], channel["InputMode"]) == ("train", "FastFile")
    assert "/opt/ml/input/data/train" in prepared.job.program.main
    assert "/opt/ml/input/data/x" in prepared.job.program.main
    with pytest.raises(OptionError, match="--data train=gs://my-bucket: write s3://BUCKET/PREFIX"):
        prepare("print(train)\n", on="sagemaker", data=("train=gs://my-bucket",))


@pytest.mark.brief
@pytest.mark.slow  # in a process of its own
def test_a_plan_has_botocore_s_model_and_makes_no_client() -> None:
    code = "import sys; from tests.sagemaker.jobs import planned; planned(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "boto3" not in modules
    assert "botocore.model" in modules


@pytest.mark.brief
@pytest.mark.slow  # reads the packages of a folder anew
def test_a_machine_without_boto3_is_told_what_to_install(tmp_path: Path) -> None:
    for entry in Path(boto3.__file__).parents[1].iterdir():
        if entry.name not in ("boto3", "botocore"):
            (tmp_path / entry.name).symlink_to(entry)
    code = (
        "from tests.sagemaker.jobs import planned; plan = planned(code='', keep_alive='7h'); "
        "print(plan, *plan.findings)"
    )
    path = os.pathsep.join((str(Path(__file__).parents[2]), str(tmp_path)))
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "aws sagemaker create-training-job" in done.stdout
    assert "pip install 'distrain-nb[sagemaker]'" in done.stdout
    assert "out of range" not in done.stdout  # which the model says


def test_every_job_is_another_run() -> None:
    plan = planned(name="My run")
    one, again, other = plan.spec(), plan.spec(), planned(name="My run").spec()
    assert one.run == again.run != other.run
    assert one.request["TrainingJobName"] == one.run
    assert SageMakerSpec.of(json.loads(json.dumps(asdict(one)))) == one
    assert RUN not in json.dumps(asdict(one))


def test_retries_are_those_of_the_service() -> None:
    plan = planned(laid(P4, retries=3))
    assert plan.request["RetryStrategy"] == {"MaximumRetryAttempts": 3}
    (finding,) = [f for f in plan.findings if f.code == "sagemaker.retries"]
    assert "an end by a signal or an exit status is not retried" in finding.message
