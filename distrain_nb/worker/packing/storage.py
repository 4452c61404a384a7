"""Files that are packed and shards that come of them: paths, and buckets by `fsspec`."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, Tuple
from uuid import uuid4

from distrain_nb.worker.data.buckets import filesystem, objects
from distrain_nb.worker.data.storage import in_bucket
from distrain_nb.worker.files.disk import replace
from distrain_nb.worker.packing.tables import content_of, is_cell

CHUNK = 1 << 20
DRAFT = ".draft"


@lru_cache(maxsize=None)
def file_system(uri: str) -> Tuple[Any, str]:
    """Return the file system of a bucket's URI, and the path that it has there. Raises
    ImportError."""
    scheme, _, path = uri.partition("://")
    return _filesystem(scheme), path.rstrip("/")


@lru_cache(maxsize=None)
def _filesystem(scheme: str) -> Any:
    return filesystem(scheme)


def below(place: str, folder: str) -> str:
    """Return the name that an object has in a folder."""
    return place[len(folder) + 1 :] if place.startswith(f"{folder}/") else place


class ShardFolder:
    """A folder of files, or a prefix of a bucket's objects, where shards are written.

    Files are there whole or not at all, whenever a process is killed.
    """

    def __init__(self, place: str) -> None:
        self.place = place.rstrip("/") if in_bucket(place) else str(Path(os.path.expanduser(place)))

    def __str__(self) -> str:
        return self.place

    @property
    def remote(self) -> bool:
        """Whether it is in a bucket."""
        return in_bucket(self.place)

    def at(self, name: str) -> str:
        """Return the path or URI of a file in it."""
        return f"{self.place}/{name}"

    def sizes(self) -> Dict[str, int]:
        """Return the sizes in bytes of all that is in it, by names."""
        if not self.remote:
            root = Path(self.place)
            files = (path for path in root.rglob("*") if path.is_file())
            return {path.relative_to(root).as_posix(): path.stat().st_size for path in files}
        system, path = file_system(self.place)
        system.invalidate_cache()
        try:
            stored = list(objects(system, path))
        except FileNotFoundError:
            return {}
        return {below(file.path, path): file.size for file in stored}

    def read(self, name: str) -> bytes:
        """Raise FileNotFoundError."""
        return b"".join(chunks(self.at(name)))

    def write(self, name: str, content: bytes) -> None:
        with self.writing(name) as file:
            file.write(content)

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Yield a file to write. It appears under its name when the block ends without an error."""
        if self.remote:
            system, path = file_system(self.at(name))
            with _upload(system, path) as file:
                yield file
            return
        target = Path(self.at(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{uuid4().hex}{DRAFT}")
        try:
            with draft.open("wb", buffering=CHUNK) as file:
                yield file
            replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        if self.remote:
            system, path = file_system(self.at(name))
            if system.exists(path):
                system.rm(path, recursive=True)
        elif Path(self.at(name)).is_dir():
            shutil.rmtree(self.at(name))
        else:
            Path(self.at(name)).unlink(missing_ok=True)


@contextmanager
def _upload(system: Any, path: str) -> Iterator[BinaryIO]:
    """Yield an object to write. It exists once it is closed, and not if the block raises."""
    file = system.open(path, "wb")
    try:
        yield file
    except BaseException:
        file.discard()
        raise
    file.close()


def chunks(place: str) -> Iterator[bytes]:
    """Yield the content of a file, an object or a table's cell, a megabyte at a time. Raises
    OSError."""
    if is_cell(place):
        yield content_of(place)
        return
    if in_bucket(place):
        system, path = file_system(place)
        file = system.open(path, "rb", block_size=8 * CHUNK, cache_type="readahead")
    else:
        # A pipe that has taken the file's place has nobody wait for a writer.
        file = open(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0)
    with file:
        while part := file.read(CHUNK):
            yield part


def fetch_object(uri: str, size: int) -> bytes:
    """Fetch a small object by one request; of one that has grown past its size, a byte more."""
    system, path = file_system(uri)
    content: bytes = system.cat_file(path, start=0, end=size + 1) if size else system.cat_file(path)
    return content
