"""The `Authorization` header that a registry asks for, renewed before and when it expires.

Registries answer 401 and say what they want: Basic, or a token from another server. The token is
asked for once with every scope of the build, because mounting a blob from one repository into
another needs both repositories in the same token.

Credentials go to the registry, and to the token server that the registry itself has named. Where a
registry sends a request elsewhere, as to a storage host, what is answered there is no challenge.
"""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import httpx

from distrain_nb.image.registry.credentials import Credentials, advice, find
from distrain_nb.image.registry.reference import is_loopback
from distrain_nb.image.registry.retry import RegistryError, check_busy

if TYPE_CHECKING:
    import ssl

_DEFAULT_LIFE_S = 60.0
_CHALLENGE = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class AuthenticationError(RegistryError):
    """A registry turned the credentials down, or wants some and there are none."""


class RegistryAuth(httpx.Auth):
    """One registry's authorization, shared by all threads that talk to it."""

    def __init__(self, registry: str, origin: httpx.URL, scopes: Sequence[str]) -> None:
        self._registry = registry
        self._origin = origin
        self._scopes = tuple(scopes)
        self._lock = threading.Lock()
        self._challenge: dict[str, str] | None = None
        self._header: str | None = None
        self._renew_at = float("inf")

    def sync_auth_flow(
        self, request: httpx.Request
    ) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign requests to the registry itself; others (signed storage links) go as they are."""
        if not self._is_registry(request.url):
            yield request
            return
        used = self._sign(request)
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED and self._is_registry(response.url):
            self._learn(response.headers.get("WWW-Authenticate", ""), used)
            self._sign(request)
            yield request

    def _is_registry(self, url: httpx.URL) -> bool:
        ours = self._origin
        return (url.scheme, url.host, url.port) == (ours.scheme, ours.host, ours.port)

    def _sign(self, request: httpx.Request) -> str | None:
        with self._lock:
            if self._challenge is not None and time.monotonic() > self._renew_at:
                self._renew(self._challenge)
            header = self._header
        if header is not None:
            request.headers["Authorization"] = header
        return header

    def _learn(self, challenge: str, used: str | None) -> None:
        with self._lock:
            if self._header != used:  # another thread has just renewed it
                return
            kind, _, rest = challenge.partition(" ")
            self._challenge = {"kind": kind.lower(), **dict(_CHALLENGE.findall(rest))}
            self._renew(self._challenge)

    def _renew(self, challenge: dict[str, str]) -> None:
        login = find(self._registry)
        if challenge["kind"] == "bearer":
            self._header, life = self._token(challenge, login)
            self._renew_at = time.monotonic() + 0.8 * life
        elif login is None:
            raise AuthenticationError(
                f"{self._registry} requires a login. {advice(self._registry)}"
            )
        else:
            self._header = login.basic()

    def _token(self, challenge: dict[str, str], login: Credentials | None) -> tuple[str, float]:
        realm = self._realm(challenge)
        request = _token_request(realm, challenge.get("service", ""), self._scopes, login)
        try:
            with httpx.Client(verify=encryption(), timeout=60) as http:
                answer = http.send(request)
        except httpx.TransportError as error:
            raise httpx.ConnectError(f"token server {realm.host}: {error}") from error
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise self._refused(login)
        return _read_token(answer, realm.host)

    def _realm(self, challenge: dict[str, str]) -> httpx.URL:
        """Return where tokens are given; only a registry of this machine may have it without
        TLS."""
        named = challenge.get("realm", "")
        try:
            realm = httpx.URL(named)
        except httpx.InvalidURL:
            realm = httpx.URL()
        is_local = self._origin.scheme == "http" and is_loopback(realm.host)
        if not realm.host or (realm.scheme != "https" and not is_local):
            raise AuthenticationError(
                f"{self._registry} sends logins to {named!r}: expected an https address."
            )
        return realm

    def _refused(self, login: Credentials | None) -> AuthenticationError:
        who = "an anonymous user" if login is None else f"the user {login.username!r}"
        return AuthenticationError(
            f"{self._registry} doesn't let {who} do this: {', '.join(self._scopes)}. "
            + advice(self._registry)
        )


@functools.cache
def encryption() -> ssl.SSLContext:
    """Return the roots of trust, loaded once: that takes longer than a request."""
    return httpx.create_ssl_context()


def refuse_plain(request: httpx.Request) -> None:
    """Raise RegistryError for a request without TLS by a client of a registry with TLS."""
    if request.url.scheme != "https":
        where = f"{request.url.scheme}://{request.url.netloc.decode()}"
        raise RegistryError(f"the registry redirects to {where}, without encryption")


def _token_request(
    realm: httpx.URL,
    service: str,
    scopes: Sequence[str],
    login: Credentials | None,
) -> httpx.Request:
    if login is not None and login.identity_token:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": login.password,
            "service": service,
            "scope": " ".join(scopes),
            "client_id": "distrain-nb",
        }
        return httpx.Request("POST", realm, data=form)
    query = httpx.QueryParams({"service": service, "scope": list(scopes)})
    headers = {"Authorization": login.basic()} if login else {}
    return httpx.Request("GET", realm.copy_merge_params(query), headers=headers)


def _read_token(answer: httpx.Response, server: str) -> tuple[str, float]:
    """Return the header and its life in seconds. A busy server is worth another try."""
    if answer.status_code != httpx.codes.OK:
        check_busy(answer, f"token server {server}")
        raise AuthenticationError(f"The token server {server} answered {answer.status_code}.")
    content = answer.json()
    token = content.get("token") or content.get("access_token")
    if not token:
        raise AuthenticationError(f"The token server {server} gave no token.")
    return f"Bearer {token}", float(content.get("expires_in") or _DEFAULT_LIFE_S)
