"""Secrets that a job's variables name: fetched in the replica, with the job's own account.

`DISTRAIN_SECRETS` is JSON: by the variable's name the secret's, in Google Cloud's Secret Manager
(`projects/P/secrets/S/versions/V`), or in a SageMaker training job in AWS Secrets Manager
(its name or ARN, and after `#` a key, where the secret is a JSON object).

Source of Google's calls: the metadata server's documentation, and the discovery document of the
Secret Manager API, v1. `GCE_METADATA_HOST` and
`CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER` lead elsewhere, as with Google's own tools.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import time
from typing import TYPE_CHECKING, Any, Dict

from distrain_nb.worker.replica import sagemaker

if TYPE_CHECKING:
    from urllib.error import HTTPError

SECRETS_VARIABLE = "DISTRAIN_SECRETS"
_METADATA = "metadata.google.internal"
_SECRET_MANAGER = "https://secretmanager.googleapis.com/"
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
_TIMEOUT_S, _ATTEMPTS, _PAUSE_S = 30, 5, 1.0


class SecretUnavailable(Exception):
    """A secret can't be had: which one, and why."""


def fetch() -> None:
    """Put every secret that the job names into its variable. Raises SecretUnavailable."""
    named: Dict[str, str] = json.loads(os.environ.get(SECRETS_VARIABLE) or "{}")
    read = _amazons if sagemaker.is_training_job() else _googles
    for variable, secret in named.items():
        try:
            os.environ[variable] = read(secret)
        except SecretUnavailable as error:
            raise SecretUnavailable(f"no {variable}: the secret {secret} {error}") from None


def _googles(secret: str) -> str:
    metadata = os.environ.get("GCE_METADATA_HOST", _METADATA)
    answer = _ask("http://" + metadata + _TOKEN, {"Metadata-Flavor": "Google"})
    store = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER", _SECRET_MANAGER)
    url = f"{store.rstrip('/')}/v1/{secret}:access"
    version = _ask(url, {"Authorization": "Bearer " + answer["access_token"]})
    return base64.b64decode(version["payload"]["data"]).decode()


def _ask(url: str, headers: Dict[str, str]) -> Dict[str, Any]:
    """Return the JSON that is answered; a server that is busy or out of reach is asked again."""
    # Few jobs need it, and it brings TLS.
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class NoRedirects(HTTPRedirectHandler):
        """Refuses redirects: the request's headers are for its own host alone."""

        def redirect_request(self, *_: Any) -> None:
            return None

    opener = build_opener(NoRedirects)
    for remaining in reversed(range(_ATTEMPTS)):
        try:
            request = Request(url, headers=headers)
            with opener.open(request, timeout=_TIMEOUT_S) as answer:
                content: Dict[str, Any] = json.loads(answer.read())
                return content
        except HTTPError as error:
            if error.code not in (429, 500, 502, 503, 504) or not remaining:
                raise SecretUnavailable(_refusal(error)) from None
        except OSError as error:
            if not remaining:
                raise SecretUnavailable(f"is out of reach: {error}") from None
        time.sleep(_PAUSE_S)
    raise AssertionError("unreachable")


def _refusal(error: HTTPError) -> str:
    """Return the service's words, the role that is missing where one is, and where a redirect
    leads."""
    if 300 <= error.code < 400:
        target = error.headers.get("Location", "nowhere")
        return f"can't be read: {error.code} leads to {target}, which must not have the job's login"
    try:
        message = json.loads(error.read())["error"]["message"]
    except (ValueError, LookupError, TypeError):
        message = error.reason
    hint = ""
    if error.code == 403:
        hint = ". The job's service account needs roles/secretmanager.secretAccessor on it"
    return f"can't be read: {error.code} {message}{hint}"


def _amazons(secret: str) -> str:
    name, _, key = secret.partition("#")
    try:
        boto3 = importlib.import_module("boto3")
    except ImportError:
        raise SecretUnavailable("needs boto3, which this image does not have") from None
    region = name.split(":")[3] if name.startswith("arn:") else os.environ.get("AWS_REGION")
    try:
        client = boto3.client("secretsmanager", region_name=region)
        answer = client.get_secret_value(SecretId=name)
    except Exception as error:  # botocore's, which may not be imported by name here
        hint = ""
        if "AccessDenied" in str(error):
            hint = ". The job's role needs secretsmanager:GetSecretValue on it"
        raise SecretUnavailable(f"can't be read: {error}{hint}") from None
    text = answer.get("SecretString") or answer["SecretBinary"].decode()
    return _value(text, key) if key else str(text)


def _value(text: str, key: str) -> str:
    try:
        return str(json.loads(text)[key])
    except (ValueError, LookupError, TypeError):
        raise SecretUnavailable(f"isn't a JSON object with the key {key!r}") from None
