"""Brings data of this machine to a job's bucket: what is not there yet, many files at once.

Objects appear whole or not at all, so that after an interruption their names and sizes say what is
left to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from distrain_nb.backends.local_folder import Folder, LocalFile
from distrain_nb.backends.uploads import Upload
from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.status import Progress

if TYPE_CHECKING:
    from distrain_nb.image import Listener

AT_ONCE = 32
SEEN_EVERY_S = 0.2


class DataBucket(Protocol):
    """The bucket that data go to. Every method raises DistrainError."""

    def sizes(self, below: str) -> Mapping[str, int]:
        """Return the objects whose names start with `below`, each with its size in bytes."""

    def upload(self, path: Path, name: str) -> None:
        """Make an object of a file. Called by several threads at once."""

    def remove(self, name: str) -> None:
        """Delete an object."""


def upload_all(upload: Upload, store: DataBucket, tell: Listener) -> None:
    """Have all that is in an upload below its target. Raises DistrainError, also where it is no
    longer what the job was planned with."""
    folder = Folder.of(Path(upload.source))
    if folder.digest() != upload.digest:
        raise _changed(upload)
    below = f"{upload.target.partition('://')[2].partition('/')[2]}/"
    there = store.sizes(below)
    missing = [file for file in folder.files if there.get(below + file.name) != file.size]
    phase, done = f"uploading {upload.source}", 0
    total = sum(item.size for item in missing)
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        doing = {pool.submit(_bring, item, store, below, upload): item for item in missing}
        while doing:
            tell(Progress(phase, done, total))
            ended, _ = wait(doing, timeout=SEEN_EVERY_S, return_when=FIRST_COMPLETED)
            for one in ended:
                one.result()
                done += doing.pop(one).size
    finally:
        pool.shutdown(cancel_futures=True)


def _bring(file: LocalFile, store: DataBucket, below: str, upload: Upload) -> None:
    if not file.is_unchanged:
        raise _changed(upload)
    store.upload(file.path, below + file.name)
    if not file.is_unchanged:
        store.remove(below + file.name)
        raise _changed(upload)


def _changed(upload: Upload) -> DistrainError:
    return DistrainError(
        f"{upload.source} has changed since the run was submitted: submit it again once nobody "
        "writes there"
    )
