"""Credentials for a registry: from Docker's file and helpers, Google's, Amazon's chain.

Nothing here is stored, and a password is never printed.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distrain_nb.errors import ImageError

_GOOGLE = re.compile(r".+-docker\.pkg\.dev|(?:.+\.)?gcr\.io")
_AMAZON = re.compile(r"\d{12}\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.(?:com|com\.cn|eu)")
_HUB_KEYS = ("index.docker.io", "docker.io")
_IDENTITY_TOKEN = "<token>"  # the user name by which helpers say so


@dataclass(frozen=True)
class Credentials:
    """A user name and a password; or, with `identity_token`, a token that is exchanged."""

    username: str
    password: str = field(repr=False)
    identity_token: bool = False

    def basic(self) -> str:
        """Return the value of a Basic `Authorization` header."""
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


def find(registry: str) -> Credentials | None:
    """Find the credentials for a registry where its user logged in.

    Docker's `config.json` first (its helpers before its own entries), then the cloud's own chain
    for the registries of Google and Amazon. None means anonymous. Raises ImageError when a helper
    or a chain is there and fails.
    """
    credentials = _from_docker(registry)
    if credentials is None and _GOOGLE.fullmatch(registry):
        token = google_token()
        credentials = Credentials("oauth2accesstoken", token) if token else None
    if credentials is None and (match := _AMAZON.fullmatch(registry)):
        credentials = _from_amazon(match[1])
    return credentials


def advice(registry: str) -> str:
    """Say how to log in to this registry."""
    if _GOOGLE.fullmatch(registry):
        return "Log in with `gcloud auth application-default login` (needs google-auth)."
    if _AMAZON.fullmatch(registry):
        return "Set up AWS credentials as for the AWS CLI (needs boto3)."
    return f"Log in with `docker login {registry}`."


def _from_docker(registry: str) -> Credentials | None:
    settings = _docker_settings()
    helper = _entry(settings.get("credHelpers"), registry) or settings.get("credsStore")
    if helper and (login := _ask_helper(str(helper), registry)):
        return login
    entry = _entry(settings.get("auths"), registry)
    if not entry:
        return None
    if entry.get("identitytoken"):
        return Credentials(_IDENTITY_TOKEN, str(entry["identitytoken"]), identity_token=True)
    return _decode(str(entry.get("auth", "")), registry)


def _docker_settings() -> dict[str, Any]:
    folder = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
    path = Path(folder) / "config.json"
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise ImageError(f"{path} is not valid JSON: repair it, or log in again.") from None
    return settings if isinstance(settings, dict) else {}


def _entry(table: Mapping[str, Any] | None, registry: str) -> Any:
    """Return the table's entry for a registry, under any of the spellings in use."""
    names = _HUB_KEYS if registry in _HUB_KEYS else (registry,)
    for key, value in (table or {}).items():
        if re.sub(r"^https?://", "", key).partition("/")[0] in names:
            return value
    return None


def _decode(auth: str, registry: str) -> Credentials | None:
    try:
        name, colon, password = base64.b64decode(auth).decode().partition(":")
    except ValueError:
        colon = ""
    if not auth:
        return None
    if not colon:
        raise ImageError(f"invalid entry for {registry} in Docker's config.json: log in again.")
    return Credentials(name, password.rstrip("\0"))


def _ask_helper(name: str, registry: str) -> Credentials | None:
    program = shutil.which(f"docker-credential-{name}")
    if program is None:
        return None
    server = "https://index.docker.io/v1/" if registry in _HUB_KEYS else registry
    answer = subprocess.run(
        [program, "get"], input=server, capture_output=True, text=True, timeout=60, check=False
    )
    if answer.returncode != 0:
        if "not found" in answer.stdout.lower():
            return None
        output = (answer.stdout + answer.stderr).strip()[:300]
        raise ImageError(f"docker-credential-{name} has no login for {registry}: {output}")
    login = json.loads(answer.stdout)
    token = login["Username"] == _IDENTITY_TOKEN
    return Credentials(login["Username"], login["Secret"], identity_token=token)


def google_token() -> str | None:
    """Return an access token from Google's default credentials; None if nobody is logged in."""
    try:
        auth = importlib.import_module("google.auth")
        transport = importlib.import_module("google.auth.transport.requests")
        absent = importlib.import_module("google.auth.exceptions").DefaultCredentialsError
    except ImportError:
        return None
    try:
        chain, _ = auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    except absent:
        return None
    try:
        chain.refresh(transport.Request())
    except Exception as error:
        raise ImageError(f"cannot use Google's default credentials: {error}") from None
    return str(chain.token)


def _from_amazon(region: str) -> Credentials | None:
    try:
        boto3 = importlib.import_module("boto3")
    except ImportError:
        return None
    try:
        answer = boto3.Session().client("ecr", region_name=region).get_authorization_token()
    except Exception as error:
        raise ImageError(f"AWS gave no token for its registry in {region}: {error}") from None
    return _decode(answer["authorizationData"][0]["authorizationToken"], f"ECR in {region}")
