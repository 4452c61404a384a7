"""Where the notebook runs: its settings without a question, its name, its limit."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import api
from distrain_nb.backends.job import AnyJob
from distrain_nb.backends.notebooks import NotebookPlace, place
from distrain_nb.backends.plugins import find
from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout import Layout
from distrain_nb.magics.lines import _config as show_config
from distrain_nb.magics.verbs import line_options
from distrain_nb.ui.form import Form
from tests.places.conftest import Describe
from tests.places.stand_ins import ACCOUNT, PROJECT, metadata_server, sagemaker

REGION, DOMAIN = "eu-north-1", "d-1"
ARN = f"arn:aws:sagemaker:{REGION}:123456789012:app/{DOMAIN}/me/jupyterlab/default"
INSTANCE_ARN = f"arn:aws:sagemaker:{REGION}:123456789012:notebook-instance/mine"
SPACE = {"AppType": "JupyterLab", "DomainId": DOMAIN, "SpaceName": "mine", "ResourceArn": ARN,
         "ResourceName": "default"}  # fmt: skip


def role(name: str) -> str:
    return f"arn:aws:iam::123456789012:role/service-role/{name}"


def idle(minutes: int) -> dict[str, Any]:
    settings = {"LifecycleManagement": "ENABLED", "IdleTimeoutInMinutes": minutes}
    return {"JupyterLabAppSettings": {"AppLifecycleManagement": {"IdleSettings": settings}}}


ANSWERS: dict[str, dict[str, Any]] = {
    "DescribeSpace": {
        "OwnershipSettings": {"OwnerUserProfileName": "me"},
        "SpaceSharingSettings": {"SharingType": "Private"},
        "SpaceSettings": {"AppType": "JupyterLab"},
    },
    "DescribeUserProfile": {"UserSettings": {"ExecutionRole": role("of-user"), **idle(90)}},
    "DescribeDomain": {
        "DefaultUserSettings": {"ExecutionRole": role("of-domain")},
        "DefaultSpaceSettings": {"ExecutionRole": role("of-shared-spaces"), **idle(120)},
    },
    "DescribeNotebookInstance": {"RoleArn": role("of-instance")},
}


def prepared(on: str, **options: Any) -> api.Prepared:
    machines = {"vertex": {"primary": "n1-standard-4"}, "sagemaker": {"workers": "ml.m5.xlarge"}}
    return api.prepare("import torch\nprint(1)\n", on=on, **{**machines[on], **options})


def settled(on: str, **options: Any) -> dict[str, tuple[str, str]]:
    """What holds for a small job there, with where it comes from; nothing is missing."""
    found = prepared(on, **options)
    assert not errors(found.findings)
    return {
        name: (str(each), each.origin) for name, each in found.backend.settings(found.job).items()
    }


@pytest.mark.parametrize(
    ("fields", "expected", "origin", "title", "limit"),
    [
        (SPACE, "of-user", "DescribeUserProfile", "SageMaker Studio, JupyterLab space", 5400),
        ({**SPACE, "SpaceName": "", "UserProfileName": "me", "AppType": "KernelGateway"},
         "of-user", "DescribeUserProfile", "SageMaker Studio, classic app", None),
        ({"ResourceArn": INSTANCE_ARN, "ResourceName": "mine"}, "of-instance",
         "DescribeNotebookInstance", "SageMaker notebook instance mine", None),
    ],
)  # fmt: skip
def test_a_place_of_aws_has_all_settings_without_a_question(
    fields: dict[str, str], expected: str, origin: str, title: str, limit: float | None,
    described: Describe, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    described(**fields)
    with sagemaker(ANSWERS) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", f"http://{server.address}")
        found, here = settled("sagemaker"), place(os.environ)
        assert found["role"] == (role(expected), origin)
        assert found["region"][0] == REGION
        assert found["bucket"][0] == f"sagemaker-{REGION}-${{ACCOUNT}}"
        assert found["repository"][0].endswith(f".dkr.ecr.{REGION}.amazonaws.com/distrain")
        asked = len(server.asked)
        assert asked, "it was asked"
        settled("sagemaker")
        assert len(server.asked) == asked, "and only once"
    assert here is not None
    assert (here.title, here.idle_s) == (title, limit)


def test_a_shared_space_has_the_role_of_its_domain(
    described: Describe, monkeypatch: pytest.MonkeyPatch
) -> None:
    described(**SPACE)
    shared = {"SpaceSharingSettings": {"SharingType": "Shared"}}
    with sagemaker({**ANSWERS, "DescribeSpace": shared}) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", f"http://{server.address}")
        assert settled("sagemaker")["role"] == (role("of-shared-spaces"), "DescribeDomain")
        here = place({"IMAGE_VERSION": "4.4.1"})
    assert here == NotebookPlace(
        "SageMaker Studio, JupyterLab space, distribution 4.4.1", 7200.0, "DescribeDomain"
    )


def test_a_space_that_may_not_ask_is_told_what_is_missing(
    described: Describe, monkeypatch: pytest.MonkeyPatch
) -> None:
    described(**SPACE)
    with sagemaker({}) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", f"http://{server.address}")
        (missing,) = errors(prepared("sagemaker").findings)
    assert (missing.code, missing.where) == ("sagemaker.no-role", "role")
    described(**SPACE, ExecutionRoleArn=role("of-file"))
    assert settled("sagemaker")["role"][0] == role("of-file")


WORKBENCH = {"proxy-mode": "service_account", "idle-timeout-seconds": "7200", "secret": "no"}


@pytest.mark.parametrize(
    ("attributes", "product", "title", "limit"),
    [
        (WORKBENCH, "", "Vertex AI Workbench instance, europe-west4-b", 7200),
        ({"notebooks-api": "PROD"}, "", "Vertex AI Workbench instance, europe-west4-b", 10800),
        ({**WORKBENCH, "idle-timeout-seconds": ""}, "WORKBENCH_INSTANCE",
         "Vertex AI Workbench instance, europe-west4-b", None),
        ({}, "COLAB_ENTERPRISE", "Colab Enterprise", 10800),
        ({}, "", "Compute Engine, europe-west4-b", None),
    ],
)  # fmt: skip
def test_a_place_of_google_has_all_settings_without_a_question(
    attributes: dict[str, str], product: str, title: str, limit: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("VERTEX_PRODUCT", product)
    with metadata_server(attributes) as server:
        monkeypatch.setenv("GCE_METADATA_HOST", server.address)
        found, here = settled("vertex"), place(os.environ)
        asked = len(server.asked)
        settled("vertex")
        assert len(server.asked) == asked, "asked once"
        assert not any("secret" in path for path in server.asked), "and for no more than it needs"
    assert found["project"] == (PROJECT, "the metadata server")
    assert found["region"] == ("europe-west4", "the metadata server")
    assert found["service_account"] == (ACCOUNT, "the metadata server")
    assert found["bucket"][0] == f"{PROJECT}-distrain-europe-west4"
    assert found["repository"][0] == f"europe-west4-docker.pkg.dev/{PROJECT}/distrain"
    assert here is not None
    assert (here.title, here.idle_s) == (title, limit)


def test_gcloud_and_variables_come_before_the_metadata_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gcloud" / "configurations" / "config_default"
    file.parent.mkdir(parents=True)
    file.write_text("[compute]\nzone = us-east1-c\n", encoding="utf-8")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "of-variable")
    with metadata_server({}, account="") as server:
        monkeypatch.setenv("GCE_METADATA_HOST", server.address)
        found = settled("vertex")
    assert found["project"] == ("of-variable", "the variable GOOGLE_CLOUD_PROJECT")
    assert found["region"] == ("us-east1", str(file))
    assert "service_account" not in found


def test_the_account_of_the_machine_may_be_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    with metadata_server({}) as server:
        monkeypatch.setenv("GCE_METADATA_HOST", server.address)
        assert ACCOUNT in str(prepared("vertex").plan)
        declined = str(prepared("vertex", service_account="none").plan)
    assert "serviceAccount" not in declined and ACCOUNT not in declined


def test_what_says_nothing_of_itself_is_no_place(tmp_path: Path) -> None:
    assert place(os.environ) is None
    (tmp_path / "resource-metadata.json").write_text("[]", encoding="utf-8")
    assert place(os.environ) is None
    (tmp_path / "product_name").write_text("Standard PC\n", encoding="utf-8")
    assert place(os.environ) is None


@pytest.mark.parametrize(
    ("variable", "value", "title"),
    [
        ("COLAB_RELEASE_TAG", "release-colab-external_20261101", "Colab"),
        ("KAGGLE_KERNEL_RUN_TYPE", "Interactive", "Kaggle, interactive session"),
    ],
)
def test_machines_of_the_host_are_nobody_s_project(
    variable: str, value: str, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with metadata_server({}) as server:
        monkeypatch.setenv("GCE_METADATA_HOST", server.address)
        monkeypatch.setenv(variable, value)
        assert not find("vertex").defaults(os.environ)
        here = place(os.environ)
        assert here is not None
        assert (here.title, here.idle_s) == (title, None)
        assert not server.asked
        monkeypatch.delenv(variable)
        monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab-external_20261101")
        monkeypatch.setenv("VERTEX_PRODUCT", "COLAB_ENTERPRISE")
        assert find("vertex").defaults(os.environ)["project"].value == PROJECT


def test_a_server_that_is_no_metadata_server_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with sagemaker({}) as server:
        monkeypatch.setenv("GCE_METADATA_HOST", server.address)
        assert not find("vertex").defaults(os.environ)
    assert not find("vertex").defaults(os.environ), "nobody listens any more"
    monkeypatch.setenv("GCE_METADATA_HOST", "no host")
    assert not find("vertex").defaults(os.environ)


ADMIN = """
SchemaVersion: '1.0'
SageMaker:
  PythonSDK:
    Modules:
      Session: {DefaultS3Bucket: of-admin, DefaultS3ObjectKeyPrefix: team/a}
      RemoteFunction: {ImageUri: 123456789012.dkr.ecr.eu-north-1.amazonaws.com/approved:1}
  TrainingJob:
    RoleArn: arn:aws:iam::123456789012:role/of-admin
    VpcConfig: {Subnets: [subnet-1, subnet-2], SecurityGroupIds: [sg-1]}
    OutputDataConfig: {KmsKeyId: output-key}
    ResourceConfig: {VolumeKmsKeyId: volume-key}
    Tags: [{Key: cost, Value: "12"}, {Key: team, Value: a}]
    Environment: {PROXY: here, LEVEL: info}
    EnableNetworkIsolation: true
    EnableInterContainerTrafficEncryption: true
"""
USER = """
SchemaVersion: '1.0'
SageMaker:
  TrainingJob:
    RoleArn: arn:aws:iam::123456789012:role/of-user
    Environment: {LEVEL: debug}
    EnableNetworkIsolation: false
"""


def configured(tmp_path: Path, admin: str = ADMIN, user: str = USER) -> tuple[str, str]:
    files = (
        tmp_path / "xdg/sagemaker/config.yaml",
        tmp_path / "user/.config/sagemaker/config.yaml",
    )
    for file, text in zip(files, (admin, user), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return str(files[0]), str(files[1])


def request_of(job: AnyJob) -> Any:
    plan: Any = find("sagemaker").plan(job)
    return plan.request


def test_settings_of_an_administrator_are_in_the_request(tmp_path: Path) -> None:
    admin, user = configured(tmp_path)
    found = prepared("sagemaker", region=REGION, label="team=b", workers="2*ml.m5.xlarge")
    assert not found.findings
    request, shown = request_of(found.job), str(found.plan)
    assert request["RoleArn"].endswith("role/of-user")
    assert request["VpcConfig"] == {"Subnets": ["subnet-1", "subnet-2"],
                                    "SecurityGroupIds": ["sg-1"]}  # fmt: skip
    assert request["OutputDataConfig"] == {
        "KmsKeyId": "output-key", "S3OutputPath": "s3://of-admin/team/a/distrain"
    }  # fmt: skip
    assert request["ResourceConfig"]["VolumeKmsKeyId"] == "volume-key"
    tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    assert (tags["cost"], tags["team"]) == ("12", "b"), "what is chosen holds"
    assert request["Environment"]["LEVEL"] == "debug" and request["Environment"]["PROXY"] == "here"
    assert request["EnableInterContainerTrafficEncryption"] is True
    assert "EnableNetworkIsolation" not in request, "the user's file is on top"
    assert "The image is built on 123456789012.dkr.ecr.eu-north-1.amazonaws.com/approved:1" in shown
    assert f"# role arn:aws:iam::123456789012:role/of-user, from {user}\n" in shown
    assert f"# subnet subnet-1, subnet-2, from {admin}\n" in shown
    assert f"# env PROXY, LEVEL, from {user} and {admin}\n" in shown
    for others in ({"rehearse": ""}, {"framework": "pytorch-2.6"}, {"base": "mine:1"}):
        assert "approved:1" not in str(prepared("sagemaker", region=REGION, **others).plan)
    own = prepared("sagemaker", region=REGION, bucket="mine", kms_key="own", role="r").job
    assert request_of(own)["OutputDataConfig"] == {
        "KmsKeyId": "own", "S3OutputPath": "s3://mine/distrain"
    }  # fmt: skip
    assert request_of(own)["ResourceConfig"]["VolumeKmsKeyId"] == "own"


def test_variables_move_the_files_of_the_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(tmp_path, user="{}")
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "config.yaml").write_text(USER, encoding="utf-8")
    monkeypatch.setenv("SAGEMAKER_ADMIN_CONFIG_OVERRIDE", str(moved))
    assert settled("sagemaker", region=REGION)["role"][1] == str(moved / "config.yaml")
    monkeypatch.setenv("SAGEMAKER_ADMIN_CONFIG_OVERRIDE", str(tmp_path / "gone.yaml"))
    with pytest.raises(OptionError, match=r"there is no file .*gone\.yaml"):
        prepared("sagemaker", region=REGION)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SageMaker: [", "can't be read"),
        ("- 1", "is no mapping"),
        ("SageMaker: {TrainingJob: {RoleArn: 5}}", r"TrainingJob\.RoleArn: 5 is not what"),
        ("SageMaker: {TrainingJob: {Tags: [a]}}", "'a' is no tag"),
    ],
)
def test_a_file_of_the_sdk_that_says_something_else_is_named(
    text: str, said: str, tmp_path: Path
) -> None:
    configured(tmp_path, admin=text, user="")
    with pytest.raises(OptionError, match=said) as wrong:
        prepared("sagemaker", region=REGION)
    assert str(tmp_path / "xdg") in str(wrong.value)


def test_a_job_depends_on_what_was_found_when_it_was_prepared(tmp_path: Path) -> None:
    configured(tmp_path)
    job = prepared("sagemaker", region=REGION).job
    configured(tmp_path, admin="", user="")
    assert request_of(job)["RoleArn"].endswith("role/of-user")
    assert not request_of(replace(job, defaults={})).get("RoleArn")


def test_config_says_what_was_found_and_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def shown() -> str:
        options = line_options(["config"])
        assert options is not None
        show_config(options)
        return capsys.readouterr().out

    assert "found" not in shown()
    admin, _ = configured(tmp_path, user="")
    monkeypatch.setenv("AWS_REGION", REGION)
    with metadata_server({}) as server:
        monkeypatch.setenv("GCE_METADATA_HOST", server.address)
        found = shown()
        (region,) = (
            field
            for field in Form(Layout.of("vertex", primary="n1-standard-4")).widget.view["settings"]
            if field["name"] == "region"
        )
    assert region["hint"] == "europe-west4, from the metadata server"
    assert re.search(r"^region = \(found, see below\)", found, re.MULTILINE)
    assert re.search(r"^tensorboard = \(not set\)", found, re.MULTILINE)
    assert "base_image = (found, see below)" in found
    of_aws, of_google = found.partition("SageMaker, found on this machine:\n")[2].split("\n\n")
    assert re.search(rf"^role = \S+role/of-admin +# {admin}$", of_aws, re.MULTILINE)
    assert re.search(rf"^region = {REGION} +# the variable AWS_REGION$", of_aws, re.MULTILINE)
    assert of_google.startswith("Vertex AI, found on this machine:\n")
    assert re.search(rf"^project = {PROJECT} +# the metadata server$", of_google, re.MULTILINE)
    assert re.search(rf"^--subnet = subnet-1, subnet-2 +# {admin}$", of_aws, re.MULTILINE)
    configured(tmp_path, admin="- 1", user="")
    assert f"SageMaker: SageMaker's settings: {admin} is no mapping" in shown()
