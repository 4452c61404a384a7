"""The disk space of runs, and what of it can be freed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from distrain_nb.config import home
from distrain_nb.findings import Finding, Severity
from distrain_nb.run.numbered_folders import remove
from distrain_nb.run.run import Run
from distrain_nb.run.store import Store

GB = 1e9
LITTLE = 1 * GB
DAY_S = 86400.0

# Below our home, what can be made again: what builds keep between them, and the images of
# rehearsals. Their buckets stay: people put data into them.
_AGAIN = {
    "cache/layers": "layers of packages, which the next build downloads again",
    "cache/data": "data of buckets, which the next run that reads it fetches again",
    "cache/blobs": "parts of base images",
    "cache/layer-scans": "contents of base images",
    "cache/resolutions": "versions of packages that were found to fit",
    "rehearsal/roots": "unpacked images of rehearsals",
    "rehearsal/registry": "images of rehearsals",
}


def free_bytes() -> tuple[Path, int]:
    """Return the folder of runs, or the nearest above it that is there, and the bytes that are
    free."""
    folder = home()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    return nearest, shutil.disk_usage(nearest).free


@dataclass(frozen=True)
class Reclaimable:
    """Something that can go, and how many bytes that frees."""

    title: str
    path: Path
    size: int


@dataclass(frozen=True)
class Cleaning:
    """The things that `%distrain clean` lists and deletes. Prints as the list.

    `stays` says what could go besides, and why it does not.
    """

    parts: tuple[Reclaimable, ...]
    stays: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all."""
        return sum(part.size for part in self.parts)

    def free(self) -> None:
        """Remove it. Raises StoreError naming what can't be removed."""
        for part in self.parts:
            remove(part.path)

    def __str__(self) -> str:
        _, free = free_bytes()
        rows = [f"{_gb(part.size):>9}  {part.title}: {part.path}" for part in self.parts]
        total = f"{_gb(self.size):>9}  in total; {_gb(free)} free"
        return "\n".join([*rows, total, *self.stays])


def cleaning(
    older_than: float | None = None,
    more: Callable[[float], Iterable[Reclaimable]] | None = None,
    unended: Container[str] = (),
) -> Cleaning:
    """Find what can be deleted: caches, and runs that ended more than `older_than` days ago.

    Args:
        older_than: In days; None keeps all runs.
        more: Finds further things, such as studies, that ended before a time in seconds since the
            epoch.
        unended: Keys of studies whose trials are kept, as it goes on with what they have found.
    """
    runs = [Run(record) for record in Store().all()]
    going = [run for run in runs if not run.may_be_deleted]
    parts = [] if going else list(_made_again())
    stays = []
    if going:
        named = ", ".join(f"{run.id} ({run.name})" for run in going[:5])
        stays.append(f"{'':9}  caches are kept while runs may use them: {named}")
    if older_than is None:
        size = sum(size_of(run.folder) for run in runs)
        stays.append(f"{_gb(size):>9}  runs, which are kept: --older-than DAYS includes old ones")
        return Cleaning(tuple(parts), tuple(stays))
    moment = time.time() - older_than * DAY_S
    old = [run for run in runs if run.study not in unended and run.ended_before(moment)]
    parts += [Reclaimable(r.title, r.folder, size_of(r.folder)) for r in old]
    parts += more(moment) if more else ()
    return Cleaning(tuple(parts), tuple(stays))


def _made_again() -> Iterator[Reclaimable]:
    for name, about in _AGAIN.items():
        path = home() / name
        size = size_of(path)
        if size:
            yield Reclaimable(about, path, size)


def room_findings() -> Iterator[Finding]:
    """Yield a warning where the disk of runs is nearly full."""
    folder, free = free_bytes()
    if free < LITTLE:
        message = (
            f"only {free / GB:.1f} GB are free for runs in {folder}: %distrain clean says what can "
            "go"
        )
        yield Finding("machine.little-room", Severity.WARNING, "", message)


def size_of(folder: Path) -> int:
    """Return bytes on disk of all files below a folder, each once; 0 where it isn't there."""
    visited, size = set(), 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                status = Path(root, name).lstat()
            except OSError:  # removed meanwhile
                continue
            if (status.st_dev, status.st_ino) not in visited:
                visited.add((status.st_dev, status.st_ino))
                size += status.st_blocks * 512
    return size


def _gb(size: float) -> str:
    return f"{size / GB:.1f} GB" if size >= GB / 10 else f"{size / 1e6:.1f} MB"
