"""The builder for those with neither Docker nor a plain base: Google Cloud Build, by REST.

Source of the request's form: the discovery document of the Cloud Build API, v1.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

import httpx

from distrain_nb.errors import ImageError
from distrain_nb.image.builders.docker import describe, write_context
from distrain_nb.image.image import Image
from distrain_nb.image.layers import write_layer
from distrain_nb.image.progress import Listener, announce
from distrain_nb.image.recipe import ProgramFiles, Recipe
from distrain_nb.image.registry.credentials import google_token
from distrain_nb.image.registry.reference import Reference
from distrain_nb.image.registry.retry import check_busy, with_retries
from distrain_nb.scratch import Scratch

_DOCKER = "gcr.io/cloud-builders/docker"
_POLL_S = 2.0
_UNFINISHED = frozenset({"STATUS_UNKNOWN", "PENDING", "QUEUED", "WORKING"})


@dataclass(frozen=True)
class CloudBuild:
    """The place of a build: a project, a bucket for the context, a region, a limit in seconds."""

    project: str
    bucket: str
    region: str = "global"
    timeout: int = 3600

    @property
    def parent(self) -> str:
        """The resource that builds belong to."""
        return f"projects/{self.project}/locations/{self.region}"

    def request(self, recipe: Recipe, context: str) -> dict[str, Any]:
        """Return the body of `projects.locations.builds.create`; `context` is an object's name."""
        target = str(Reference.parse(recipe.target))
        return {
            "source": {"storageSource": {"bucket": self.bucket, "object": context}},
            "steps": [{"name": _DOCKER, "args": ["build", "--tag", target, "."]}],
            "images": [target],
            "timeout": f"{self.timeout}s",
            "tags": ["distrain-nb"],
        }


def build(
    program: ProgramFiles, recipe: Recipe, where: CloudBuild, progress: Listener | None = None
) -> Image:
    """Send the context to the bucket, let Cloud Build build and push, and wait for the end.

    Raises ImageError if nobody is logged in, if Google refuses, or if the build fails.
    """
    began = time.monotonic()
    announce(progress, "packing")
    with Scratch("cloudbuild") as folder:
        context = folder / "context"
        context.mkdir()
        write_context(program, recipe, context)
        packed = write_layer(folder / "context.tar.gz", {p.name: p for p in context.iterdir()})
        name = f"distrain-nb/{packed.digest[7:39]}.tar.gz"
        with _session() as http:
            announce(progress, "sending the context")
            _upload(http, where.bucket, name, packed.path.read_bytes())
            announce(progress, "building in Cloud Build")
            result = _run(http, where, where.request(recipe, name))
    target = Reference.parse(recipe.target)
    return describe(target.at(_digest(result)), recipe, time.monotonic() - began)


def _session() -> httpx.Client:
    token = google_token()
    if token is None:
        raise ImageError(
            "Cloud Build needs a Google login (and google-auth): run "
            "`gcloud auth application-default login`."
        )
    return httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=60)


def _upload(http: httpx.Client, bucket: str, name: str, data: bytes) -> None:
    """Upload an object. The variable is the one that Google's storage libraries read."""
    host = os.environ.get("STORAGE_EMULATOR_HOST", "https://storage.googleapis.com")
    url = f"{host}/upload/storage/v1/b/{bucket}/o"
    query = {"uploadType": "media", "name": name}
    _ask(http, "POST", url, "Sending the context", params=query, content=data)


def _run(http: httpx.Client, where: CloudBuild, body: dict[str, Any]) -> dict[str, Any]:
    """Start a build and wait for it. The variable is the one that gcloud reads."""
    host = os.environ.get(
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBUILD", "https://cloudbuild.googleapis.com/"
    )
    url = f"{host.rstrip('/')}/v1/{where.parent}/builds"
    build = _ask(http, "POST", url, "Starting the build", json=body)["metadata"]["build"]
    while build["status"] in _UNFINISHED:
        time.sleep(_POLL_S)
        build = _ask(http, "GET", f"{url}/{build['id']}", "Asking for the build")
    if build["status"] != "SUCCESS":
        why = (build.get("failureInfo") or {}).get("detail") or build.get("statusDetail") or ""
        log = build.get("logUrl", "")
        raise ImageError(f"Cloud Build ended with {build['status']}. {why} {log}".strip())
    return dict(build)


def _ask(http: httpx.Client, method: str, url: str, action: str, **more: Any) -> dict[str, Any]:
    def send() -> dict[str, Any]:
        response = http.request(method, url, **more)
        check_busy(response, action)
        if response.is_success:
            return dict(response.json())
        try:
            words = response.json()["error"]["message"]
        except (ValueError, LookupError, TypeError):
            words = response.reason_phrase
        raise ImageError(f"{action}: {response.status_code} {words}")

    return with_retries(action, send)


def _digest(result: dict[str, Any]) -> str:
    try:
        return str(result["results"]["images"][0]["digest"])
    except LookupError:
        raise ImageError("Cloud Build succeeded but reported no image.") from None
