"""Where a job goes: options before settings, the environment, AWS's files and Studio's."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb.backends.options import read_options
from distrain_nb.config import Config
from distrain_nb.layout import Layout
from distrain_nb.places.sagemaker import studio
from distrain_nb.places.sagemaker.backend import SageMakerBackend
from distrain_nb.places.sagemaker.options import SageMakerJob, SageMakerOptions
from distrain_nb.places.sagemaker.service import SageMakerService
from distrain_nb.places.sagemaker.settings import VARIABLES, Settings, problems, settings_of
from tests.sagemaker.jobs import codes, job, planned

NOWHERE = Layout.of("sagemaker", workers="ml.m5.xlarge")
STUDIO = {
    "AppType": "JupyterLab",
    "DomainId": "d-1",
    "ExecutionRoleArn": "arn:aws:iam::123456789012:role/service-role/of-studio",
    "ResourceArn": "arn:aws:sagemaker:eu-north-1:123456789012:app/d-1/me/jupyterlab/default",
    "ResourceName": "default",
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for AWS's files and Studio's, none of them there, and none of the variables."""
    for name in (*VARIABLES, "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    monkeypatch.setattr(studio, "FILE", tmp_path / "studio.json")
    return tmp_path


def resolved(asked: SageMakerJob) -> Settings:
    """The settings of a job to which belongs what is found on this machine."""
    return settings_of(replace(asked, defaults=SageMakerBackend().defaults(asked.environ)))


def test_each_source_yields_to_the_one_before(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace(job(NOWHERE), options=SageMakerOptions())
    (files / "studio.json").write_text(json.dumps(STUDIO), encoding="utf-8")
    found = resolved(asked)
    assert found.region == "eu-north-1"
    assert found.role == STUDIO["ExecutionRoleArn"]
    assert found.bucket == "sagemaker-eu-north-1-${ACCOUNT}"
    assert found.repository == "${ACCOUNT}.dkr.ecr.eu-north-1.amazonaws.com/distrain"
    (files / "config").write_text("[default]\nregion = us-east-2\n", encoding="utf-8")
    assert resolved(asked).region == "us-east-2"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-1")
    asked = replace(asked, environ=dict(os.environ))
    assert resolved(asked).region == "us-west-1"
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    asked = replace(asked, environ=dict(os.environ))
    assert resolved(asked).region == "us-west-2"
    kept = {"bucket": "kept", "role": "of-config"}
    of_config = read_options(SageMakerOptions, {}, kept)
    asked = replace(asked, config=Config(region="ca-central-1"), options=of_config)
    found = resolved(asked)
    assert (found.region, found.bucket) == ("ca-central-1", "kept")
    assert found.role == "arn:aws:iam::${ACCOUNT}:role/of-config"
    asked = replace(
        asked,
        options=read_options(
            SageMakerOptions, {"bucket": "s3://mine/", "role": "service-role/of-option"}, kept
        ),
        layout=replace(NOWHERE, region="eu-west-1"),
    )
    found = resolved(asked)
    assert (found.region, found.bucket) == ("eu-west-1", "mine")
    assert found.role == "arn:aws:iam::${ACCOUNT}:role/service-role/of-option"


def test_the_active_profile_of_aws_is_read(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace(job(NOWHERE), options=SageMakerOptions())
    text = "[default]\noutput = json\n[profile work]\nregion = eu-west-3\ns3 =\n  a = b%\n"
    (files / "config").write_text(text, encoding="utf-8")
    assert resolved(asked).region == ""
    asked = replace(asked, environ={**asked.environ, "AWS_PROFILE": "work"})
    assert resolved(asked).region == "eu-west-3"
    (files / "config").write_text("no section\n", encoding="utf-8")
    assert resolved(asked).region == ""
    (files / "studio.json").write_text("{", encoding="utf-8")
    assert resolved(asked).role == ""


PARTITIONS = {
    "cn-north-1": ("aws-cn", "amazonaws.com.cn", "console.amazonaws.cn"),
    "eusc-de-east-1": ("aws-eusc", "amazonaws.eu", "console.amazonaws-eusc.eu"),
    "us-gov-west-1": ("aws-us-gov", "amazonaws.com", "console.amazonaws-us-gov.com"),
    "eu-isoe-west-1": ("aws-iso-e", "cloud.adc-e.uk", ""),
}


@pytest.mark.parametrize("region", PARTITIONS)
def test_other_partitions_have_other_names(region: str) -> None:
    name, domain, console = PARTITIONS[region]
    plan = planned(replace(NOWHERE, region=region), options={"role": "r"})
    assert plan.settings.role == f"arn:{name}:iam::${{ACCOUNT}}:role/r"
    assert plan.settings.repository == f"${{ACCOUNT}}.dkr.ecr.{region}.{domain}/distrain"
    assert codes(plan) == []
    links = SageMakerService(plan.spec(), {}).links("job")
    assert bool(links) == bool(console)
    assert all(link.startswith(f"https://{region}.{console}/") for link in links.values())


def test_a_region_that_botocore_does_not_know_may_be_new() -> None:
    typo = planned(replace(NOWHERE, region="us-est-1"))
    (found,) = typo.findings
    assert (found.code, str(found.severity)) == ("sagemaker.unknown-region", "warning")
    assert found.message.endswith("; did you mean us-west-1 or us-east-1?")
    assert codes(planned(replace(NOWHERE, region="us-west-2"))) == []


def test_what_is_missing_is_named_with_each_way_to_set_it() -> None:
    nowhere = resolved(replace(job(NOWHERE), options=SageMakerOptions()))
    found = {finding.code: finding.message for finding in problems(nowhere, rehearsed=False)}
    assert set(found) == {"sagemaker.no-region", "sagemaker.no-role"}
    for way in (
        "--region us-east-1",
        "%distrain config region=us-east-1",
        "AWS_REGION",
        "aws configure set region us-east-1",
    ):
        assert way in found["sagemaker.no-region"]
    assert "--role my-training-role" in found["sagemaker.no-role"]


@pytest.mark.parametrize(
    ("region", "kept", "code"),
    [
        ("us-central1", {}, "sagemaker.region"),
        ("", {"bucket": "bucket/folder"}, "sagemaker.bucket"),
        ("", {"repository": "us-docker.pkg.dev/p/distrain"}, "sagemaker.repository"),
    ],
)
def test_settings_of_another_cloud_are_no_settings_here(
    region: str, kept: dict[str, str], code: str
) -> None:
    options = read_options(SageMakerOptions, {"role": "training"}, kept)
    asked = replace(job(NOWHERE), config=Config(region=region), options=options)
    found = [each.code for each in problems(resolved(asked), rehearsed=False)]
    assert code in found


def test_a_rehearsal_needs_no_account() -> None:
    plan = planned(NOWHERE, rehearse="", options={"role": "", "bucket": ""})
    assert codes(plan) == []
    assert (plan.settings.region, plan.settings.bucket) == ("us-east-1", "rehearsal")
    assert "${ACCOUNT}" not in plan.spec().request["RoleArn"]
