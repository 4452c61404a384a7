"""A folder that stands for the root of an image: every name is resolved below it.

Whoever made the image chose its names, and where its links lead: no link is followed by the system
on the way to a file that is written, removed or mounted on, only by `host_path`.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import tarfile
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import IO

from distrain_nb.errors import shown
from distrain_nb.image.layer_entries import BadEntry, Name, check_sparse

AT_ONCE = 1 << 20  # bytes that are read
_LINKS = 40
_DEEPEST = 200  # folders in each other; of what is deeper Python's own functions give up
_TIMES = range(1 << 33)  # seconds since the epoch that file systems can store


def host_path(root: Path, name: str) -> Path:
    """Return where a path of the image is on this machine, its links followed inside `root` alone.

    What isn't there yet is named as if it were. Raises BadEntry for a path without an end.
    """
    parts = [part for part in reversed(name.split("/")) if part]
    path, links, depth = root, 0, 0
    while parts:
        part = parts.pop()
        if part == "..":
            path, depth = (path.parent, depth - 1) if depth else (root, 0)
            continue
        step = path / part
        if part == "." or not step.is_symlink():
            path, depth = (step, depth + 1) if part != "." else (path, depth)
            if depth > _DEEPEST:
                raise BadEntry(f"{shown(name)} is more than {_DEEPEST} folders deep")
            continue
        links += 1
        if links > _LINKS:
            raise BadEntry(f"{shown(name)} has too many links on its way")
        target = str(step.readlink())
        path, depth = (root, 0) if target.startswith("/") else (path, depth)
        parts += [x for x in reversed(target.split("/")) if x]
    return path


def image_path(root: Path, name: str) -> str:
    """Return the same place as a path of the image without links, as a mount needs it."""
    below = host_path(root, name).relative_to(root).as_posix()
    return "/" if below == "." else f"/{below}"


def make_folder(root: Path, name: str) -> Path:
    """Return a folder of that name, which may be there, and where its links lead."""
    folder = host_path(root, name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def make_file(root: Path, name: str) -> None:
    """Create an empty file below the root unless it exists; follow links within the root."""
    file = host_path(root, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.touch()


def white_out(root: Path, name: Name, kept_paths: Container[Path]) -> None:
    """Remove what the layers below have there; `kept_paths` are the files of the layer itself."""
    folder = host_path(root, name.folder)
    if not folder.is_dir():
        return
    for path in folder.iterdir() if name.opaque else (folder / name.removed,):
        _cover(path, kept_paths)


def _cover(path: Path, kept_paths: Container[Path]) -> None:
    """Remove what lower layers have at a path. `kept_paths` are this layer's files, which stay."""
    if path.is_dir() and not path.is_symlink():
        for inner in path.iterdir():
            _cover(inner, kept_paths)
        if path not in kept_paths:
            with suppress(OSError):  # something of its own is in it
                path.rmdir()
    elif path not in kept_paths:
        path.unlink(missing_ok=True)


def extract(tar: tarfile.TarFile, entry: tarfile.TarInfo, root: Path, name: Name) -> Path:
    """Put the entry into the tree; devices and pipes are left out.

    Of its mode what owner, group and others may do is kept: a program that takes its owner's
    rights would lend those of whoever rehearses.
    """
    target = host_path(root, name.folder) / name.last
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.isdir() and target.is_dir() and not target.is_symlink():
        target.chmod(entry.mode & 0o777 | 0o700)
        return target
    _remove(target)  # never write into a file: a folder below may share it
    if entry.isdir():
        target.mkdir()
        target.chmod(entry.mode & 0o777 | 0o700)
    elif entry.issym():
        target.symlink_to(entry.linkname)
    elif entry.islnk():
        folder, last = posixpath.split(posixpath.normpath(f"/{entry.linkname}"))
        os.link(host_path(root, folder) / last, target, follow_symlinks=False)
    elif entry.isfile():
        _write(tar, entry, target)
    return target


def _write(tar: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    check_sparse(entry)
    source: IO[bytes] = tar.extractfile(entry)  # type: ignore[assignment]
    with target.open("wb") as file:
        shutil.copyfileobj(source, file, AT_ONCE)
    target.chmod(entry.mode & 0o777 | 0o400)
    if 0 <= entry.mtime < _TIMES.stop:
        os.utime(target, (entry.mtime, entry.mtime))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
