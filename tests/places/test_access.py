"""`%distrain doctor` knows where it is, and asks the clouds themselves what the login may do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from distrain_nb.backends.checks import Check, Health
from distrain_nb.health import doctor
from tests.places.conftest import Describe
from tests.places.stand_ins import ACCOUNT, PROJECT, TOKEN, metadata_server, sagemaker, serving

pytestmark = pytest.mark.slow  # processes of their own, and moto

SERVICES = ("CLOUDRESOURCEMANAGER", "STORAGE", "ARTIFACTREGISTRY", "IAM")
WORKBENCH = {"proxy-mode": "service_account", "idle-timeout-seconds": "7200"}

DOCTOR = """
import dataclasses, json
from distrain_nb.health.backends import backends
from distrain_nb.health.machine import local
found = {"place": [dataclasses.astuple(check) for check in local()]}
found |= {topic: [dataclasses.astuple(check) for check in checks] for topic, checks in backends()}
print("FOUND" + json.dumps(found))
"""


def examined(environ: Mapping[str, str]) -> dict[str, dict[str, tuple[str, str, str]]]:
    """What a new process finds, in which Google's client reads its variables; by topic and check:
    the state, what was found, and what to do."""
    ran = subprocess.run(
        [sys.executable, "-c", DOCTOR], env={**os.environ, **environ}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert not ran.returncode, ran.stderr
    found = json.loads(ran.stdout.partition("FOUND")[2])
    return {topic: {what: tuple(rest) for what, *rest in checks} for topic, checks in found.items()}


def google(granted: Mapping[str, list[str]], missing: tuple[str, ...] = ()) -> Any:
    """Google's services: by a part of a resource's path, what is granted on it."""

    def answer(request: BaseHTTPRequestHandler, body: str) -> tuple[int, Any, dict[str, str]]:
        kind = {"Content-Type": "application/json"}
        if request.headers.get("Authorization") != f"Bearer {TOKEN['access_token']}":
            return 401, {"error": {"message": "no token"}}, kind
        if any(part in request.path for part in missing):
            return 404, {"error": {"message": "not found"}}, kind
        query = parse_qs(urlsplit(request.path).query)
        asked = query.get("permissions") or json.loads(body)["permissions"]
        refused = next((names for part, names in granted.items() if part in request.path), [])
        return 200, {"permissions": [each for each in asked if each not in refused]}, kind

    return serving(answer)


def test_the_account_of_a_workbench_instance_is_asked_for_what_it_may() -> None:
    refused = {"/serviceAccounts/": ["iam.serviceAccounts.actAs"],
               f"/{PROJECT}:": ["logging.logEntries.list"]}  # fmt: skip
    with (
        metadata_server(WORKBENCH) as machine,
        google(refused, missing=("/repositories/",)) as services,
    ):
        environ = {"GCE_METADATA_HOST": machine.address, "GCE_METADATA_IP": machine.address}
        for name in SERVICES:
            environ[f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}"] = f"http://{services.address}/"
        found = examined(environ)
    assert found["place"]["place"][1] == "Vertex AI Workbench instance, europe-west4-b"
    assert found["place"]["shut down"][1].startswith("after 2 h without activity")
    vertex = found["Vertex AI"]
    assert vertex["login"][:2] == ("good", f"this machine's account {ACCOUNT}")
    assert "found here (project, region, service_account, bucket," in vertex["settings"][1]
    assert vertex["identity"][:2] == ("good", f"{ACCOUNT}: the login works")
    assert vertex["jobs"][0] == vertex["bucket"][0] == "good"
    assert vertex["log"][:2] == ("missing", "not allowed: logging.logEntries.list")
    assert vertex["log"][2].endswith(
        f"--member=serviceAccount:{ACCOUNT} --role=roles/logging.viewer"
    )
    assert vertex["repository"][:2] == (
        "good", "distrain is not there yet: the first job makes it"
    )  # fmt: skip
    assert vertex["account"][0] == "missing" and "serviceAccountUser" in vertex["account"][2]


SIMULATED = """<SimulatePrincipalPolicyResponse><SimulatePrincipalPolicyResult><EvaluationResults>
{}</EvaluationResults></SimulatePrincipalPolicyResult></SimulatePrincipalPolicyResponse>"""
MEMBER = "<member><EvalActionName>{}</EvalActionName><EvalDecision>{}</EvalDecision></member>"


def iam(decisions: Mapping[str, str]) -> Any:
    """IAM's simulation, in the query protocol; `allowed` where nothing else is said."""

    def answer(request: BaseHTTPRequestHandler, body: str) -> tuple[int, Any, dict[str, str]]:
        asked = [v for k, [v] in parse_qs(body).items() if k.startswith("ActionNames.")]
        members = [MEMBER.format(each, decisions.get(each, "allowed")) for each in asked]
        return 200, SIMULATED.format("".join(members)), {"Content-Type": "text/xml"}

    return serving(answer)


def of_sagemaker() -> dict[str, Check]:
    topics = dict(doctor().topics)
    return {check.subject: check for check in topics["SageMaker"]}


@pytest.fixture
def space(described: Describe, aws: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A space of Studio, in an account that moto keeps."""
    described(
        AppType="JupyterLab", DomainId="d-1", SpaceName="mine",
        ExecutionRoleArn="arn:aws:iam::123456789012:role/of-space",
        ResourceArn="arn:aws:sagemaker:eu-north-1:123456789012:app/d-1/me/jupyterlab/default",
    )  # fmt: skip
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws["sts"])
    monkeypatch.setenv("IMAGE_VERSION", "4.4.1")


def test_the_role_of_a_space_is_asked_for_what_it_may(
    space: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with iam({"iam:PassRole": "implicitDeny"}) as simulation:
        monkeypatch.setenv("AWS_ENDPOINT_URL_IAM", f"http://{simulation.address}")
        found = of_sagemaker()
        place = next(check for check in doctor().checks if check.subject == "place")
    assert place.result == "SageMaker Studio, JupyterLab space, distribution 4.4.1"
    assert found["settings"].state is Health.GOOD
    assert "found here (region, role, bucket," in found["settings"].result
    assert found["identity"].state is Health.GOOD and "123456789012" in found["identity"].result
    assert found["calls"].result == "all that jobs need is allowed"
    assert found["bucket"].result.endswith("is not there yet: the first job makes it")
    assert found["sending"].result == "not allowed: iam:PassRole"
    assert "docs/sagemaker.md" in found["sending"].remedy


def refusing(code: str, message: str) -> Any:
    """A service in the query protocol that refuses whatever it is asked."""

    def answer(request: BaseHTTPRequestHandler, body: str) -> tuple[int, Any, dict[str, str]]:
        error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        return 403, f"<ErrorResponse>{error}</ErrorResponse>", {"Content-Type": "text/xml"}

    return serving(answer)


def test_what_is_refused_is_named_and_what_can_not_be_told_is_said(
    space: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sagemaker({}) as service, refusing("AccessDenied", "no") as identities:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", f"http://{service.address}")
        monkeypatch.setenv("AWS_ENDPOINT_URL_IAM", f"http://{identities.address}")
        found = of_sagemaker()
    assert found["calls"].result == "not allowed: sagemaker:DescribeTrainingJob"
    assert found["sending"].state is Health.MISSING
    assert found["sending"].result.startswith("can't be told before a first job")


def test_a_login_that_is_refused_says_what_to_do(
    space: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refusing("ExpiredToken", "The token has expired.") as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{server.address}")
        found = of_sagemaker()
    assert found["identity"].state is Health.BROKEN
    assert "The token has expired" in found["identity"].result
    assert "aws sso login" in found["identity"].remedy
    assert "calls" not in found


def test_a_proxy_that_answers_in_the_place_of_aws_is_no_login(
    space: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sagemaker({}) as json_where_xml_belongs:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{json_where_xml_belongs.address}")
        assert "the answer is not from AWS" in of_sagemaker()["identity"].result


def test_a_service_that_does_not_answer_is_asked_once() -> None:
    with metadata_server(WORKBENCH) as machine:
        environ = {"GCE_METADATA_HOST": machine.address, "GCE_METADATA_IP": machine.address}
        for name in SERVICES:  # nobody listens there
            environ[f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}"] = "http://127.0.0.1:1"
        vertex = examined(environ)["Vertex AI"]
    assert vertex["identity"][0] == "good"
    assert vertex["service"][:2] == (
        "missing",
        "http://127.0.0.1:1 doesn't answer: ConnectionError",
    )
    assert "jobs" not in vertex and "log" not in vertex


def test_nobody_is_asked_where_there_is_no_login(tmp_path: Path) -> None:
    for topic, checks in doctor().topics:
        if topic in ("Vertex AI", "SageMaker"):
            assert "identity" not in {check.subject for check in checks}
