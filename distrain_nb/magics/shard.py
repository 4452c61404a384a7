"""`%distrain shard`: packs samples, here or as a job."""

from __future__ import annotations

import argparse
from math import inf
from typing import Any

from distrain_nb import api
from distrain_nb.config import home
from distrain_nb.errors import OptionError
from distrain_nb.layout.byte_sizes import size_in_bytes
from distrain_nb.magics.cell import show_long_work, submit

SMALLEST_SHARD = 1_000_000


def shard(options: argparse.Namespace) -> None:
    """Pack, and say what there is now. Raises OptionError, PackingError."""
    from distrain_nb.data.packing import packed

    size = _shard_size(options.size)
    place = _rehearsed if options.rehearse else str
    with show_long_work():
        shards = packed(place(options.source), place(options.target), size, options.shuffle)
    print(shards)


def shard_elsewhere(options: dict[str, Any]) -> None:
    """Have a job pack, and show its run. Raises what `api.packing`, `api.start` and, for a run that
    is waited for, `Run.wait` raise."""
    source, target = options.pop("source"), options.pop("target")
    size, shuffle = _shard_size(options.pop("size", "")), options.pop("shuffle", None)
    submit(*api.packing(source, target, size, shuffle, options))


def _shard_size(text: str) -> float:
    from distrain_nb.data.packing import SIZE

    size = size_in_bytes(text, "--size") if text else SIZE
    if not SMALLEST_SHARD <= size < inf:
        raise OptionError(f"invalid --size {text!r}: expected 1MB or more")
    return size


def _rehearsed(uri: str) -> str:
    """Return the folder that a rehearsal takes for a bucket."""
    scheme, separator, path = uri.partition("://")
    return str(home() / "rehearsal" / scheme / path) if separator else uri
