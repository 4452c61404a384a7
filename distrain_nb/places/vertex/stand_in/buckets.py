"""Cloud Storage by its emulator, and its buckets as folders that containers mount at /gcs.

Of other buckets a job sees the folders that stand below `DATA` of our home.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from distrain_nb.config import private_home
from distrain_nb.errors import DistrainError
from distrain_nb.rehearsal.access import PrivateServer
from distrain_nb.rehearsal.bucket_folder import BucketFolder
from distrain_nb.rehearsal.job_folder import JobFolder, Version, ignoring_job_errors
from distrain_nb.worker.files.disk import files_below

DATA = "rehearsal/gs"  # a folder for each bucket, with what a rehearsal finds in it
_NAME = re.compile(r"[a-z0-9](?!.*\.\.)[a-z0-9._-]{1,220}[a-z0-9]")  # of a bucket

_Link = tuple[str, int, int]  # a link's name, its inode, and when that was changed, in ns


@dataclass
class Bucket:
    """A bucket and the folder that mirrors it, both ways, whenever `sync` is called."""

    name: str
    folder: Path
    http: httpx.Client
    _settled: dict[str, tuple[Version, str]] = field(default_factory=dict)
    _tried: dict[str, str] = field(default_factory=dict)  # the objects that were to become files
    _busy: threading.Lock = field(default_factory=threading.Lock)

    def sync(self) -> None:
        """Upload files that replicas wrote, and download objects that others uploaded."""
        with self._busy:
            files, objects = JobFolder(self.folder).versions(), self._objects()
            for name in sorted(files.keys() | objects.keys() | self._settled.keys()):
                with ignoring_job_errors():
                    self._settle(name, files.get(name), objects.get(name))

    def _settle(self, name: str, file: Version | None, generation: str | None) -> None:
        """Settle a file and an object of one name. The file wins: a program is writing it right
        now."""
        known_file, known_generation = self._settled.get(name, (None, None))
        if file is not None and file != known_file:
            self._settled[name] = (file, self._upload(name))
        elif generation is not None and generation != known_generation:
            if self._tried.get(name) != generation:
                self._tried[name] = generation
                self._settled[name] = (self._download(name), generation)
        elif file is None and generation is not None:
            self._http("DELETE", f"/storage/v1/b/{self.name}/o/{quote(name, safe='')}")
            self._settled.pop(name)
        elif generation is None and file is not None:
            JobFolder(self.folder).unlink(name)
            self._settled.pop(name)
        elif file is None:
            self._settled.pop(name, None)

    def _objects(self) -> dict[str, str]:
        generations: dict[str, str] = {}
        page = ""
        while True:
            query = {"pageToken": page} if page else {}
            content = self._http("GET", f"/storage/v1/b/{self.name}/o", params=query).json()
            generations |= {x["name"]: x["generation"] for x in content.get("items", ())}
            page = content.get("nextPageToken", "")
            if not page:
                return {
                    name: generation for name, generation in generations.items() if name[-1] != "/"
                }

    def _upload(self, name: str) -> str:
        with JobFolder(self.folder).open(name) as file:
            data = file.read()
        kind, body = "media", dict[str, Any](content=data)
        if not data:  # which the emulator takes only in parts
            kind, body = "multipart", {"files": [("", (None, b"{}")), ("", (None, b""))]}
        query = {"uploadType": kind, "name": name}
        response = self._http("POST", f"/upload/storage/v1/b/{self.name}/o", params=query, **body)
        return str(response.json()["generation"])

    def _download(self, name: str) -> Version:
        path = f"/storage/v1/b/{self.name}/o/{quote(name, safe='')}"
        data = self._http("GET", path, params={"alt": "media"}).content
        stat = JobFolder(self.folder).write(name, [data])
        return stat.st_mtime_ns, stat.st_size

    def _http(self, method: str, path: str, **more: Any) -> httpx.Response:
        answer = self.http.request(method, path, **more)
        answer.raise_for_status()
        return answer


def _links(folder: Path) -> Iterator[_Link]:
    for name, stat in JobFolder(folder).links():
        yield name, stat.st_ino, stat.st_ctime_ns


def _without_new_links(folder: Path, earlier: frozenset[_Link]) -> Iterator[str]:
    """Remove the links that a job has made in a folder of the user's, of which the next job would
    be given what is behind its links; says so."""
    names = sorted(name for name, *when in _links(folder) if (name, *when) not in earlier)
    for name in names:
        with ignoring_job_errors():
            JobFolder(folder).unlink(name)
    if names:
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        yield f"Links that the job made are not kept: {names[0]}{more} of {folder}."


@dataclass
class Buckets:
    """All buckets of the emulator at `endpoint`, mirrored below `folder`."""

    endpoint: str
    folder: Path
    data: Path
    _http: httpx.Client = field(repr=False)
    _open: dict[str, Bucket] = field(default_factory=dict)
    _standing: dict[str, BucketFolder] = field(default_factory=dict)
    _links: dict[str, frozenset[_Link]] = field(default_factory=dict)
    _busy: threading.Lock = field(default_factory=threading.Lock)

    def create(self, name: str) -> None:
        """Have a bucket of that name, with what stands below `data` for it."""
        answer = self._http.post("/storage/v1/b", json={"name": name})
        if answer.status_code not in (200, 409):
            answer.raise_for_status()
        if (self.data / name).is_dir():
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            for path, file in files_below(self.data / name):
                target = self.folder / name / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, target)
            mirror = JobFolder(self.folder / name)
            self._standing[name] = BucketFolder(self.data / name, mirror.versions())

    def mounted(self) -> tuple[Bucket, ...]:
        """Return every bucket that there is now."""
        content = self._http.get("/storage/v1/b").raise_for_status().json()
        for name in (x["name"] for x in content.get("items", ())):
            if name not in self._open and _NAME.fullmatch(name):
                folder = self.folder / name
                folder.mkdir(parents=True, exist_ok=True)
                self._open[name] = Bucket(name, folder, self._http)
        return tuple(self._open.values())

    def keep(self) -> Iterator[str]:
        """Have what jobs wrote to the buckets that came from `data` there too; says what is not
        kept."""
        with self._busy:
            for name, standing in self._standing.items():
                mirror = JobFolder(self.folder / name)
                yield from standing.update(mirror.versions, mirror.pieces)
            for name, links in self._links.items():
                yield from _without_new_links(self.data / name, links)

    def folders(self) -> dict[str, Path]:
        """Return the folders of /gcs, by bucket: those below `data` as they are, and those that
        mirror."""
        below = {path.name: path for path in self.data.glob("*") if path.is_dir()}
        for name, folder in below.items():
            if name not in self._standing and name not in self._links:
                self._links[name] = frozenset(_links(folder))
        return below | {bucket.name: bucket.folder for bucket in self.mounted()}


@contextmanager
def buckets(folder: Path) -> Iterator[Buckets]:
    """Run Cloud Storage that keeps its objects below `folder`.

    Raises DistrainError if the emulator is not installed.
    """
    try:
        from gcp_storage_emulator.server import RequestHandler
        from gcp_storage_emulator.storage import Storage
    except ImportError:
        raise DistrainError(
            "A rehearsal for Vertex AI needs the Cloud Storage emulator: "
            "`pip install gcp-storage-emulator`."
        ) from None
    storage = Storage(use_memory_fs=False, data_dir=str(folder / "objects"))
    server = PrivateServer(("127.0.0.1", 0), partial(RequestHandler, storage))
    address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        with httpx.Client(base_url=address, trust_env=False) as http:
            yield Buckets(address, folder / "mounts", private_home() / DATA, http)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
