"""What stands beside shards: how many samples they have, and where blocks of them begin.

A block is some megabytes of consecutive samples of one shard, and is read at once.
"""

from __future__ import annotations

import json
import os
import tarfile
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple, Union

from distrain_nb.worker.data.members import split_name
from distrain_nb.worker.data.storage import exists, in_bucket, is_folder, matching, read

INDEX = "index.json"
FORMAT = "distrain-shards-1"
BLOCK = 8 << 20


class SampleBlock(NamedTuple):
    """Where a block stands: the shard, its bytes there, and how many samples it has."""

    path: str
    offset: int
    length: int
    samples: int


def blocks_of(patterns: Union[str, Iterable[str]]) -> List[SampleBlock]:
    """The blocks of all shards that paths and patterns name, in their order.

    A folder stands for all of its shards. Where no index stands beside shards, their headers are
    read. Raises FileNotFoundError where a pattern names nothing, ValueError where an index is
    none of ours.
    """
    found: List[SampleBlock] = []
    indexes: Dict[str, Dict[str, Any]] = {}
    for pattern in [patterns] if isinstance(patterns, (str, os.PathLike)) else patterns:
        for path in _shards_of(os.fspath(pattern), indexes):
            folder, _, name = path.rpartition("/")
            known = _index_at(folder, indexes).get(name)
            found += _written(path, known) if known else _scanned(path)
    return found


def _shards_of(pattern: str, indexes: Dict[str, Dict[str, Any]]) -> List[str]:
    pattern = pattern.rstrip("/") or "/"
    if is_folder(pattern):
        named = list(_index_at(pattern, indexes))
        paths = [f"{pattern}/{name}" for name in named] or matching(pattern + "/*.tar")
    else:
        paths = matching(pattern)
    missing = [path for path in paths if not in_bucket(path) and not exists(path)]
    if missing or not paths:
        raise FileNotFoundError(f"no shards at {missing[0] if missing else pattern}")
    return paths


def _index_at(folder: str, indexes: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
    """The shards that a folder's index has, by name; none where there is no index."""
    if folder not in indexes:
        path = f"{folder}/{INDEX}" if folder else INDEX
        indexes[folder] = _read_index(path) if exists(path) else {}
    return indexes[folder]


def _read_index(path: str) -> Dict[str, Any]:
    index = json.loads(read(path))
    if index.get("format") != FORMAT:
        raise ValueError(f"{path} is no index of shards, of format {FORMAT}")
    return {each["name"]: each for each in index["shards"]}


def _written(path: str, shard: Dict[str, Any]) -> List[SampleBlock]:
    return _blocks(path, shard["blocks"], shard["end"])


def _scanned(path: str) -> List[SampleBlock]:
    """Read the headers of a tar file of which nothing is known."""
    if in_bucket(path):
        raise FileNotFoundError(f"no {INDEX} beside {path}")
    starts: List[int] = []
    last = ""
    end = 0
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            key = split_name(member.name)[0]
            if key and key != last and member.isreg():
                starts.append(member.offset)
                last = key
            end = tar.offset
    return _blocks(path, in_blocks(starts), end)


def in_blocks(starts: Sequence[int]) -> List[Tuple[int, int]]:
    """Where each block begins and how many samples it has, of where the samples begin."""
    found: List[Tuple[int, int]] = []
    for start in starts:
        if not found or start - found[-1][0] >= BLOCK:
            found.append((start, 1))
        else:
            found[-1] = (found[-1][0], found[-1][1] + 1)
    return found


def _blocks(path: str, begins: Sequence[Sequence[int]], end: int) -> List[SampleBlock]:
    ends = [offset for offset, _ in begins[1:]] + [end]
    return [SampleBlock(path, at, to - at, samples) for (at, samples), to in zip(begins, ends)]
