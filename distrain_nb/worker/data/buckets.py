"""Buckets as who packs or stages data lists them: file systems, and the objects below a path."""

from __future__ import annotations

import importlib
import os
from typing import Any, Iterator, NamedTuple

from distrain_nb.worker.data.storage import BUCKETS, expand_braces

_WILDCARDS = ("*", "?", "[")
# What tells one version of an object from the next, by what services call it.
_VERSIONS = ("generation", "ETag", "etag", "md5Hash", "LastModified", "updated")


class BucketObject(NamedTuple):
    """An object: its path with the bucket's name, its size in bytes, and which version it is."""

    path: str
    size: int
    version: str


def filesystem(scheme: str) -> Any:
    """Open the file system of a bucket scheme, such as `gs`. Raises ImportError that names the
    package to install."""
    # Which asks for the kind of each bucket, and complains where it may not.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    try:
        importlib.import_module(BUCKETS[scheme])
        fsspec = importlib.import_module("fsspec")
    except ImportError as missing:
        raise ImportError(
            f"to read {scheme}:// here, %pip install {BUCKETS[scheme]!r} (the extra 'data' has "
            f"it): {missing}"
        ) from None
    return fsspec.filesystem(scheme, skip_instance_cache=True, use_listings_cache=False)


def objects(system: Any, path: str) -> Iterator[BucketObject]:
    """Yield the objects at a path: of a folder, of one object, or of a pattern."""
    for part in expand_braces(path):
        is_pattern = any(sign in part for sign in _WILDCARDS)
        listed = system.glob(part, detail=True) if is_pattern else system.find(part, detail=True)
        for name, info in listed.items():
            if info.get("type") == "file" and not name.endswith("/"):
                version = next((str(info[key]) for key in _VERSIONS if info.get(key)), "")
                yield BucketObject(name, int(str(info["size"])), version)
