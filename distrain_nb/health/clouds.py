"""What the clouds' backends need: their packages, a login, and settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb import api
from distrain_nb.findings import errors
from distrain_nb.health.check import Check, State, packages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Unpack

    from distrain_nb.api.keywords import Options

VERTEX_PACKAGES = ("google-cloud-aiplatform", "google-cloud-logging", "google-cloud-storage")


def vertex() -> Iterator[Check]:
    """Vertex AI's."""
    yield packages("packages", VERTEX_PACKAGES, "vertex")
    yield _login(
        _google_login(),
        "run gcloud auth application-default login; on Workbench the machine's account serves",
    )
    yield _settings(on="vertex", primary="n1-standard-4")


def sagemaker() -> Iterator[Check]:
    """SageMaker's."""
    yield packages("packages", ("boto3",), "sagemaker")
    yield _login(_aws_login(), "run aws configure or aws sso login; in Studio its role serves")
    yield _settings(on="sagemaker", workers="ml.m5.xlarge")


def _login(found: str, remedy: str) -> Check:
    if found:
        return Check("login", State.GOOD, found)
    return Check("login", State.MISSING, "none on this machine's disk or in its variables", remedy)


def _google_login() -> str:
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if named:
        return f"GOOGLE_APPLICATION_CREDENTIALS, {named}"
    folder = Path(os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud")
    kept = folder / "application_default_credentials.json"
    return str(kept) if kept.exists() else ""


def _aws_login() -> str:
    variables = ("AWS_ACCESS_KEY_ID", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                 "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE",
                 "AWS_PROFILE")  # fmt: skip
    named = next((name for name in variables if os.environ.get(name)), "")
    if named:
        return f"the variable {named}"
    kept = Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws/credentials")
    return str(kept) if kept.exists() else ""


def _settings(**job: Unpack[Options]) -> Check:
    """What a small job would be refused for: what has not been set."""
    wrong = errors(api.check("pass", **job))
    if not wrong:
        return Check("settings", State.GOOD, "complete: %distrain config shows and changes them")
    names = [finding.where for finding in wrong]
    remedy = f"%distrain config {' '.join(f'{name}=…' for name in names)} keeps them"
    return Check("settings", State.MISSING, f"not set: {', '.join(names)}", remedy)
