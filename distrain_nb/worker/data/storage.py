"""Files by paths, and objects of buckets by `fsspec` where a rank has it."""

from __future__ import annotations

import glob
import importlib
import os
import re
from functools import lru_cache
from typing import Any, List, Tuple

BUCKETS = {"gs": "gcsfs", "s3": "s3fs"}

_WILD = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


def in_bucket(path: str) -> bool:
    """Return whether it is the URI of an object or a folder in a bucket."""
    return path.partition("://")[0] in BUCKETS


def read(path: str, offset: int = 0, length: int = -1) -> bytes:
    """Read so many bytes from there on; all with -1. Raises OSError, EOFError where there are
    fewer."""
    if in_bucket(path):
        system, name = _system(path)
        content = system.cat_file(name, start=offset, end=offset + length if length >= 0 else None)
    else:
        with open(path, "rb", buffering=0) as file:
            file.seek(offset)
            content = _read_all(file, length)
    if 0 <= length != len(content):
        raise EOFError(f"{path}: {len(content)} bytes from {offset} on were read, not {length}")
    return bytes(content)


def _read_all(file: Any, length: int) -> bytes:
    """Return an unbuffered file may give fewer bytes at a time than it has."""
    parts = []
    while length:
        part = file.read(length)
        if not part:
            break
        parts.append(part)
        length -= len(part) if length > 0 else 0
    return parts[0] if len(parts) == 1 else b"".join(parts)


def matching_files(pattern: str) -> List[str]:
    """Return the files of a pattern with `*` and braces, such as `train-{000..099}.tar`, in its
    order."""
    paths: List[str] = []
    for path in expand_braces(pattern):
        if not _WILD.search(path):
            paths.append(path)
        elif in_bucket(path):
            system, name = _system(path)
            scheme = path.partition("://")[0]
            paths += [f"{scheme}://{path}" for path in sorted(system.glob(name))]
        else:
            paths += sorted(glob.glob(path))
    return paths


def expand_braces(pattern: str) -> List[str]:
    """Return a pattern without its braces: `a-{08..10}`, `{train,val}/a`."""
    match = _BRACES.search(pattern)
    if match is None:
        return [pattern]
    numbers = _RANGE.fullmatch(match[1])
    if numbers:
        width = len(numbers[1])
        span = range(int(numbers[1]), int(numbers[2]) + 1)
        choices = [str(number).zfill(width) for number in span]
    else:
        choices = match[1].split(",")
    before, behind = pattern[: match.start()], pattern[match.end() :]
    return [part for choice in choices for part in expand_braces(before + choice + behind)]


def is_folder(path: str) -> bool:
    if not in_bucket(path):
        return os.path.isdir(path)
    system, name = _system(path)
    return bool(system.isdir(name))


def exists(path: str) -> bool:
    if not in_bucket(path):
        return os.path.exists(path)
    system, name = _system(path)
    return bool(system.exists(name))


def _system(path: str) -> Tuple[Any, str]:
    scheme, _, name = path.partition("://")
    return _system_of(scheme, os.getpid()), name


@lru_cache(maxsize=None)
def _system_of(scheme: str, process: int) -> Any:  # noqa: ARG001
    """Return the file system of a scheme, one for each process: a forked one doesn't work."""
    try:
        fsspec = importlib.import_module("fsspec")
    except ImportError:
        raise ImportError(
            f"to read {scheme}:// in a rank, it needs the package {BUCKETS[scheme]}; or name the "
            "shards with --data, which gives a path"
        ) from None
    return fsspec.filesystem(scheme, skip_instance_cache=True)
