"""The bucket and the repository that nobody has named are made, and never taken from others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from google.auth.credentials import AnonymousCredentials

from distrain_nb.errors import DistrainError
from distrain_nb.places.sagemaker.client import client
from distrain_nb.places.sagemaker.resources import make_bucket as make_s3_bucket
from distrain_nb.places.vertex import resources, rest
from distrain_nb.places.vertex.client import storage_client
from distrain_nb.places.vertex.resources import make_bucket, make_repository
from tests.places.stand_ins import serving

BUCKET, REGION = "mine-distrain-us-central1", "us-central1"


@dataclass
class Google:
    """Buckets and repositories: of the project, of others, and those that were made."""

    address: str = ""
    own: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    made: list[str] = field(default_factory=list)
    refuses: str = ""

    def answer(self, request: BaseHTTPRequestHandler, body: str) -> tuple[int, Any, dict[str, str]]:
        status, found = self._answer(request.command, urlsplit(request.path), body)
        return status, found, {"Content-Type": "application/json"}

    def _answer(self, method: str, url: Any, body: str) -> tuple[int, Any]:
        if method == "GET" and url.path == "/storage/v1/b":
            return 200, {"items": [{"name": name, "id": name} for name in sorted(self.own)]}
        if method == "GET":
            name = url.path.rpartition("/")[2]
            return (200, {"name": name}) if name in self.own else (404, {})
        asked = json.loads(body)
        name = asked.get("name") or parse_qs(url.query)["repositoryId"][0]
        if self.refuses:
            return 403, {"error": {"message": self.refuses}}
        if name in self.others | self.own:
            return 409, {"error": {"message": "you do not own it"}}
        self.own.add(name)
        self.made.append(f"{name} {asked.get('location') or asked.get('format')}")
        return 200, {"name": name, "id": name}


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    there = Google()
    with serving(there.answer) as server:
        there.address = f"http://{server.address}"
        monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_ARTIFACTREGISTRY", there.address)
        monkeypatch.setattr(rest, "login", AnonymousCredentials)
        monkeypatch.setattr(resources, "ASK_EVERY_S", 0.01)
        yield there


def test_a_bucket_is_made_in_the_region_once(google: Google) -> None:
    storage = storage_client("mine", {"storage": google.address})
    google.own = {f"{BUCKET}-more"}
    make_bucket(storage, BUCKET, REGION)
    make_bucket(storage, BUCKET, REGION)
    assert google.made == [f"{BUCKET} {REGION}"]


def test_a_bucket_of_another_project_is_not_written_to(google: Google) -> None:
    google.others = {BUCKET}
    with pytest.raises(DistrainError, match="another project has one of that name"):
        make_bucket(storage_client("mine", {"storage": google.address}), BUCKET, REGION)
    google.refuses = "no permission storage.buckets.create"
    with pytest.raises(DistrainError, match=r"no permission storage\.buckets\.create"):
        make_bucket(storage_client("mine", {"storage": google.address}), BUCKET, REGION)


def test_a_repository_is_made_once_and_else_the_line_that_makes_it_is_told(google: Google) -> None:
    make_repository("mine", REGION, "distrain")
    make_repository("mine", REGION, "distrain")
    assert google.made == ["distrain DOCKER"]
    google.own, google.refuses = set(), "no permission"
    line = "gcloud artifacts repositories create distrain --repository-format=docker"
    with pytest.raises(DistrainError, match=f"no permission.*{line} --location={REGION}"):
        make_repository("mine", REGION, "distrain")


def test_a_bucket_of_another_account_is_not_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 compares the owner, where it is asked to; moto does not."""
    made: list[str] = []

    def answer(request: BaseHTTPRequestHandler, body: str) -> tuple[int, Any, dict[str, str]]:
        if request.command == "PUT":
            made.append(request.path)
            return 200, "", {}
        expected = request.headers.get("x-amz-expected-bucket-owner")
        return {"/free": 404, "/ours": 200}.get(request.path, 200 if not expected else 403), "", {}

    with serving(answer) as server:
        s3 = client("s3", "us-west-2", {"s3": f"http://{server.address}"})
        for name in ("free", "ours"):
            make_s3_bucket(s3, name, "us-west-2", "123456789012")
        with pytest.raises(DistrainError, match="Can't make the bucket taken"):
            make_s3_bucket(s3, "taken", "us-west-2", "123456789012")
    assert made == ["/free"]
