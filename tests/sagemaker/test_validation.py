"""What the service would refuse, or could not be meant: found before anything is sent."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ParamValidationError
from botocore.loaders import Loader
from hypothesis import event, given, settings
from hypothesis import strategies as st

from distrain_nb.backends.remote.submission import fill_placeholders
from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout import Layout
from distrain_nb.places.sagemaker.backend import SageMakerBackend
from distrain_nb.places.sagemaker.model import request_shape
from distrain_nb.places.sagemaker.names import ACCOUNT, IMAGE, RUN
from tests.fuzzing import several
from tests.sagemaker.jobs import P4, PLAN, ROLE, SCRIPT, codes, job, laid, planned
from tests.sagemaker.model import refused

JOB = job()


NAMES = st.one_of(st.text("ab-_. ", min_size=1, max_size=70), st.text(min_size=1, max_size=8))
VALUES = st.one_of(st.text("xyz", max_size=12), st.sampled_from([257, 513, 2501]).map("v".__mul__))
PAIRS = st.lists(st.builds("{}={}".format, NAMES, VALUES), max_size=4, unique=True).map(tuple)
GIVEN: dict[str, st.SearchStrategy[Any]] = {
    "label": PAIRS,
    "env": PAIRS,
    "hyperparameter": PAIRS,
    "channel": st.lists(st.builds("{}=s3://b/{}".format, NAMES, VALUES), max_size=3).map(tuple),
    "metric": st.lists(st.builds("{}=({})".format, NAMES, VALUES), max_size=3).map(tuple),
    "subnet": st.lists(NAMES, max_size=18).map(tuple),
    "security_group": st.lists(NAMES, max_size=6).map(tuple),
    "kms_key": st.one_of(st.just(""), NAMES),
    "keep_alive": st.integers(0, 30000).map(str),
    "attempts": st.integers(0, 40).map(str),
    "role": st.one_of(st.just(ROLE), NAMES),
}


@settings(max_examples=several(100), deadline=None)
@given(options=st.fixed_dictionaries({}, optional=GIVEN), script=st.booleans())
def test_what_is_not_found_here_the_service_takes(options: dict[str, Any], script: bool) -> None:
    """Sizes and forms by the API's model, whatever is given."""
    chosen = replace(JOB.options, **options, python_package=script)
    asked = replace(JOB, options=chosen)
    try:
        plan = SageMakerBackend().plan(asked)
    except OptionError:
        event("refused at once")
        return
    request = fill_placeholders(plan.request, {RUN: "run", ACCOUNT: "1" * 12, IMAGE: "image"})
    found = [f.message for f in errors(plan.findings) if f.code == "sagemaker.limit"]
    event("found" if found else "sent")
    assert {message.rpartition("(")[2].rstrip(")") for message in found} == refused(request)


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "a long value": ({"env": (f"A={'x' * 513}",)}, "env", "the value of A has 513 characters"),
    "many labels": ({"label": tuple(f"l{n}=1" for n in range(50))}, "label", "at most 50"),
    "a long hyperparameter": ({"hyperparameter": (f"a={'x' * 2500}",)}, "hyperparameter", "2502"),
    "a role": ({"role": "arn:aws:iam::12:role/short-one"}, "role", "does not have the form"),
    "a kept machine": ({"keep_alive": "7h"}, "keep_alive", "25200 is out of range"),
    "a training plan": ({"reservation": "any"}, "reservation", "'any' has 3 characters"),
    "attempts": ({"attempts": "31"}, "attempts", "at most 30"),
    "a subnet": ({"subnet": ("a/b",), "security_group": ("sg-1",)}, "subnet", "'a/b'"),
    "groups": (
        {"subnet": ("s-1",), "security_group": tuple(f"sg-{n}" for n in range(6))},
        "security_group",
        "there are 6; at most 5",
    ),
    "channels": (
        {"channel": tuple(f"c{n}=s3://b/p" for n in range(21))}, "channel", "at most 20",
    ),
    "a channel's name": ({"channel": ("a b=s3://b/p",)}, "channel", "'a b'"),
    "a file system": (
        {"channel": ("a=efs://fs-1/p",), "subnet": ("s",), "security_group": ("g",)},
        "channel",
        "'fs-1' has 4 characters",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("options", "where", "said"), WRONG.values(), ids=WRONG)
def test_what_the_service_would_refuse_is_an_error_here(
    options: dict[str, Any], where: str, said: str
) -> None:
    found = [f for f in planned(options=options).findings if f.code == "sagemaker.limit"]
    assert [f.where for f in found] == [where]
    assert said in found[0].message


@pytest.fixture
def old_boto3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """boto3 with a model of the API from before there were training plans."""
    old = copy.deepcopy(Loader().load_service_model("sagemaker", "service-2"))
    del old["shapes"]["ResourceConfig"]["members"]["TrainingPlanArn"]
    file = tmp_path / "sagemaker" / "2017-07-24" / "service-2.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(old))
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    request_shape.cache_clear()
    yield
    request_shape.cache_clear()


@pytest.mark.usefixtures("old_boto3")
def test_what_boto3_is_too_old_to_send_is_an_error_before_anything_is_built() -> None:
    plan = planned(options={"reservation": PLAN})
    request = fill_placeholders(plan.request, {RUN: "run", ACCOUNT: "1" * 12, IMAGE: "image"})
    sagemaker = boto3.Session().client(
        "sagemaker", "us-west-2", aws_access_key_id="nobody", aws_secret_access_key="none"
    )
    with pytest.raises(ParamValidationError, match="Unknown parameter in ResourceConfig"):
        sagemaker.create_training_job(**request)
    (found,) = errors(plan.findings)
    assert (found.code, found.where) == ("sagemaker.old-boto3", "reservation")
    assert "can't send ResourceConfig.TrainingPlanArn: pip install -U boto3" in found.message


TOGETHER: dict[str, tuple[Layout, dict[str, Any], list[str]]] = {
    "half a VPC": (laid(), {"subnet": ("s-1",)}, ["sagemaker.vpc"]),
    "a file system without a VPC": (
        laid(), {"channel": ("a=efs://fs-01234567/",)}, ["sagemaker.file-system-vpc"],
    ),
    "our channel": (laid(), {"channel": ("distrain=s3://b/p",)}, ["sagemaker.channel-name"]),
    "one host that encrypts": (laid("ml.m5.xlarge"), {"encrypt": True}, ["sagemaker.encrypt"]),
    "spot that stays": (laid(spot=True), {"keep_alive": "1h"}, ["sagemaker.keep-alive-spot"]),
    "a distribution in our image": (
        laid(P4, distribution="smdistributed.dataparallel"), {}, ["sagemaker.distribution"],
    ),
    "an image without mpirun": (
        laid("ml.g5.xlarge", launcher="mpi", framework="mxnet"), {}, ["sagemaker.mpirun"],
    ),
    "a framework without a container": (
        laid("ml.g5.xlarge", framework="mxnet-1.9.0"), SCRIPT, ["framework.release"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("layout", "options", "found"), TOGETHER.values(), ids=TOGETHER)
def test_what_does_not_go_together_is_found(
    layout: Layout, options: dict[str, Any], found: list[str]
) -> None:
    assert codes(planned(layout, options=options)) == found


def test_cloud_build_is_elsewhere() -> None:
    assert codes(planned(builder="cloudbuild")) == ["sagemaker.builder"]


UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "a label": ({"label": ("team",)}, "invalid --label 'team': expected NAME=VALUE"),
    "a variable": ({"env": ("A-B=1",)}, "invalid --env 'A-B': expected NAME=VALUE"),
    "our hyperparameter": (
        {"hyperparameter": ("sagemaker_program=x",), **SCRIPT}, "the container starts",
    ),
    "a metric": ({"metric": ("loss=loss=(",)}, "--metric loss: 'loss=('"),
    "a metric without a group": ({"metric": ("loss=loss",)}, "has no group"),
    "a time": ({"keep_alive": "soon"}, "invalid --keep-alive 'soon'"),
    "attempts": ({"attempts": "some"}, "invalid --attempts 'some'"),
    "a channel": ({"channel": ("train",)}, "invalid --channel 'train': expected NAME=URI"),
    "a bucket of Google": ({"channel": ("a=gs://b/p",)}, "write s3://BUCKET/PREFIX"),
    "a mode": ({"channel": ("a=s3://b/p,mode=Fast",)}, "invalid mode 'Fast'"),
    "an extra": ({"channel": ("a=s3://b/p,shard",)}, "no 'shard' here"),
    "a seed": ({"channel": ("a=s3://b/p,shuffle=x",)}, "invalid shuffle 'x'"),
    "two manifests": ({"channel": ("a=s3://b/p,manifest,augmented",)}, "either plain or"),
    "an augmented file": (
        {"channel": ("a=s3://b/p,augmented,attributes=x",)}, "mode=Pipe only",
    ),
    "no attributes": ({"channel": ("a=s3://b/p,augmented,mode=Pipe",)}, "needs attributes=NAME"),
    "a streamed file system": ({"channel": ("a=efs://fs-1/p,mode=Pipe",)}, "leave mode=Pipe out"),
    "a sharded file system": ({"channel": ("a=fsx://fs-1/p,sharded",)}, "has only the settings rw"),
    "a written bucket": ({"channel": ("a=s3://b/p,rw",)}, "rw is only for file systems"),
    "zipped files": ({"channel": ("a=s3://b/p,gzip",)}, "for mode=Pipe"),
    "two of a name": ({"channel": ("a=s3://b/p", "a=s3://b/q")}, "two channels of that name"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "said"), UNREADABLE.values(), ids=UNREADABLE)
def test_options_that_cannot_be_read_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as refused:
        planned(options=options)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("code", "lacking"), [("import torch", ""), ("import torch, IPython", "ipython")]
)
def test_an_isolated_job_has_what_its_container_has(code: str, lacking: str) -> None:
    plan = planned(laid(), code=code, options={**SCRIPT, "isolate": True})
    told = [f.message for f in plan.findings if f.code == "sagemaker.isolate-packages"]
    ending = f"what its container lacks: {lacking}"
    assert [message.endswith(ending) for message in told] == [True] * bool(lacking)


def test_a_pipe_with_all_its_extras() -> None:
    text = "a=s3://b/m.jsonl,mode=Pipe,augmented,attributes=source-ref+label,recordio,shuffle=7"
    (channel,) = planned(options={"channel": (text,)}).request["InputDataConfig"]
    source = channel["DataSource"]["S3DataSource"]
    assert source["S3DataType"] == "AugmentedManifestFile"
    assert source["AttributeNames"] == ["source-ref", "label"]
    assert (channel["RecordWrapperType"], channel["ShuffleConfig"]) == ("RecordIO", {"Seed": 7})
    plain = planned(options={"channel": ("a=s3://b/m,manifest,mode=Pipe,gzip",)})
    (channel,) = plain.request["InputDataConfig"]
    assert channel["DataSource"]["S3DataSource"]["S3DataType"] == "ManifestFile"
    assert channel["CompressionType"] == "Gzip"
