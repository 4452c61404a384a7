"""Data in buckets for jobs on this machine. `fsspec` fetches them once into a cache.

A file is fetched again if the bucket has another version. It is deleted if the bucket no longer has
it.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from distrain_nb.backends.job import named
from distrain_nb.config import home, private_home
from distrain_nb.errors import OptionError
from distrain_nb.program.progress import report
from distrain_nb.worker.data.buckets import BucketObject, filesystem, objects
from distrain_nb.worker.data.storage import in_bucket
from distrain_nb.worker.files.disk import readable_size

if TYPE_CHECKING:
    from distrain_nb.types import Unknown

CACHE = "cache/data"
GIB = 1 << 30
KEPT_FREE = 1 * GIB
AT_ONCE = 8
SEEN_EVERY_S = 0.2


def place(uri: str) -> str:
    """Return the path of the data of a URI on this machine; a pattern of paths for a pattern."""
    scheme, _, path = uri.partition("://")
    return str(home() / CACHE / scheme / path.rstrip("/"))


def fetch_all(data: Iterable[str], limit: float) -> None:
    """Fetch the data that a job names, NAME=URI. Raises OptionError."""
    for name, uri in named(data):
        if in_bucket(uri):
            fetch(name, uri, limit)


def fetch(name: str, uri: str, limit: float) -> None:
    """Fetch all that is at a URI: a folder, a file, or a pattern with `*` or `{00..99}`.

    Files that were fetched before an interruption stay. `limit` is how many GiB may be fetched.
    Raises OptionError if nothing is there, or if it can't be read, exceeds the limit, or doesn't
    fit on the disk.
    """
    scheme, _, path = uri.partition("://")
    root = private_home() / CACHE / scheme
    report(f"looking at {uri}")
    with _read_errors(name, uri):
        system = filesystem(scheme)
        entries = [entry for one in _expanded(path) for entry in objects(system, one)]
    if not entries:
        raise OptionError(f"--data {name}={uri}: nothing is there")
    outside = next((item.path for item in entries if ".." in item.path.split("/")), None)
    if outside:
        raise OptionError(f"--data {name}={uri}: the name {outside!r} leads out of the bucket")
    with _manifest(root, uri) as manifest:
        versions = manifest.versions()
        missing = [item for item in entries if not _is_here(root, item, versions)]
        _refuse_too_much(name, uri, missing, limit, root)
        with _read_errors(name, uri):
            for item in _fetched(system, missing, root, f"fetching {uri}"):
                manifest.add(item)
        for gone in versions.keys() - {item.path for item in entries}:
            (root / gone).unlink(missing_ok=True)


def _expanded(path: str) -> Iterable[str]:
    if "{" not in path:
        return (path,)
    expand = importlib.import_module("braceexpand").braceexpand
    expanded: Iterable[str] = expand(path)
    return expanded


def _is_here(root: Path, item: BucketObject, versions: Mapping[str, str]) -> bool:
    try:
        size = (root / item.path).stat().st_size
    except OSError:
        return False
    return size == item.size and versions.get(item.path) == item.version


def _refuse_too_much(
    name: str, uri: str, missing: Sequence[BucketObject], limit: float, root: Path
) -> None:
    size = sum(item.size for item in missing)
    sentence = (
        f"--data {name}={uri}: {readable_size(size)} in {len(missing):,} files are to be fetched"
    )
    if size > limit * GIB:
        allowed = readable_size(round(limit * GIB))
        more = -(-size // GIB) + 1
        raise OptionError(
            f"{sentence}, more than {allowed}: allow it by `%distrain config data_limit={more}`, "
            "name a part of the data, or run the job where the bucket is, with --on"
        )
    free = shutil.disk_usage(root).free
    if size + KEPT_FREE > free:
        raise OptionError(f"{sentence}, and {root} has {readable_size(free)} free")


def _fetched(
    system: Unknown, missing: Sequence[BucketObject], root: Path, phase: str
) -> Iterator[BucketObject]:
    """Fetch several objects at once, and yield those that have come."""
    total, moved = sum(item.size for item in missing), _Moved()
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        doing = {pool.submit(_bring, system, item, root, moved): item for item in missing}
        while doing:
            done, _ = wait(doing, timeout=SEEN_EVERY_S, return_when=FIRST_COMPLETED)
            report(phase, min(moved.bytes, total), total)
            for one in done:
                one.result()
                yield doing.pop(one)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class _Moved:
    """How many bytes of all objects have arrived. The threads that fetch them count here."""

    bytes: int = 0

    def counter(self) -> Callable[[int], None]:
        """Return a function to call with the bytes of one object that have arrived."""
        before = 0

        def hear(now: int) -> None:
            nonlocal before
            self.bytes += now - before
            before = now

        return hear


def _bring(system: Unknown, item: BucketObject, root: Path, moved: _Moved) -> None:
    target = root / item.path
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{uuid4().hex}")  # one that was interrupted may still be under way
    count = moved.counter()
    callbacks = importlib.import_module("fsspec.callbacks")
    callback = callbacks.Callback(hooks={"bytes": lambda _, now, **__: count(now)})
    try:
        system.get_file(item.path, str(draft), callback=callback)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    count(item.size)


class _Manifest:
    """Which version of each object was fetched, a line of JSON for each. The last line counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("a+", encoding="utf-8")
        fcntl.flock(self._file, fcntl.LOCK_EX)  # two runs that fetch the same wait for each other

    def versions(self) -> dict[str, str]:
        version_of: dict[str, str] = {}
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                path, version = json.loads(line)
            except ValueError:  # cut off by a kill
                continue
            version_of[path] = version
        return version_of

    def add(self, fetched: BucketObject) -> None:
        self._file.write(f"{json.dumps([fetched.path, fetched.version])}\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


@contextmanager
def _manifest(root: Path, uri: str) -> Iterator[_Manifest]:
    folder = root / ".fetched"
    folder.mkdir(parents=True, exist_ok=True)
    manifest = _Manifest(folder / sha256(uri.encode()).hexdigest()[:32])
    try:
        yield manifest
    finally:
        manifest.close()


@contextmanager
def _read_errors(name: str, uri: str) -> Iterator[None]:
    """Turn errors of a service or its library into OptionErrors."""
    try:
        yield
    except OptionError:
        raise
    except ImportError as missing:
        raise OptionError(str(missing)) from None
    except FileNotFoundError:
        raise OptionError(f"--data {name}={uri}: nothing is there") from None
    except Exception as error:
        message = str(error).strip().split("\n")[0]
        raise OptionError(
            f"--data {name}={uri} can't be read: {type(error).__name__}: {message}"
        ) from error
