"""`%distrain shard`: samples are packed into tar shards, with a bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.config import home
from distrain_nb.data.packing import SIZE, pack
from distrain_nb.errors import OptionError
from distrain_nb.layout.case import size_in_bytes
from distrain_nb.magics.cell import long_work_shown

if TYPE_CHECKING:
    import argparse


SMALLEST = 1_000_000


def shard_verb(options: argparse.Namespace) -> None:
    """Pack, and say what there is now. Raises OptionError, PackingError."""
    if options.on not in ("", "local"):
        raise OptionError(
            f"shard packs on this machine, not with --on {options.on}: a notebook in that cloud "
            "reads and writes its buckets fastest"
        )
    size = size_in_bytes(options.size, "--size") if options.size else SIZE
    if size < SMALLEST:
        raise OptionError(f"invalid --size {options.size!r}: expected 1MB or more")
    place = _rehearsed if options.rehearse else str
    with long_work_shown():
        found = pack(place(options.source), place(options.target), size, options.shuffle)
    print(found)


def _rehearsed(uri: str) -> str:
    """The folder that a rehearsal takes for a bucket."""
    scheme, found, path = uri.partition("://")
    return str(home() / "rehearsal" / scheme / path) if found else uri
