"""Sources of packing: the files of a folder, of a bucket's prefix, or of a list."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import FrozenSet, Iterator, List, NamedTuple, Tuple

from distrain_nb.worker.data.buckets import objects
from distrain_nb.worker.data.storage import in_bucket
from distrain_nb.worker.packing.errors import PackingFailed, PackingRefused
from distrain_nb.worker.packing.storage import below, file_system
from distrain_nb.worker.packing.tables import INFO, SPLITS

LISTS = (".txt", ".tsv")

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class SourceFile(NamedTuple):
    """A file: its name in the source, where it is, its size in bytes and which version it is.

    `label` is what a list says of it.
    """

    name: str
    place: str
    size: int
    version: str
    label: str = ""


def files_of(source: str) -> List[SourceFile]:
    """Return all files of a source, by name; those whose names begin with a dot are left out.

    A source is a folder, `gs://` or `s3://` with a prefix, or a text file that lists files: a path
    or URI on each line, and behind a tab the sample's class. Raises PackingRefused where nothing is
    there, PackingFailed for what can't be read, is no file, or is in a list and not there.
    """
    try:
        return _files_of(source)
    except OSError as error:
        raise PackingFailed(f"{error.filename or source}: {error.strerror or error}") from None


def _files_of(source: str) -> List[SourceFile]:
    path = Path(os.path.expanduser(source))
    if in_bucket(source):
        source_files = _in_bucket(source)
    elif path.is_dir():
        source_files = list(_in_folder(str(path), "", frozenset()))
    elif path.is_file() and path.suffix in LISTS:
        return _listed(path)
    elif os.path.lexists(path):
        _file(source, str(path))
        kinds = " or ".join(LISTS)
        raise PackingRefused(f"{source} is neither a folder nor a list of files, {kinds}")
    else:
        raise PackingRefused(f"{source}: nothing is there")
    if not source_files:
        raise PackingRefused(f"{source}: no files are there")
    return sorted(source_files)


def _in_folder(root: str, below: str, above: FrozenSet[Tuple[int, int]]) -> Iterator[SourceFile]:
    """Yield the files below a folder, with those that links lead to. A link to a folder that it is
    in is passed over."""
    status = os.stat(root)
    if (itself := (status.st_dev, status.st_ino)) in above:
        return
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            name = below + entry.name
            if os.path.isdir(entry.path):
                yield from _in_folder(entry.path, f"{name}/", above | {itself})
            else:
                yield _file(name, entry.path)


def _file(name: str, path: str, label: str = "") -> SourceFile:
    """Return a file of this machine. Raises PackingFailed for what is none, such as a pipe, which
    would have its reader wait for ever, and for a link to nowhere."""
    try:
        status = os.stat(path)
    except OSError as error:
        if os.path.islink(path):
            to = f"{os.readlink(path)}, {error.strerror}"
            raise PackingFailed(f"{path} is a link to nowhere: {to}") from None
        raise
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise PackingFailed(f"{path} is {kind}: only files are packed, and links to files")
    return SourceFile(name, path, status.st_size, str(status.st_mtime_ns), label)


def _in_bucket(uri: str) -> List[SourceFile]:
    scheme, path = uri.partition("://")[0], file_system(uri)[1]
    source_files = []
    for place, size, version in _objects(uri):
        name = below(place, path)
        if not any(part.startswith(".") for part in name.split("/")):
            source_files.append(SourceFile(name, f"{scheme}://{place}", size, version))
    if {INFO, SPLITS} & {file.name for file in source_files}:
        raise PackingRefused(
            f"{uri} is a saved dataset of Hugging Face, which is read from a folder: copy it to "
            "one, or have a job pack that has the bucket mounted"
        )
    return source_files


def _objects(uri: str) -> List[Tuple[str, int, str]]:
    system, path = file_system(uri)
    try:
        return [(entry.path, entry.size, entry.version) for entry in objects(system, path)]
    except FileNotFoundError:
        raise PackingRefused(f"{uri}: nothing is there") from None


def _listed(path: Path) -> List[SourceFile]:
    """Return the files of a list, in its order; paths are from the list's folder."""
    source_files = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
            place, _, label = text.partition("\t")
            if place:
                source_files.append(_of_a_list(path.parent, place, label))
        except UnicodeDecodeError as error:
            raise PackingFailed(f"{path}, line {number} is not UTF-8: {error}") from None
        except (OSError, ValueError, PackingRefused):
            raise PackingFailed(f"{path}, line {number}: {place} is not there") from None
        except PackingFailed as error:
            raise PackingFailed(f"{path}, line {number}: {error}") from None
    if not source_files:
        raise PackingRefused(f"{path} lists no files")
    return source_files


def _of_a_list(folder: Path, place: str, label: str) -> SourceFile:
    parts = (place.partition("://")[2] or place).split("/")
    name = "/".join(part for part in parts if part not in ("", ".", ".."))
    if in_bucket(place):
        stored = _objects(place)
        if len(stored) != 1:
            raise PackingFailed(f"{place} is {len(stored)} objects: name each of them")
        return SourceFile(name, place, *stored[0][1:], label)
    return _file(name, str(folder / place), label)
