"""Caches of builds below DISTRAIN_HOME/cache: only what can be made again."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from distrain_nb.config import private_home
from distrain_nb.image.registry.manifest import digest_of
from distrain_nb.scratch import Scratch
from distrain_nb.worker.files.disk import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def cache_folder(kind: str) -> Path:
    """Return the folder for one kind of thing, made if it isn't there."""
    folder = private_home() / "cache" / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached_blob(digest: str, fetch: Callable[[], bytes]) -> bytes:
    """Return the blob of a digest: from the disk if it is there whole, else from `fetch`."""
    path = cache_folder("blobs") / digest.replace(":", "-")
    if path.exists() and digest_of(data := path.read_bytes()) == digest:
        return data
    data = fetch()
    with draft_of(path) as draft:
        draft.write_bytes(data)
    return data


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Yield a file to write, which replaces `path` when the block ends."""
    with Scratch("draft", path.parent) as folder:
        draft = folder / path.name
        yield draft
        replace(draft, path)
