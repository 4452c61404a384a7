"""A guard that keeps credentials out of images: by the names of files and by what is in them."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from distrain_nb.errors import CheckFailed
from distrain_nb.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

_LOOKED_AT = 1 << 20
_HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist")
_NAMES = {
    ".env": "an environment file",
    ".env.*": "an environment file",
    "*.aws/credentials": "AWS credentials",
    "*.aws/config": "AWS settings, which may hold credentials",
    "*gcloud/application_default_credentials.json": "Google credentials",
    "*gcloud/credentials.db": "Google credentials",
    "*gcloud/access_tokens.db": "Google credentials",
    "*.kube/config": "a kubeconfig",
    "kubeconfig": "a kubeconfig",
    "*.kubeconfig": "a kubeconfig",
    "*.docker/config.json": "Docker's logins",
    "*huggingface/token": "a Hugging Face token",
    "id_rsa": "a private key",
    "id_dsa": "a private key",
    "id_ecdsa": "a private key",
    "id_ed25519": "a private key",
    "*.p12": "a private key",
    "*.pfx": "a private key",
    ".netrc": "logins",
    "_netrc": "logins",
    ".pypirc": "logins",
    ".git-credentials": "logins",
    ".pgpass": "logins",
}
_CONTENT = (
    (
        re.compile(
            rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n)+[A-Za-z0-9+/=]{4}"
        ),
        "a private key",
    ),
    (re.compile(rb'"type"\s*:\s*"service_account"'), "a Google service account key"),
    (re.compile(rb'"type"\s*:\s*"authorized_user"'), "Google credentials"),
    (re.compile(rb"(?i)aws_secret_access_key\W{1,6}[A-Za-z0-9/+]{40}\b"), "AWS credentials"),
    (re.compile(rb"(?m)^\s*(?:client-key-data|token)\s*:\s*\S{20,}"), "a kubeconfig"),
    (re.compile(rb"_authToken\s*=\s*\S{8,}"), "a registry's login"),
    (re.compile(rb'"auth"\s*:\s*"[A-Za-z0-9+/=]{8,}"'), "Docker's logins"),
)
_SECRET_NAME = re.compile(
    r"AWS_(SECRET_ACCESS_KEY|SESSION_TOKEN)|(.*_)?(API_?KEY|ACCESS_TOKEN|AUTH_TOKEN|PASSWORD|SECRET)"
    r"|(HF|GITHUB|GITLAB|HUGGING_FACE_HUB)_TOKEN",
    re.IGNORECASE,
)


def refuse_secrets(
    folder: Path, environment: Mapping[str, str] | None = None, allowed: Collection[str] = ()
) -> None:
    """Raise CheckFailed, with a finding for each, if something that looks like a secret is there.

    `allowed` are names that may go all the same: paths below `folder`, or variables.
    """
    found = {**dict(_in_files(folder)), **_in_environment(environment or {})}
    findings = tuple(_finding(name, kind) for name, kind in found.items() if name not in allowed)
    if findings:
        raise CheckFailed(findings)


def is_secret_name(variable: str) -> bool:
    """Whether a variable of this name usually holds a secret."""
    return _SECRET_NAME.fullmatch(variable) is not None


def _in_files(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            if kind := _by_name(name) or _by_content(path):
                yield name, kind


def _by_name(name: str) -> str | None:
    last = name.rpartition("/")[2]
    if last in _HARMLESS:
        return None
    for pattern, kind in _NAMES.items():
        if fnmatchcase(name if "/" in pattern else last, pattern):
            return kind
    return None


def _by_content(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(_LOOKED_AT)
    return next((kind for pattern, kind in _CONTENT if pattern.search(head)), None)


def _in_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: "a secret in a variable"
        for name, value in environment.items()
        if value and is_secret_name(name)
    }


def _finding(name: str, kind: str) -> Finding:
    return Finding(
        "image-secret",
        Severity.ERROR,
        name,
        f"{name} looks like {kind}, and whoever can pull an image can read what is in it. Leave it "
        f"out; if it must be in the image, name it with --allow-secret {name}.",
    )
