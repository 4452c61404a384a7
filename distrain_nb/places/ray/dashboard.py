"""The dashboard of a Ray cluster: its Jobs API, its nodes, and the files beside its logs, by HTTP.

An address that begins with http needs no package of Ray's. Of another, such as `anyscale://…`,
Ray's package knows which address and headers it stands for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

import httpx

from distrain_nb.backends.remote.service import Denied, Gone, Unanswered
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.places.ray.demand import Node

if TYPE_CHECKING:
    from typing import Protocol

    from distrain_nb.types import Json, JsonObject

    class ClusterInfo(Protocol):
        address: str
        headers: Mapping[str, str] | None
        cookies: Mapping[str, str] | None


DEFAULT = "http://127.0.0.1:8265"
ASK_S, BRIEF_S = 60.0, 3.0
_NOT_THERE = ("A file is not found", "does not exist", "not found")
_CREDENTIALS = ("headers", "cookies", "verify")
_LONGEST = 2000
LOGIN = (
    "a token is sent from RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token, unless "
    "RAY_AUTH_MODE is set to something other than token; --credentials FILE has other logins"
)


@dataclass(frozen=True)
class Headers:
    """What a request has besides; `verify` is a file of certificates, or whether to look."""

    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    verify: bool | str = True

    @classmethod
    def find(cls, file: str, environ: Mapping[str, str]) -> Headers:
        """Read that file, Ray's own variables RAY_JOB_HEADERS and RAY_AUTH_TOKEN, and Ray's file of
        a token. As Ray from 2.60 on, send a token that is there unless RAY_AUTH_MODE says
        otherwise. Raises OptionError."""
        login = environ.get("RAY_JOB_HEADERS", "")
        headers = cast("dict[str, str]", _object(login, "RAY_JOB_HEADERS") if login else {})
        fields: Mapping[str, Json] = {}
        if file:
            try:
                text = Path(file).expanduser().read_text(encoding="utf-8")
            except OSError as error:
                raise OptionError(f"--credentials {file}: {error.strerror}") from None
            fields = _object(text, f"--credentials {file}")
            unknown = sorted(fields.keys() - set(_CREDENTIALS))
            if unknown:
                names = ", ".join(_CREDENTIALS)
                raise OptionError(f"--credentials {file}: unknown {unknown[0]!r}, expected {names}")
        headers = {**headers, **cast("dict[str, str]", fields.get("headers", {}))}
        if all(name.lower() != "authorization" for name in headers):
            token = _token(environ)
            headers |= {"Authorization": f"Bearer {token}"} if token else {}
        cookies = cast("dict[str, str]", fields.get("cookies", {}))
        return cls(headers, cookies, cast("bool | str", fields.get("verify", True)))


def _token(environ: Mapping[str, str]) -> str:
    if environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return ""
    if environ.get("RAY_AUTH_TOKEN"):
        return environ["RAY_AUTH_TOKEN"]
    path = Path(environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _object(text: str, name: str) -> Mapping[str, Json]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OptionError(f"{name}: expected a JSON object")
    return value


def is_http(address: str) -> bool:
    """Return whether an address is asked as it stands."""
    return address.startswith(("http://", "https://"))


@dataclass(frozen=True)
class Dashboard:
    """Raises Unanswered where there is no answer, Denied, Gone, and DistrainError with the
    cluster's own words."""

    address: str
    credentials: Headers = field(default_factory=Headers, repr=False)
    seconds: float = ASK_S

    @classmethod
    def at(cls, address: str, credentials: Headers) -> Dashboard:
        """Find out which address and headers an address stands for. Raises DistrainError."""
        if is_http(address):
            return cls(address.rstrip("/"), credentials)
        try:
            from ray.dashboard.modules.dashboard_sdk import parse_cluster_info
        except ImportError:
            raise DistrainError(
                f"{address}: only Ray's package knows such an address: pip install "
                "'distrain-nb[ray]'"
            ) from None
        try:
            info: ClusterInfo = parse_cluster_info(
                address, headers=dict(credentials.headers), cookies=dict(credentials.cookies)
            )
        except Exception as error:  # of another package's module
            raise DistrainError(f"{address}: {error}") from None
        login = Headers(
            dict(info.headers or {}), dict(info.cookies or {}), credentials.verify
        )  # fmt: skip
        return cls(info.address.rstrip("/"), login)

    def version(self) -> tuple[str, str]:
        """Return the versions of Ray and of Python there."""
        ray = cast("JsonObject", self._ask("GET", "/api/version").json())
        about = cast("dict[str, JsonObject]", self._ask("GET", "/api/v0/cluster_metadata").json())
        return str(ray["ray_version"]), str(about["data"]["pythonVersion"])

    def nodes(self) -> list[Node]:
        """Return the nodes that are alive; what of them is free, only jobs of the cluster know."""
        query = {"detail": "true", "limit": "10000"}
        answer = self._ask("GET", "/api/v0/nodes", params=query).json()
        return [
            Node(row["node_name"], row["resources_total"], None, row["labels"])
            for row in answer["data"]["result"]["result"]
            if row["state"] == "ALIVE"
        ]

    def has_package(self, name: str) -> bool:
        """Return whether the cluster has an uploaded package."""
        try:
            self._ask("GET", f"/api/packages/gcs/{name}")
        except Gone:
            return False
        return True

    def upload(self, name: str, data: bytes) -> None:
        """Bring a package there."""
        self._ask("PUT", f"/api/packages/gcs/{name}", content=data)

    def submit(self, request: JsonObject) -> str:
        """Send a job and return its id."""
        answer = self._ask("POST", "/api/jobs/", json=request)
        return str(answer.json()["submission_id"])

    def job(self, name: str) -> JsonObject:
        """Return what the cluster says of a job. Raises Gone."""
        return cast("JsonObject", self._ask("GET", f"/api/jobs/{quote(name, safe='')}").json())

    def stop(self, name: str) -> None:
        """Ask for a job's end."""
        self._ask("POST", f"/api/jobs/{quote(name, safe='')}/stop")

    def file(self, node: str, name: str) -> bytes | None:
        """Return a file beside a node's log files; None if it isn't there."""
        query = {"node_id": node, "filename": name, "lines": "-1", "timeout": "30"}
        try:
            # Ray 2.60 answers one in five requests for a file that isn't there with an empty text.
            return self._ask("GET", "/api/v0/logs/file", params=query).content or None
        except Gone:
            return None

    @cached_property
    def _client(self) -> httpx.Client:
        """Return one client for all requests: making one reads the certificates, 30 ms of CPU
        time."""
        login = self.credentials
        timeout = httpx.Timeout(self.seconds, connect=min(self.seconds, 10.0))
        verify = login.verify if self.address.startswith("https:") else False
        return httpx.Client(
            headers=login.headers, cookies=login.cookies, verify=verify, timeout=timeout
        )

    def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: JsonObject | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        url = self.address + path
        try:
            answer = self._client.request(method, url, params=params, json=json, content=content)
        except httpx.HTTPError as error:
            raise Unanswered(f"{self.address} doesn't answer: {_words(error)}") from None
        if answer.is_success:
            return answer
        text = answer.text.strip()
        if answer.status_code in (401, 403):
            raise Denied(
                f"{self.address} refuses the login ({answer.status_code}): {_last(text)}\n{LOGIN}"
            )
        if answer.status_code == httpx.codes.NOT_FOUND or any(t in text for t in _NOT_THERE):
            raise Gone(_last(text))
        if answer.status_code in (502, 503, 504) or "try again" in text:
            raise Unanswered(f"{self.address}: {answer.status_code} {_last(text)}")
        raise DistrainError(_last(text) or f"{self.address}: status {answer.status_code}")


def _words(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__


def _last(text: str) -> str:
    """Return the last line of a traceback, a short text as it is."""
    lines = text.splitlines()
    return lines[-1][:_LONGEST] if text.startswith("Traceback") and lines else text[:_LONGEST]
