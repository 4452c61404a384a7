"""What is to be packed: the files of a folder, of a bucket's prefix, or of a list."""

from __future__ import annotations

import os
from pathlib import Path
from typing import FrozenSet, Iterator, List, NamedTuple, Tuple

from distrain_nb.worker.data.buckets import objects
from distrain_nb.worker.data.storage import in_bucket
from distrain_nb.worker.packing.refusal import PackingFailed, PackingRefused
from distrain_nb.worker.packing.storage import below, system_of
from distrain_nb.worker.packing.tables import INFO, SPLITS

LISTS = (".txt", ".tsv")


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
    """All files of a source, by name; those whose names begin with a dot are left out.

    A source is a folder, `gs://` or `s3://` with a prefix, or a text file that lists files: a path
    or URI on each line, and behind a tab the sample's class. Raises PackingRefused where nothing is
    there, PackingFailed for a list that names what isn't there.
    """
    if in_bucket(source):
        found = _in_bucket(source)
    elif (path := Path(source).expanduser()).is_dir():
        found = list(_in_folder(str(path), "", frozenset()))
    elif path.is_file() and path.suffix in LISTS:
        return _listed(path)
    elif path.is_file():
        kinds = " or ".join(LISTS)
        raise PackingRefused(f"{source} is neither a folder nor a list of files, {kinds}")
    else:
        raise PackingRefused(f"{source}: nothing is there")
    if not found:
        raise PackingRefused(f"{source}: no files are there")
    return sorted(found)


def _in_folder(root: str, below: str, above: FrozenSet[Tuple[int, int]]) -> Iterator[SourceFile]:
    """Links are followed, but not those to a folder that they are in."""
    stat = Path(root).stat()
    if (itself := (stat.st_dev, stat.st_ino)) in above:
        return
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            name = below + entry.name
            if entry.is_dir():
                yield from _in_folder(entry.path, f"{name}/", above | {itself})
            else:
                stat = entry.stat()
                yield SourceFile(name, entry.path, stat.st_size, str(stat.st_mtime_ns))


def _in_bucket(uri: str) -> List[SourceFile]:
    scheme, path = uri.partition("://")[0], system_of(uri)[1]
    found = []
    for place, size, version in _objects(uri):
        name = below(place, path)
        if not name.rpartition("/")[2].startswith("."):
            found.append(SourceFile(name, f"{scheme}://{place}", size, version))
    if {INFO, SPLITS} & {each.name for each in found}:
        raise PackingRefused(
            f"{uri} is a saved dataset of Hugging Face, which is read from a folder: copy it to "
            "one, or have a job pack that has the bucket mounted"
        )
    return found


def _objects(uri: str) -> List[Tuple[str, int, str]]:
    system, path = system_of(uri)
    try:
        return [(each.path, each.size, each.version) for each in objects(system, path)]
    except FileNotFoundError:
        raise PackingRefused(f"{uri}: nothing is there") from None


def _listed(path: Path) -> List[SourceFile]:
    """The files of a list, in its order; paths are from the list's folder."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        place, _, label = line.partition("\t")
        if not place:
            continue
        try:
            found.append(_of_a_list(path.parent, place, label))
        except (OSError, PackingRefused):
            raise PackingFailed(f"{path}, line {number}: {place} is not there") from None
    return found


def _of_a_list(folder: Path, place: str, label: str) -> SourceFile:
    parts = (place.partition("://")[2] or place).split("/")
    name = "/".join(part for part in parts if part not in ("", ".", ".."))
    if in_bucket(place):
        ((_, size, version),) = _objects(place)
        return SourceFile(name, place, size, version, label)
    stat = (folder / place).stat()
    return SourceFile(name, str(folder / place), stat.st_size, str(stat.st_mtime_ns), label)
