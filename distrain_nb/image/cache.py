"""Blobs of images and other files, kept on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from distrain_nb.config import private_home
from distrain_nb.image.draft import draft_of
from distrain_nb.image.registry.manifest import digest_of


def cache_folder(kind: str) -> Path:
    """Return the folder for one kind of file. Make it if it isn't there."""
    folder = private_home() / "cache" / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached_blob(digest: str, fetch: Callable[[], bytes]) -> bytes:
    """Return the blob of a digest. Call *fetch* unless the disk has it whole."""
    path = cache_folder("blobs") / digest.replace(":", "-")
    if path.exists() and digest_of(data := path.read_bytes()) == digest:
        return data
    data = fetch()
    # Builds of several processes may write the same blob: each replaces the whole file.
    with draft_of(path) as draft:
        draft.write_bytes(data)
    return data
