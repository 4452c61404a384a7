"""A client for container registries: the part of the distribution protocol that a build needs.

Protocol: the OCI distribution specification 1.1. Uploads are POST, then PUT with the whole blob,
which every registry takes; Google's Artifact Registry refuses uploads in several chunks. By hand,
as oras and python-dxf lack mounts, tokens for two repositories, or manifests without `mediaType`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import httpx

from distrain_nb.image.registry.auth import RegistryAuth, encryption, refuse_plain
from distrain_nb.image.registry.bounds import BLOB, bound
from distrain_nb.image.registry.manifest import ACCEPT, digest_of
from distrain_nb.image.registry.reference import Reference, is_loopback
from distrain_nb.image.registry.refusals import check, reason
from distrain_nb.image.registry.retry import (
    DigestMismatch,
    RegistryError,
    TryAgain,
    describe_failure,
    with_retries,
)

if TYPE_CHECKING:
    from distrain_nb.image.progress import Meter

_TIMEOUT_S, _CONNECT_S = 300.0, 15.0  # a registry may take long to store a big blob
_CONNECTIONS = httpx.Limits(max_connections=8)
_CHUNK = 1 << 18


class Blob(Protocol):
    """Content with a digest that can be read from its beginning as often as needed."""

    @property
    def digest(self) -> str:
        """Such as `sha256:…`."""

    @property
    def size(self) -> int:
        """In bytes."""

    def chunks(self) -> Iterator[bytes]:
        """Read the content from its beginning."""


@dataclass(frozen=True)
class Document:
    """A manifest as it was sent."""

    data: bytes
    media_type: str
    digest: str


class Registry:
    """One registry, with a token for `scopes` (`repository:NAME:pull,push`) if it wants one.

    It has `timeout` seconds for an answer, and `attempts`, or a few, for what may pass.
    """

    def __init__(
        self,
        name: str,
        scopes: Sequence[str],
        timeout: float = _TIMEOUT_S,
        attempts: int | None = None,
    ) -> None:
        self.name = name
        self._attempts = attempts
        plain = is_loopback(name)
        host = "registry-1.docker.io" if name == "docker.io" else name
        self._origin = httpx.URL(f"{'http' if plain else 'https'}://{host}")
        self._http = httpx.Client(
            auth=RegistryAuth(name, self._origin, scopes),
            verify=False if plain else encryption(),
            timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_S)),
            limits=_CONNECTIONS,
            headers={"Accept-Encoding": "identity"},
            follow_redirects=True,
            trust_env=not plain,
            event_hooks={"request": [] if plain else [refuse_plain], "response": [bound]},
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def manifest(self, where: Reference) -> Document:
        """Fetch a manifest or an index. Raises RegistryError if it isn't there."""
        path = f"/v2/{where.repository}/manifests/{where.identifier}"
        response = self._get(path, f"Reading {where}", {"Accept": ACCEPT})
        digest = digest_of(response.content)
        expected = where.digest or response.headers.get("Docker-Content-Digest", digest)
        if digest != expected:
            raise DigestMismatch(f"{where} has the digest {digest}, not {expected}.")
        media_type = response.headers.get("Content-Type", "")
        return Document(response.content, media_type, digest)

    def small_blob(self, repository: str, digest: str) -> bytes:
        """Fetch a blob that fits in memory, such as an image's configuration."""

        def fetch() -> bytes:
            response = self._get(f"/v2/{repository}/blobs/{digest}", f"Reading {digest}")
            if digest_of(response.content) != digest:
                raise DigestMismatch(f"{self.name}/{repository} holds a damaged {digest}.")
            return response.content

        return with_retries(f"Reading {digest} from {self.name}", fetch, self._attempts)

    def has_blob(self, repository: str, digest: str) -> bool:
        """Return whether the repository has the blob, at the cost of a HEAD."""
        action = f"Looking for {digest} in {self.name}/{repository}"
        response = self._ask("HEAD", f"/v2/{repository}/blobs/{digest}", action, (200, 404))
        return response.status_code == httpx.codes.OK

    def mount(self, repository: str, digest: str, origin: str) -> str | None:
        """Take a blob over from the repository `origin` of the same registry.

        None when that is done; else the address for uploading it, because the registry refused.
        """
        path = f"/v2/{repository}/blobs/uploads/?mount={digest}&from={origin}"
        action = f"Mounting {digest} from {self.name}/{origin}"
        response = self._ask("POST", path, action, (201, 202))
        return None if response.status_code == httpx.codes.CREATED else _location(response)

    def upload(self, repository: str, blob: Blob, meter: Meter, address: str | None = None) -> None:
        """Send a blob, from its beginning again after a failure.

        `address` is that of an upload that has been begun. Raises DigestMismatch when what
        arrived, or what was read, is not what the digest says.
        """
        begun = [address] if address else []
        action = f"Sending {blob.digest} to {self.name}/{repository}"

        def send() -> None:
            url = begun.pop() if begun else self._begin(repository, action)
            body = _Body(blob, meter)
            try:
                self._finish(url, body, action)
            except BaseException:
                meter.sent(-body._sent)
                raise

        meter.expect(blob.size)
        with_retries(action, send, self._attempts)

    def put_manifest(self, target: Reference, data: bytes, media_type: str) -> str:
        """Publish a manifest under the target's tag. Gives its digest, checked."""
        path = f"/v2/{target.repository}/manifests/{target.tag or 'latest'}"
        response = self._ask(
            "PUT",
            path,
            f"Publishing {target}",
            (201,),
            headers={"Content-Type": media_type},
            content=data,
        )
        digest = digest_of(data)
        stored = response.headers.get("Docker-Content-Digest", digest)
        if stored != digest:
            raise DigestMismatch(f"{target} was stored as {stored}, not as {digest}.")
        return digest

    def stream(self, path: str, start: int) -> Iterator[bytes]:
        """Yield the bytes at `path` from `start` on."""
        headers = {"Range": f"bytes={start}-"} if start else {}
        action = f"Reading {path} from {self.name}"
        url, blob = self._origin.join(path), {BLOB: True}
        with self._http.stream("GET", url, headers=headers, extensions=blob) as response:
            check(response, action, (206,) if start else (200,), self.name)
            yield from response.iter_raw(_CHUNK)

    def _get(self, path: str, action: str, headers: dict[str, str] | None = None) -> httpx.Response:
        return self._ask("GET", path, action, (200,), headers=headers)

    def _ask(
        self, method: str, path: str, action: str, allowed: tuple[int, ...], **more: Any
    ) -> httpx.Response:
        def send() -> httpx.Response:
            response = self._http.request(method, self._origin.join(path), **more)
            check(response, action, allowed, self.name)
            return response

        return with_retries(action, send, self._attempts)

    def _begin(self, repository: str, action: str) -> str:
        response = self._http.post(self._origin.join(f"/v2/{repository}/blobs/uploads/"))
        check(response, action, (202,), self.name)
        return _location(response)

    def _finish(self, address: str, body: _Body, action: str) -> None:
        url = httpx.URL(address).copy_merge_params({"digest": body.blob.digest})
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(body.blob.size),
        }
        response = self._http.put(url, headers=headers, content=body)
        if response.status_code in (400, 404, 416):  # damaged on its way, or the upload is lost
            raise TryAgain(f"{action}: {reason(response)}", response.status_code)
        check(response, action, (201,), self.name)


@contextmanager
def open_registries(where: Reference, target: Reference) -> Iterator[tuple[Registry, Registry]]:
    """Open the base's registry and the target's; both are one client if they are one registry."""
    pull = f"repository:{where.repository}:pull"
    push = f"repository:{target.repository}:pull,push"
    if where.name == target.name:
        scopes: tuple[str, ...] = (push,)
    elif where.registry == target.registry:
        scopes = (push, pull)
    else:
        with (
            closing(Registry(where.registry, [pull])) as source,
            closing(Registry(target.registry, [push])) as sink,
        ):
            yield source, sink
        return
    with closing(Registry(target.registry, scopes)) as both:
        yield both, both


@dataclass(frozen=True)
class RegistryBlob:
    """A blob in a registry, read on without being kept; a cut connection is taken up again."""

    registry: Registry
    repository: str
    digest: str
    size: int

    def chunks(self) -> Iterator[bytes]:
        """Yield the content. The last piece comes only once the digest of the whole is right."""
        digest_so_far = hashlib.sha256()
        held = b""
        for data in self._pieces():
            digest_so_far.update(data)
            if held:
                yield held
            held = data
        if f"sha256:{digest_so_far.hexdigest()}" != self.digest:
            raise DigestMismatch(
                f"{self.registry.name}/{self.repository} gave a damaged {self.digest}."
            )
        yield held

    def _pieces(self) -> Iterator[bytes]:
        path = f"/v2/{self.repository}/blobs/{self.digest}"
        action = f"Reading {self.digest} from {self.registry.name}"
        done, cuts = 0, 0
        while done < self.size:
            try:
                for data in self.registry.stream(path, done):
                    done += len(data)
                    if done > self.size:
                        raise DigestMismatch(f"{action}: it has more than its {self.size:,} bytes.")
                    yield data
            except httpx.TransportError as cut:
                cuts += 1
                if cuts > 5:
                    raise TryAgain(f"{action} failed {cuts} times: {cut}") from cut
            except httpx.RequestError as error:
                raise RegistryError(f"{action}: {describe_failure(error)}") from error
            else:
                break


class _Body(httpx.SyncByteStream):
    """A request's body that can be sent again, as after a renewed login."""

    def __init__(self, blob: Blob, meter: Meter) -> None:
        self.blob = blob
        self._sent = 0
        self._meter = meter

    def __iter__(self) -> Iterator[bytes]:
        self._meter.sent(-self._sent)
        self._sent = 0
        for data in self.blob.chunks():
            yield data
            self._sent += len(data)
            self._meter.sent(len(data))


def _location(response: httpx.Response) -> str:
    location = response.headers.get("Location")
    if not location:
        raise TryAgain(f"{response.request.url.host} started an upload without a Location.")
    return str(response.request.url.join(location))
