"""Files become samples: those of one key belong together, and folders may be their classes."""

from __future__ import annotations

import re
from random import Random
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.packing.refusal import PackingFailed
from distrain_nb.worker.packing.sources import SourceFile
from distrain_nb.worker.packing.tables import classes_of, rows_of

CLASS = "cls"  # the extension of a sample's class, as a number
METADATA = "json"
NO_EXTENSION = "bin"
# What torchvision's ImageFolder takes for an image.
IMAGES = frozenset(["jpg", "jpeg", "png", "ppm", "bmp", "pgm", "tif", "tiff", "webp"])

# `scan.seg.png` is the member seg.png of `scan`; in `2024.05.png` the first dot is the name's.
_NAME = re.compile(r"(.+?)((?:\.[A-Za-z_]+)*\.\w+)?", re.DOTALL)
# What other readers of tar files take for the end of a name, or for a separator.
_UNREADABLE = re.compile(r"[\\\x00-\x1f\x7f]")


class PackedMember(NamedTuple):
    """A file of a sample in its shard: its name there, and where its content is, or the content."""

    name: str
    place: str
    size: int
    text: str = ""


class PackedSample(NamedTuple):
    """A sample, by the key that its members share."""

    key: str
    members: Tuple[PackedMember, ...]


def samples_of(
    files: Sequence[SourceFile], shuffle: Optional[int], rows: Mapping[str, str]
) -> Tuple[List[PackedSample], List[str]]:
    """The samples of files, in their order or shuffled by a seed, and the names of classes.

    `rows` are what metadata say, as JSON by the names of files: members of these files' samples.
    Classes are what a list says, or the folders where all files are images in folders, as
    ImageFolder numbers them: in alphabetical order. Raises PackingFailed where two files would be
    the same member of a sample, or two samples would have one key.
    """
    grouped: dict[str, dict[str, SourceFile]] = {}
    stems: dict[str, tuple[str, str]] = {}
    for file in files:
        stem, extension = _split(file.name)
        key = _key(stem)
        members = grouped.setdefault(key, {})
        if extension in members:
            other = members[extension].name
            raise PackingFailed(f"{other} and {file.name} would both be {key}.{extension}")
        if (first := stems.setdefault(key, (stem, file.name)))[0] != stem:
            raise PackingFailed(
                f"{first[1]!r} and {file.name!r} would both be of the sample {key}: rename one"
            )
        members[extension] = file
    labels = _labels(grouped)
    classes = sorted(set(labels.values()))
    numbers = {label: number for number, label in enumerate(classes)}
    said = _by_keys(rows, grouped)
    found = [
        _sample(key, own, labels.get(key), numbers, said.get(key)) for key, own in grouped.items()
    ]
    return _shuffled(found, shuffle), classes


def rows_as_samples(folder: str, shuffle: Optional[int]) -> Tuple[List[PackedSample], List[str]]:
    """The samples of a saved dataset, by the numbers of its rows, and the names of its classes."""
    found = []
    for number, row in enumerate(rows_of(folder)):
        key = f"{number:09}"
        members = (PackedMember(f"{key}.{each.extension}", each.place, each.size) for each in row)
        found.append(PackedSample(key, tuple(sorted(members))))
    return _shuffled([each for each in found if each.members], shuffle), classes_of(folder)


def _shuffled(samples: List[PackedSample], shuffle: Optional[int]) -> List[PackedSample]:
    if shuffle is not None:
        Random(shuffle).shuffle(samples)
    return samples


def _split(name: str) -> tuple[str, str]:
    """What a file has in common with the others of its sample, and its extension."""
    folder, slash, base = name.rpartition("/")
    found = _NAME.fullmatch(base)
    stem, extension = (found[1], found[2] or "") if found else (base, "")
    return folder + slash + stem, extension[1:].lower() or NO_EXTENSION


def _key(stem: str) -> str:
    """What readers of shards find a sample by: a name without dots in its last part."""
    folder, slash, base = _UNREADABLE.sub("_", stem).rpartition("/")
    return folder + slash + base.replace(".", "_")


def _labels(grouped: Mapping[str, Mapping[str, SourceFile]]) -> dict[str, str]:
    """The classes of samples, by their keys; none where nothing says them."""
    said = {key: file.label for key, own in grouped.items() for file in own.values() if file.label}
    if said:
        return said
    images = all(
        key.count("/") == 1 and own.keys() <= IMAGES and CLASS not in own
        for key, own in grouped.items()
    )
    return {key: key.partition("/")[0] for key in grouped} if images else {}


def _by_keys(
    rows: Mapping[str, str], grouped: Mapping[str, Mapping[str, SourceFile]]
) -> Dict[str, str]:
    """The rows by the keys of samples. Raises PackingFailed where one has two, or a file for it."""
    found: Dict[str, str] = {}
    for name, row in rows.items():
        key = _key(_split(name)[0])
        if key in found or METADATA in grouped[key]:
            raise PackingFailed(f"the metadata of {name} can't be {key}.{METADATA}: there is one")
        found[key] = row
    return found


def _sample(
    key: str,
    files: Mapping[str, SourceFile],
    label: Optional[str],
    numbers: Mapping[str, int],
    row: Optional[str],
) -> PackedSample:
    members = [PackedMember(f"{key}.{each}", file.place, file.size) for each, file in files.items()]
    if label is not None and CLASS not in files:
        text = str(numbers[label])
        members.append(PackedMember(f"{key}.{CLASS}", "", len(text), text))
    if row is not None:
        members.append(PackedMember(f"{key}.{METADATA}", "", len(row), row))
    return PackedSample(key, tuple(sorted(members)))


def total_size(samples: Iterable[PackedSample]) -> int:
    """Bytes of all members."""
    return sum(member.size for sample in samples for member in sample.members)
