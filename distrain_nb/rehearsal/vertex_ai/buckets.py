"""Cloud Storage by its emulator, and its buckets as folders that containers mount at /gcs.

Of other buckets a job sees the folders that stand below `DATA` of our home.
"""

from __future__ import annotations

import shutil
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from distrain_nb.config import private_home
from distrain_nb.errors import DistrainError
from distrain_nb.rehearsal.access import PrivateServer
from distrain_nb.rehearsal.bucket_folder import BucketFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA = "rehearsal/gs"  # a folder for each bucket, with what a rehearsal finds in it
_DRAFT = ".being-downloaded"

_Version = tuple[int, int]  # when a file was written, in ns, and its size


@dataclass
class Bucket:
    """A bucket and the folder that mirrors it, both ways, whenever `sync` is called."""

    name: str
    folder: Path
    http: httpx.Client
    _known: dict[str, tuple[_Version, str]] = field(default_factory=dict)
    _busy: threading.Lock = field(default_factory=threading.Lock)

    def sync(self) -> None:
        """What replicas wrote becomes objects, and objects that others wrote become files."""
        with self._busy:
            files, objects = _versions(self.folder), self._objects()
            for name in sorted(files.keys() | objects.keys() | self._known.keys()):
                self._settle(name, files.get(name), objects.get(name))

    def _settle(self, name: str, file: _Version | None, generation: str | None) -> None:
        """Files win over objects, since a program is writing them right now."""
        known_file, known_generation = self._known.get(name, (None, None))
        if file is not None and file != known_file:
            with suppress(FileNotFoundError):  # renamed meanwhile
                self._known[name] = (file, self._upload(name))
        elif generation is not None and generation != known_generation:
            self._known[name] = (self._download(name), generation)
        elif file is None and generation is not None:
            self._http("DELETE", f"/storage/v1/b/{self.name}/o/{quote(name, safe='')}")
            self._known.pop(name)
        elif generation is None and file is not None:
            (self.folder / name).unlink(missing_ok=True)
            self._known.pop(name)
        elif file is None:
            self._known.pop(name, None)

    def _objects(self) -> dict[str, str]:
        found: dict[str, str] = {}
        page = ""
        while True:
            query = {"pageToken": page} if page else {}
            said = self._http("GET", f"/storage/v1/b/{self.name}/o", params=query).json()
            found |= {x["name"]: x["generation"] for x in said.get("items", ())}
            page = said.get("nextPageToken", "")
            if not page:
                return {name: generation for name, generation in found.items() if name[-1] != "/"}

    def _upload(self, name: str) -> str:
        data = (self.folder / name).read_bytes()
        kind, body = "media", dict[str, Any](content=data)
        if not data:  # which the emulator takes only in parts
            kind, body = "multipart", {"files": [("", (None, b"{}")), ("", (None, b""))]}
        query = {"uploadType": kind, "name": name}
        said = self._http("POST", f"/upload/storage/v1/b/{self.name}/o", params=query, **body)
        return str(said.json()["generation"])

    def _download(self, name: str) -> _Version:
        path = f"/storage/v1/b/{self.name}/o/{quote(name, safe='')}"
        data = self._http("GET", path, params={"alt": "media"}).content
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(target.name + _DRAFT)
        draft.write_bytes(data)
        draft.replace(target)
        stat = target.stat()
        return stat.st_mtime_ns, stat.st_size

    def _http(self, method: str, path: str, **more: Any) -> httpx.Response:
        answer = self.http.request(method, path, **more)
        answer.raise_for_status()
        return answer


def _versions(folder: Path) -> dict[str, _Version]:
    """The files of a folder, by name."""
    found = {}
    for path in folder.rglob("*"):
        try:
            stat = path.stat()
        except OSError:
            continue  # gone meanwhile
        if path.is_file() and not path.name.endswith(_DRAFT):
            found[path.relative_to(folder).as_posix()] = (stat.st_mtime_ns, stat.st_size)
    return found


def _copy(folder: Path, name: str, target: Path) -> None:
    shutil.copy2(folder / name, target)


@dataclass
class Buckets:
    """All buckets of the emulator at `endpoint`, mirrored below `folder`."""

    endpoint: str
    folder: Path
    data: Path
    _http: httpx.Client = field(repr=False)
    _open: dict[str, Bucket] = field(default_factory=dict)
    _kept: dict[str, dict[str, _Version]] = field(default_factory=dict)
    _busy: threading.Lock = field(default_factory=threading.Lock)

    def create(self, name: str) -> None:
        """Have a bucket of that name, with what stands below `data` for it."""
        answer = self._http.post("/storage/v1/b", json={"name": name})
        if answer.status_code not in (200, 409):
            answer.raise_for_status()
        if (self.data / name).is_dir():
            shutil.copytree(self.data / name, self.folder / name, dirs_exist_ok=True)
            self._kept[name] = _versions(self.folder / name)

    def mounted(self) -> tuple[Bucket, ...]:
        """Every bucket that there is now."""
        said = self._http.get("/storage/v1/b").raise_for_status().json()
        for name in (x["name"] for x in said.get("items", ())):
            if name not in self._open:
                folder = self.folder / name
                folder.mkdir(parents=True, exist_ok=True)
                self._open[name] = Bucket(name, folder, self._http)
        return tuple(self._open.values())

    def keep(self) -> Iterator[str]:
        """Have what jobs wrote to the buckets that came from `data` there too; says what is not
        kept."""
        with self._busy:
            for name, known in self._kept.items():
                mirror = self.folder / name
                found = _versions(mirror)
                yield from BucketFolder(self.data / name).update(
                    (path for path, _ in found.items() - known.items()),
                    known.keys() - found.keys(),
                    partial(_copy, mirror),
                )
                self._kept[name] = found

    def folders(self) -> dict[str, Path]:
        """What /gcs has, by bucket: the folders below `data` as they are, and those that mirror."""
        others = {each.name: each for each in self.data.glob("*") if each.is_dir()}
        return others | {bucket.name: bucket.folder for bucket in self.mounted()}


@contextmanager
def buckets(folder: Path) -> Iterator[Buckets]:
    """Cloud Storage that keeps its objects below `folder`.

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
