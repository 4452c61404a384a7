"""Files become samples: those of one key belong together, and folders may be their classes."""

from __future__ import annotations

import re
from random import Random
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.packing.classes import (
    SampleNames,
    labelled_names,
    printable_name,
    sample_names,
)
from distrain_nb.worker.packing.errors import PackingFailed
from distrain_nb.worker.packing.sources import SourceFile
from distrain_nb.worker.packing.tables import CLASS, classes_of, rows_of

METADATA = "json"
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


class SourceSamples(NamedTuple):
    """The contents of a source: samples, the names of classes by number, and notes."""

    samples: List[PackedSample]
    classes: List[str]
    notes: Tuple[str, ...] = ()


def samples_of(
    files: Sequence[SourceFile], shuffle: Optional[int], rows: Mapping[str, str]
) -> SourceSamples:
    """Return the samples of files, in their order or shuffled by a seed.

    `rows` are what metadata say, as JSON by the names of files: members of these files' samples.
    Classes are what a list says, or folders, as ImageFolder numbers them: in alphabetical order.
    Raises PackingFailed where two files would be the same member of a sample, two samples would
    have one key, or one sample two classes.
    """
    names = _names(files)
    labels = {_key(stem): label for stem, label in names.labels.items()}
    grouped: Dict[str, Dict[str, SourceFile]] = {}
    stems: Dict[str, Tuple[str, str]] = {}
    for file in files:
        if file.name not in names.parts:
            continue
        stem, extension = names.parts[file.name]
        key = _key(stem)
        members = grouped.setdefault(key, {})
        if extension in members:
            earlier = members[extension].name
            raise PackingFailed(f"{earlier} and {file.name} would both be {key}.{extension}")
        if (first := stems.setdefault(key, (stem, file.name)))[0] != stem:
            raise PackingFailed(
                f"{first[1]!r} and {file.name!r} would both be of the sample {key}: rename one"
            )
        members[extension] = file
    classes = sorted(set(labels.values()))
    numbers = {label: number for number, label in enumerate(classes)}
    row_of = _rows_by_keys(rows, grouped, names)
    samples = [
        _sample(key, members_of, labels.get(key), numbers, row_of.get(key))
        for key, members_of in grouped.items()
    ]
    return SourceSamples(_shuffled(samples, shuffle), classes, _notes(names, labels, grouped))


def _names(files: Sequence[SourceFile]) -> SampleNames:
    """Return how the names of files are read; what a list says of classes holds."""
    names = [file.name for file in files]
    listed = {file.name: file.label for file in files if file.label}
    return labelled_names(names, listed) if listed else sample_names(names)


def _notes(
    names: SampleNames, labels: Mapping[str, str], grouped: Mapping[str, object]
) -> Tuple[str, ...]:
    without = [key for key in grouped if key not in labels] if labels else []
    if not without:
        return names.notes
    count = "1 sample has" if len(without) == 1 else f"{len(without):,} samples have"
    return (*names.notes, f"{count} no class, such as {printable_name(without[0])}")


def rows_as_samples(folder: str, shuffle: Optional[int]) -> SourceSamples:
    """Return the samples of a saved dataset, by the numbers of its rows."""
    all_samples = []
    for number, row in enumerate(rows_of(folder)):
        key = f"{number:09}"
        members = (PackedMember(f"{key}.{cell.extension}", cell.place, cell.size) for cell in row)
        all_samples.append(PackedSample(key, tuple(sorted(members))))
    samples = _shuffled([cell for cell in all_samples if cell.members], shuffle)
    return SourceSamples(samples, classes_of(folder))


def _shuffled(samples: List[PackedSample], shuffle: Optional[int]) -> List[PackedSample]:
    if shuffle is not None:
        Random(shuffle).shuffle(samples)
    return samples


def _key(stem: str) -> str:
    """Return the key by which readers group a sample's files: no dots in its last part."""
    folder, slash, base = _UNREADABLE.sub("_", stem).rpartition("/")
    return folder + slash + base.replace(".", "_")


def _rows_by_keys(
    rows: Mapping[str, str], grouped: Mapping[str, Mapping[str, SourceFile]], names: SampleNames
) -> Dict[str, str]:
    """Return the rows by the keys of samples. Raises PackingFailed where one has two, or a file for
    it, and where a row is of a file that is passed over."""
    row_by_key: Dict[str, str] = {}
    for name, row in rows.items():
        if name not in names.parts:
            raise PackingFailed(f"there are metadata of {name}, which isn't an image of a class")
        key = _key(names.parts[name][0])
        if key in row_by_key or METADATA in grouped[key]:
            raise PackingFailed(f"the metadata of {name} would be {key}.{METADATA}, which exists")
        row_by_key[key] = row
    return row_by_key


def _sample(
    key: str,
    files: Mapping[str, SourceFile],
    label: Optional[str],
    numbers: Mapping[str, int],
    row: Optional[str],
) -> PackedSample:
    members = [
        PackedMember(f"{key}.{extension}", file.place, file.size)
        for extension, file in files.items()
    ]
    if label is not None and CLASS not in files:
        text = str(numbers[label])
        members.append(PackedMember(f"{key}.{CLASS}", "", len(text), text))
    if row is not None:
        members.append(PackedMember(f"{key}.{METADATA}", "", len(row), row))
    return PackedSample(key, tuple(sorted(members)))
