"""Packing of samples into shards. A packing that was killed goes on.

Each finished shard has a record in a folder of the target. In the end, the index is made of these.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from math import inf
from typing import (
    Any,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from distrain_nb.worker.data.index import FORMAT, INDEX, is_record, parsed
from distrain_nb.worker.data.storage import in_bucket
from distrain_nb.worker.files.disk import readable_size
from distrain_nb.worker.packing import metadata, tables
from distrain_nb.worker.packing.errors import PackingFailed, PackingRefused
from distrain_nb.worker.packing.packers import Report, packed
from distrain_nb.worker.packing.samples import (
    PackedSample,
    SourceSamples,
    rows_as_samples,
    samples_of,
)
from distrain_nb.worker.packing.sources import files_of
from distrain_nb.worker.packing.storage import DRAFT, ShardFolder
from distrain_nb.worker.packing.tar import END, size_of

SIZE = 256_000_000  # bytes
UNFINISHED = ".packing"
_PLAN = f"{UNFINISHED}/plan.json"


class PackingPlan(NamedTuple):
    """The samples of each shard, by its name. `fingerprint` is of all that decides the bytes."""

    shards: Mapping[str, Sequence[PackedSample]]
    classes: Sequence[str]
    notes: Tuple[str, ...]
    fingerprint: str

    @property
    def samples(self) -> int:
        return sum(map(len, self.shards.values()))


class Packed(NamedTuple):
    """Shards that are there: how many samples they have, and how many bytes.

    `classes` are names by number; `kept` is how many shards an earlier packing had finished;
    `notes` say what was passed over, and why folders are no classes.
    """

    place: str
    samples: int
    shards: int
    size: int
    classes: Tuple[str, ...]
    kept: int = 0
    notes: Tuple[str, ...] = ()

    def __str__(self) -> str:
        shards = f"{self.shards:,} shard{'s' if self.shards > 1 else ''}"
        text = f"{self.samples:,} samples in {shards}, {readable_size(self.size)}, at {self.place}"
        if self.classes:
            text += f"; {len(self.classes):,} class{'es' if len(self.classes) > 1 else ''}"
        if self.kept:
            text += f"; {self.kept:,} shards were there already"
        return "\n".join([text, *self.notes])


def pack(source: str, target: str, size: float, shuffle: Optional[int], report: Report) -> Packed:
    """Pack samples into shards, as `distrain_nb.data.pack` does, and report progress.

    Args:
        source: Path or URL of the samples.
        target: Folder or URL of the shards.
        size: Bytes of a shard.
        shuffle: Seed of the order; None keeps that of the source.
        report: Takes a text, the number of samples packed and their total.

    Raises PackingRefused for what can't be read or written, PackingFailed where files change, and
    ImportError without the package that reads a bucket.
    """
    if isinstance(size, bool) or not isinstance(size, (int, float)) or not 1 <= size < inf:
        raise PackingRefused(f"invalid size {size!r} of a shard: expected a number of bytes")
    folder = ShardFolder(target)
    report(f"looking at {source}", 0, 0)
    plan = planned(source, size, shuffle)
    sizes = folder.sizes()
    _refuse_others(folder, plan, sizes)
    finished = _finished(folder, plan, sizes)
    missing = {name: samples for name, samples in plan.shards.items() if name not in finished}
    if INDEX in sizes and not missing:
        return _described(folder, _index(folder), len(finished), plan.notes)
    if _PLAN not in sizes:
        folder.write(_PLAN, json.dumps({"fingerprint": plan.fingerprint}).encode())
    records = dict(finished)
    for name, record in packed(folder, missing, report):
        folder.write(f"{UNFINISHED}/{name}.json", json.dumps(record).encode())
        records[name] = record
    index = {
        "format": FORMAT,
        "fingerprint": plan.fingerprint,
        "samples": plan.samples,
        "classes": list(plan.classes),
        "shards": [records[name] for name in plan.shards],
    }
    folder.write(INDEX, json.dumps(index).encode())
    folder.remove(UNFINISHED)
    return _described(folder, index, len(finished), plan.notes)


def planned(source: str, size: float, shuffle: Optional[int]) -> PackingPlan:
    """Return which samples go into which shard. Raises what `files_of` and `samples_of` raise."""
    (samples, classes, notes), version = _contents(source, shuffle)
    members = [[member.name, member.text] for sample in samples for member in sample.members]
    decides = [FORMAT, int(size), shuffle, version, members]
    fingerprint = sha256(json.dumps(decides).encode()).hexdigest()
    shards: List[List[PackedSample]] = []
    room = 0.0
    for sample in samples:
        needed = size_of(sample)
        if needed > room:
            shards.append([])
            room = size - len(END)
        shards[-1].append(sample)
        room -= needed
    named = {f"shard-{number:06}.tar": content for number, content in enumerate(shards)}
    return PackingPlan(named, classes, notes, fingerprint)


def _contents(source: str, shuffle: Optional[int]) -> Tuple[SourceSamples, List[Any]]:
    """Return the samples of a source, and what is another for another version of it."""
    folder = os.path.expanduser(source)
    try:
        if not in_bucket(source) and tables.is_saved(folder):
            rows_read = rows_as_samples(os.path.abspath(folder), shuffle)
            if not rows_read.samples:
                raise PackingRefused(f"{source}: the dataset has no rows")
            return rows_read, tables.version_of(folder)
    except tables.DAMAGED as error:
        raise PackingFailed(f"{source}: the saved dataset is damaged: {error!r}") from None
    files = files_of(source)
    sample_files, rows = metadata.separate_metadata(files)
    version = [[file.name, *file[2:]] for file in files]
    return samples_of(sample_files, shuffle, rows), [*version, "rows"] if rows else version


def _refuse_others(folder: ShardFolder, plan: PackingPlan, sizes: Mapping[str, int]) -> None:
    """Raise PackingRefused where the target has shards of other samples, or of who knows what."""
    state = INDEX if INDEX in sizes else _PLAN if _PLAN in sizes else ""
    if not state:
        if tars := sorted(name for name in sizes if name.endswith(".tar")):
            raise PackingRefused(
                f"{folder} has {tars[0]} already: name another folder, or remove it"
            )
        return
    fingerprint = (_index(folder) if state == INDEX else _json(folder, _PLAN)).get("fingerprint")
    if fingerprint != plan.fingerprint:
        contents = "shards" if state == INDEX else "unfinished shards"
        raise PackingRefused(
            f"{folder} has {contents} of other samples, or of another --size or --shuffle: name "
            "another folder, or remove it"
        )


def _finished(
    folder: ShardFolder, plan: PackingPlan, sizes: Mapping[str, int]
) -> Dict[str, Dict[str, Any]]:
    """Return the records of shards that are there whole, by their names."""
    records = {}
    if INDEX in sizes:
        records = {record_of["name"]: record_of for record_of in _index(folder)["shards"]}
    for name in plan.shards:
        record = f"{UNFINISHED}/{name}.json"
        if record in sizes:
            records[name] = _json(folder, record)
    finished = {
        n: record_of
        for n, record_of in records.items()
        if is_record(record_of) and sizes.get(n) == record_of["size"]
    }
    for name in sizes:
        if name.endswith(DRAFT):
            folder.remove(name)
    return finished


def _index(folder: ShardFolder) -> Dict[str, Any]:
    """Raise PackingRefused for one that is damaged, or none of ours."""
    try:
        index = parsed(folder.at(INDEX), folder.read(INDEX))
    except ValueError as error:
        raise PackingRefused(str(error)) from None
    if type(index.get("samples")) is not int or not isinstance(index.get("classes"), list):
        raise PackingRefused(f"{folder.at(INDEX)} is damaged: it has no samples or classes")
    return index


def _json(folder: ShardFolder, name: str) -> Dict[str, Any]:
    """Read a JSON object of an unfinished packing; {} where the file is damaged."""
    try:
        content = json.loads(folder.read(name))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _described(
    folder: ShardFolder, index: Mapping[str, Any], earlier: int, notes: Tuple[str, ...]
) -> Packed:
    size = sum(shard["size"] for shard in index["shards"])
    shards, classes = len(index["shards"]), tuple(index["classes"])
    return Packed(folder.place, index["samples"], shards, size, classes, earlier, notes)
