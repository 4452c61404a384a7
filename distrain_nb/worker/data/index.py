"""Index beside shards: how many samples they have, and where their blocks begin.

A block is some megabytes of consecutive samples of one shard, and is read at once.
"""

from __future__ import annotations

import json
import os
import re
import reprlib
import tarfile
from itertools import chain
from typing import Any, BinaryIO, Dict, Iterable, List, NamedTuple, Sequence, Tuple, Union

from distrain_nb.worker.data.samples import RECORD, split_name
from distrain_nb.worker.data.storage import exists, in_bucket, is_folder, matching_files, read

INDEX = "index.json"
FORMAT = "distrain-shards-1"
BLOCK = 8 << 20

_ANEW = "remove it, then pack the samples again or read them without an index"
_UNPACK = "blocks of compressed shards can't be read, so unpack them"
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK": "zip",
}
_TEXT = bytes(range(32, 127)) + b"\t\r\n"
_BASE = re.compile(r"[^/\0]*[^/\0.][^/\0]*")


class SampleBlock(NamedTuple):
    """A block of samples: its shard, its byte range there, and its number of samples."""

    path: str
    offset: int
    length: int
    samples: int


def blocks_of(patterns: Union[str, Iterable[str]]) -> List[SampleBlock]:
    """Return the blocks of all shards that paths and patterns name, in their order.

    A folder stands for all of its shards. Where no index stands beside shards, their headers are
    read. Raises FileNotFoundError where a pattern names nothing; ValueError, with the path, for an
    index or a shard that is damaged or something else, and for shards without a sample.
    """
    sample_blocks: List[SampleBlock] = []
    last = ""
    indexes: Dict[str, Dict[str, Any]] = {}
    for pattern in [patterns] if isinstance(patterns, (str, os.PathLike)) else patterns:
        for path in _shards_of(os.fspath(pattern), indexes):
            folder, _, name = path.rpartition("/")
            record = _index_at(folder, indexes).get(name)
            sample_blocks += _written(path, record) if record else _scanned(path)
            last = path
    if not sample_blocks:
        raise ValueError(f"no shard has a sample, up to {last}: members are named KEY.EXTENSION")
    return sample_blocks


def _shards_of(pattern: str, indexes: Dict[str, Dict[str, Any]]) -> List[str]:
    pattern = pattern.rstrip("/") or "/"
    if is_folder(pattern):
        named = list(_index_at(pattern, indexes))
        paths = [f"{pattern}/{name}" for name in named] or matching_files(pattern + "/*.tar")
    else:
        paths = matching_files(pattern)
    missing = [path for path in paths if not in_bucket(path) and not exists(path)]
    if not paths and (
        packed := matching_files(pattern + "/*.tar.*") + matching_files(pattern + "/*.tgz")
    ):
        raise FileNotFoundError(f"no shards at {pattern}, but {packed[0]}: {_UNPACK}")
    if missing or not paths:
        raise FileNotFoundError(f"no shards at {missing[0] if missing else pattern}")
    return paths


def _index_at(folder: str, indexes: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
    """Return the shards that a folder's index has, by name; none where there is no index."""
    if folder not in indexes:
        path = f"{folder}/{INDEX}" if folder else INDEX
        indexes[folder] = _read_index(path) if exists(path) else {}
    return indexes[folder]


def _read_index(path: str) -> Dict[str, Any]:
    return {shard["name"]: shard for shard in parsed(path, read(path))["shards"]}


def parsed(path: str, content: bytes) -> Dict[str, Any]:
    """Return an index that stands at a path. Raises ValueError where it is damaged, or none of
    ours."""
    try:
        index = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}; {_ANEW}") from None
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise ValueError(f"{path} is not an index of shards of format {FORMAT}")
    shards = index.get("shards")
    bad = (
        [shard for shard in shards if not is_record(shard)]
        if isinstance(shards, list)
        else [shards]
    )
    if bad:
        raise ValueError(
            f"{path} is damaged: {reprlib.repr(bad[0])} is not the record of a shard; {_ANEW}"
        )
    return index


def is_record(shard: Any) -> bool:
    """Return whether it describes a shard: its name, its blocks in their order, and where they
    end."""
    if not isinstance(shard, dict):
        return False
    name, blocks = shard.get("name"), shard.get("blocks")
    if not isinstance(name, str) or not isinstance(blocks, list) or not _BASE.fullmatch(name):
        return False
    if not all(isinstance(block, list) and len(block) == 2 for block in blocks):
        return False
    numbers = [shard.get("size"), shard.get("end"), shard.get("samples"), *chain(*blocks)]
    if not all(type(number) is int for number in numbers):
        return False
    begins = [begin for begin, _ in blocks]
    # A sample takes one record of a tar file at least.
    fit = all(
        begin % RECORD == 0 and 0 < count <= (end - begin) // RECORD
        for (begin, count), end in zip(blocks, [*begins[1:], shard["end"]])
    )
    complete = sum(count for _, count in blocks) == shard["samples"]
    return fit and complete and min(begins, default=0) >= 0 and 0 <= shard["end"] <= shard["size"]


def _written(path: str, shard: Dict[str, Any]) -> List[SampleBlock]:
    return _blocks(path, shard["blocks"], shard["end"])


def _scanned(path: str) -> List[SampleBlock]:
    """Read the headers of a tar file of which nothing is known."""
    if in_bucket(path):
        raise FileNotFoundError(f"no {INDEX} beside {path}")
    if not os.path.isfile(path):
        raise ValueError(f"{path} is not a regular file")
    with open(path, "rb") as file:
        try:
            return _blocks(path, *_headers(file))
        except (tarfile.TarError, ValueError, EOFError, OverflowError) as error:
            file.seek(0)
            raise ValueError(f"{path} is not a complete tar file: {_why(file, error)}") from None


def _headers(file: BinaryIO) -> Tuple[List[Tuple[int, int]], int]:
    """Return where blocks begin, and where the last one ends."""
    starts: List[int] = []
    last = ""
    end = 0
    with tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            key = split_name(member.name)[0]
            if key and key != last and member.isreg():
                starts.append(member.offset)
                last = key
            end = tar.offset
        # `tarfile` takes a damaged header behind the first one for the end.
        file.seek(tar.offset)
        if file.read(RECORD).strip(b"\0"):
            raise ValueError(f"the block at byte {tar.offset} is not the header of a member")
    return in_blocks(starts), end


def _why(file: BinaryIO, error: Exception) -> str:
    begin = file.read(RECORD)
    packed = next((kind for magic, kind in _PACKED.items() if begin.startswith(magic)), "")
    if packed:
        return f"it is compressed by {packed}; {_UNPACK}"
    if begin and not begin.strip(_TEXT):
        return f"it is a text that begins with {begin[:40].decode()!r}; fetch it again"
    return f"{error if begin else 'it is empty'}; fetch or pack it again"


def in_blocks(starts: Sequence[int]) -> List[Tuple[int, int]]:
    """Return where each block begins and how many samples it has, of where the samples begin."""
    sample_blocks: List[Tuple[int, int]] = []
    for start in starts:
        if not sample_blocks or start - sample_blocks[-1][0] >= BLOCK:
            sample_blocks.append((start, 1))
        else:
            sample_blocks[-1] = (sample_blocks[-1][0], sample_blocks[-1][1] + 1)
    return sample_blocks


def _blocks(path: str, begins: Sequence[Sequence[int]], end: int) -> List[SampleBlock]:
    ends = [offset for offset, _ in begins[1:]] + [end]
    return [SampleBlock(path, at, to - at, samples) for (at, samples), to in zip(begins, ends)]
