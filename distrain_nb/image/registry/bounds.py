"""Bounds on what a registry sends: nothing but a blob is longer than documents are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx

from distrain_nb.image.registry.retry import RegistryError

BLOB = "distrain_blob"  # marks a request for content of any size
_MAX_DOCUMENT = 8 << 20


def bound(response: httpx.Response) -> None:
    """Let nothing but a blob be longer than documents are, before it is read: not even an error."""
    if response.request.method == "HEAD":
        return
    if not (response.request.extensions.get(BLOB) and response.status_code in (200, 206)):
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise RegistryError(
                f"{response.url.host} compressed its answer, although asked not to."
            )
        response.stream = _Bounded(response.stream, response.url.host)


class _Bounded(httpx.SyncByteStream):
    """A registry's answer, read up to the size of a document."""

    def __init__(self, stream: Any, host: str) -> None:
        self._stream = stream
        self._host = host

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for data in self._stream:
            size += len(data)
            if size > _MAX_DOCUMENT:
                raise RegistryError(
                    f"{self._host} sent more than {_MAX_DOCUMENT:,} bytes, too much for a manifest "
                    "or a configuration. Is the name right?"
                )
            yield data

    def close(self) -> None:
        self._stream.close()
