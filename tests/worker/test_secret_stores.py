"""Secrets that a job names, fetched as a replica does: from a rehearsal's stores."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from distrain_nb.places.sagemaker.stand_in import SYNTAX as SAGEMAKER
from distrain_nb.places.sagemaker.stand_in.aws import aws as services
from distrain_nb.places.sagemaker.stand_in.secrets_manager import create_secrets
from distrain_nb.places.vertex.stand_in.replicas import secret_service_variables
from distrain_nb.places.vertex.stand_in.secret_manager import PERMISSION, secret_manager
from distrain_nb.rehearsal.faults import Faults
from distrain_nb.worker.replica import container, sagemaker, secret_stores
from distrain_nb.worker.replica.secret_stores import SECRETS_VARIABLE, SecretUnavailable, fetch
from tests.image.services.strangers import Answer, host

pytestmark = [pytest.mark.slow, pytest.mark.brief]

VERSION = "projects/p/secrets/hf/versions/latest"


def named(monkeypatch: pytest.MonkeyPatch, **secrets: str) -> None:
    monkeypatch.setenv(SECRETS_VARIABLE, json.dumps(secrets))
    for name in secrets:
        monkeypatch.setenv(name, "not fetched")


def lead(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    for name, value in secret_service_variables(f"127.0.0.1:{port}").items():
        monkeypatch.setenv(name, value)


def test_a_job_without_secrets_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRETS_VARIABLE, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        lead(monkeypatch, nobody.getsockname()[1])
        fetch()
        nobody.setblocking(False)
        with pytest.raises(BlockingIOError):
            nobody.accept()


def test_secret_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, HF_TOKEN=VERSION)
    with secret_manager("") as port:
        lead(monkeypatch, port)
        fetch()
    assert os.environ["HF_TOKEN"] == "rehearsal of hf"


def test_an_account_that_may_not_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    named(monkeypatch, HF_TOKEN=VERSION)
    with secret_manager(PERMISSION) as port:
        lead(monkeypatch, port)
        with pytest.raises(SystemExit) as ended:
            container.prepare()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith(f"no HF_TOKEN: the secret {VERSION} can't be read: 403 Permission")
    assert "needs roles/secretmanager.secretAccessor on it" in said


def test_a_store_that_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_stores, "_PAUSE_S", 0.01)
    named(monkeypatch, HF_TOKEN=VERSION)
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:9")
    with pytest.raises(SecretUnavailable, match=r"no HF_TOKEN: .* is out of reach: .*refused"):
        fetch()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_job_s_login_goes_to_the_store_alone(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """Whatever redirects say."""
    named(monkeypatch, HF_TOKEN=VERSION)
    payload = {"payload": {"data": "c3RvbGVu"}}

    def answer(asked: str, login: str) -> Answer:
        if "/token" in asked:
            return Answer(200, {}, b'{"access_token": "correct-horse"}')
        return Answer(status, {"Location": f"http://{stranger.address}/v1/{VERSION}:access"})

    with (
        host(lambda *_: Answer(200, {}, json.dumps(payload).encode()), "127.0.0.2") as stranger,
        host(answer) as google,
    ):
        lead(monkeypatch, int(google.address.rpartition(":")[2]))
        with pytest.raises(SecretUnavailable, match=f"{status} leads to http://{stranger.address}"):
            fetch()
    assert google.logins == {"Bearer correct-horse"}
    assert stranger.heard == []


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def aws(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host of SageMaker's, with secrets in Secrets Manager."""
    monkeypatch.setattr(sagemaker, "is_training_job", lambda: True)
    for name, value in {
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": store,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(name, value)


def test_secrets_manager(aws: None, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = boto3.client("secretsmanager", region_name="eu-west-1", endpoint_url=store)
    arn = client.create_secret(Name="team/hf", SecretString="plain")["ARN"]
    client.create_secret(Name="team/logins", SecretString='{"wandb": "one of them"}')
    client.create_secret(Name="team/bytes", SecretBinary=b"in bytes")
    named(monkeypatch, A="team/hf", B=arn, C="team/logins#wandb", D="team/bytes")
    fetch()
    found = [os.environ[name] for name in "ABCD"]
    assert found == ["plain", "plain", "one of them", "in bytes"]
    for secret, said in {
        "team/logins#other": "isn't a JSON object with the key 'other'",
        "team/hf#x": "isn't a JSON object with the key 'x'",
        "team/none": "can't be read: .*ResourceNotFoundException",
    }.items():
        named(monkeypatch, A=secret)
        with pytest.raises(SecretUnavailable, match=f"no A: the secret {secret} {said}"):
            fetch()


def test_a_role_that_may_not_read(
    aws: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    faults = Faults.parse("permission=secretsmanager:GetSecretValue", SAGEMAKER)
    named(monkeypatch, A="team/hf")
    with services(tmp_path, faults) as address:
        create_secrets({"Environment": dict(os.environ)}, address, "eu-west-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", address)
        with pytest.raises(SecretUnavailable, match=r"role needs secretsmanager:GetSecretValue"):
            fetch()


def test_an_image_without_boto3(aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    named(monkeypatch, A="team/hf")
    with pytest.raises(SecretUnavailable, match="needs boto3, which this image does not have"):
        fetch()
