"""Logging in: Basic and token registries for real, and where credentials are found."""

from __future__ import annotations

import base64
import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from distrain_nb.errors import ImageError
from distrain_nb.image.builders.append import build
from distrain_nb.image.recipe import Recipe
from distrain_nb.image.registry import credentials
from distrain_nb.image.registry.auth import AuthenticationError

from .programs import SimpleProgram
from .services.google import token_endpoint, write_key
from .services.processes import run
from .services.registries import PASSWORD, USER, htpasswd, registry
from .services.tokens import REFRESH_TOKEN, TokenServer, token_server

pytestmark = pytest.mark.brief

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .services.bases import BaseImage
    from .services.docker import Docker

GOOD = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def logged_in(tmp_path: Path, **settings: object) -> None:
    """Write Docker's config.json where DOCKER_CONFIG points to in these tests."""
    folder = Path(os.environ["DOCKER_CONFIG"])
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))


def copy(source: str, target: str) -> None:
    """Copy an image with skopeo, which reads the same logins."""
    tls = ("--src-tls-verify=false", "--dest-tls-verify=false")
    auth = f"--dest-creds={USER}:{PASSWORD}"
    run("skopeo", "copy", "-q", *tls, auth, f"docker://{source}", f"docker://{target}")


def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A credential helper called `tests` on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "docker-credential-tests"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.fixture
def closed(tmp_path: Path, tiny_base: str) -> Iterator[str]:
    """A registry that wants Basic authentication, with the base in it."""
    with registry(tmp_path / "closed", htpasswd(tmp_path / "closed")) as host:
        copy(tiny_base, f"{host}/bases/python:3.11")
        yield host


def test_basic(closed: str, tmp_path: Path) -> None:
    logged_in(tmp_path, auths={closed: {"auth": GOOD}})
    image = build(SimpleProgram(), Recipe(f"{closed}/bases/python:3.11", f"{closed}/job:1"))
    assert image.layers[0].how == "mounted"
    creds = f"--creds={USER}:{PASSWORD}"
    run("skopeo", "inspect", "--tls-verify=false", creds, f"docker://{image.uri}")


def test_without_a_login(closed: str) -> None:
    with pytest.raises(AuthenticationError, match=rf"requires a login.*docker login {closed}"):
        build(SimpleProgram(), Recipe(f"{closed}/bases/python:3.11", f"{closed}/job:1"))


def test_with_a_wrong_password(closed: str, tmp_path: Path) -> None:
    wrong = base64.b64encode(b"ada:top-secret-guess").decode()
    logged_in(tmp_path, auths={f"http://{closed}/v2/": {"auth": wrong}})
    with pytest.raises(AuthenticationError) as caught:
        build(SimpleProgram(), Recipe(f"{closed}/bases/python:3.11", f"{closed}/job:1"))
    told = f"{caught.value} {caught.value!r} {caught.value.__context__!r}"
    assert "401" in told
    assert "top-secret-guess" not in told
    assert wrong not in told


def test_a_base_of_an_open_registry_goes_to_a_closed_one(
    tiny_base: str, closed: str, tmp_path: Path
) -> None:
    logged_in(tmp_path, auths={closed: {"auth": GOOD}})
    assert build(SimpleProgram(), Recipe(tiny_base, f"{closed}/job:2")).layers[0].how == "copied"


def test_logged_in_by_docker_itself(closed: str, docker: Docker) -> None:
    docker("login", "-u", USER, "-p", PASSWORD, closed, DOCKER_CONFIG=os.environ["DOCKER_CONFIG"])
    assert credentials.find(closed) == credentials.Credentials(USER, PASSWORD)


@contextmanager
def guarded(tmp_path: Path, tokens: TokenServer, tiny: BaseImage) -> Iterator[str]:
    """A registry behind a token server, with the base in it."""
    folder = tmp_path / "guarded"
    with registry(folder) as host:  # filled while it is open
        tiny.push(f"{host}/bases/python:3.11")
    with token_server(tmp_path, tokens) as auth, registry(folder, auth) as host:
        yield host


def test_a_token_with_both_scopes_in_one_request(tmp_path: Path, tiny: BaseImage) -> None:
    tokens = TokenServer()
    with guarded(tmp_path, tokens, tiny) as host:
        logged_in(tmp_path, auths={host: {"auth": GOOD}})
        image = build(SimpleProgram(), Recipe(f"{host}/bases/python:3.11", f"{host}/team/job:1"))
    assert image.layers[0].how == "mounted"
    both = ("repository:team/job:pull,push", "repository:bases/python:pull")
    assert tokens.requests == [both]


def test_a_token_that_runs_out_is_renewed_before(tmp_path: Path, tiny: BaseImage) -> None:
    tokens = TokenServer(says=0.01)
    with guarded(tmp_path, tokens, tiny) as host:
        logged_in(tmp_path, auths={host: {"auth": GOOD}})
        build(SimpleProgram(), Recipe(f"{host}/bases/python:3.11", f"{host}/team/job:1"))
    assert len(tokens.requests) > 3


def test_an_identity_token_is_exchanged(
    tmp_path: Path, tiny: BaseImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = json.dumps({"Username": "<token>", "Secret": REFRESH_TOKEN})
    helper(tmp_path, monkeypatch, f"cat >/dev/null; echo '{answer}'")
    with guarded(tmp_path, TokenServer(), tiny) as host:
        logged_in(tmp_path, credHelpers={host: "tests"})
        build(SimpleProgram(), Recipe(f"{host}/bases/python:3.11", f"{host}/team/job:1"))
        logged_in(tmp_path, auths={host: {"identitytoken": REFRESH_TOKEN}})
        build(SimpleProgram("2"), Recipe(f"{host}/bases/python:3.11", f"{host}/team/job:1"))


def test_a_token_server_that_refuses(tmp_path: Path, tiny: BaseImage) -> None:
    with guarded(tmp_path, TokenServer(), tiny) as host:
        message = r"doesn't let an anonymous user do this: repository:team/job:pull,push"
        with pytest.raises(AuthenticationError, match=message):
            build(SimpleProgram(), Recipe(f"{host}/bases/python:3.11", f"{host}/team/job:1"))


def test_a_token_server_that_does_not_understand(tmp_path: Path, tiny: BaseImage) -> None:
    with guarded(tmp_path, TokenServer(scopes=5), tiny) as host:
        logged_in(tmp_path, auths={host: {"auth": GOOD}})
        with pytest.raises(AuthenticationError, match=r"token server 127\.0\.0\.1 answered 400"):
            build(SimpleProgram(), Recipe(f"{host}/bases/python:3.11", f"{host}/team/job:1"))


def test_nobody_is_logged_in() -> None:
    assert credentials.find("registry.example.com") is None


@pytest.mark.parametrize(
    "settings",
    [
        {"credHelpers": {"registry.example.com": "tests"}},
        {"credsStore": "tests"},
        {"credsStore": "tests", "auths": {"registry.example.com": {}}},
    ],
)
def test_a_helper_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object]
) -> None:
    script = 'read server; echo "{\\"Username\\": \\"me\\", \\"Secret\\": \\"for $server\\"}"'
    helper(tmp_path, monkeypatch, script)
    logged_in(tmp_path, **settings)
    found = credentials.find("registry.example.com")
    assert found == credentials.Credentials("me", "for registry.example.com")
    assert "for registry" not in repr(found)


def test_docker_hub_under_its_old_name(tmp_path: Path) -> None:
    logged_in(tmp_path, auths={"https://index.docker.io/v1/": {"auth": GOOD}})
    assert credentials.find("docker.io") == credentials.Credentials(USER, PASSWORD)


def test_a_helper_that_knows_nothing_leaves_it_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper(tmp_path, monkeypatch, "echo credentials not found in native keychain; exit 1")
    logged_in(tmp_path, credsStore="tests", auths={"registry.example.com": {"auth": GOOD}})
    assert credentials.find("registry.example.com") == credentials.Credentials(USER, PASSWORD)


def test_a_helper_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper(tmp_path, monkeypatch, "echo your session has expired >&2; exit 1")
    logged_in(tmp_path, credsStore="tests")
    with pytest.raises(ImageError, match=r"docker-credential-tests.*session has expired"):
        credentials.find("registry.example.com")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    logged_in(tmp_path)
    (Path(os.environ["DOCKER_CONFIG"]) / "config.json").write_text("{")
    with pytest.raises(ImageError, match=r"config\.json is not valid JSON"):
        credentials.find("registry.example.com")
    logged_in(tmp_path, auths={"registry.example.com": {"auth": "not base 64"}})
    with pytest.raises(ImageError, match=r"registry\.example\.com in Docker's config\.json"):
        credentials.find("registry.example.com")


def google_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    write_key(tmp_path / "key.json", endpoint)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))


@pytest.mark.parametrize("host", ["europe-docker.pkg.dev", "gcr.io", "eu.gcr.io"])
def test_googles_default_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    with token_endpoint({"access_token": "ya29.x", "expires_in": 3600}) as endpoint:
        google_login(tmp_path, monkeypatch, endpoint)
        found = credentials.find(host)
    assert found == credentials.Credentials("oauth2accesstoken", "ya29.x")


def test_googles_credentials_that_have_expired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with token_endpoint({"error": "invalid_grant"}) as endpoint:
        google_login(tmp_path, monkeypatch, endpoint)
        with pytest.raises(ImageError, match="invalid_grant"):
            credentials.find("gcr.io")


def test_amazons_token(monkeypatch: pytest.MonkeyPatch) -> None:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        address = "http://{}:{}".format(*server.get_host_and_port())
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }.items():
            monkeypatch.setenv(name, value)
        found = credentials.find("123456789012.dkr.ecr.eu-west-1.amazonaws.com")
    finally:
        server.stop()
    assert found is not None
    assert found.username == "AWS"
    assert found.password


@pytest.mark.parametrize("domain", ["amazonaws.com", "amazonaws.com.cn", "amazonaws.eu"])
def test_amazon_without_credentials(
    domain: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(ImageError, match="AWS gave no token for its registry in eu-west-1"):
        credentials.find(f"123456789012.dkr.ecr.eu-west-1.{domain}")
