"""The source of a job that packs shards, where the buckets are."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from distrain_nb.api.source import Source
from distrain_nb.config import Config, private_home
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.options import read
from distrain_nb.program import (
    Cell,
    Notebook,
    working_folder,
)
from distrain_nb.types import Unknown
from distrain_nb.worker.data.storage import BUCKETS, in_bucket

RESULT = "packed"
_CODE = """\
from distrain_nb.worker.packing.job import pack

packed = pack(*{places!r}, {size!r}, {shuffle!r}, mounted={mounted!r})
"""


def packing(
    source: str, target: str, size: float, shuffle: int | None, options: Mapping[str, Unknown]
) -> tuple[Source, dict[str, Unknown]]:
    """Return a job that packs a bucket's files into shards in a bucket, as `distrain_nb.data.pack`
    does here: code and options for `submit`.

    `options` are those of the job: where it runs, and on which machine unless a small one does.
    Raises OptionError for what is not in a bucket that the job reaches, and more machines than one.
    """
    if not 1 <= size < inf:
        raise OptionError(f"invalid size {size!r} of a shard: expected a number of bytes")
    chosen = read(options, Config.load())
    _refuse_several(chosen.layout)
    backend = chosen.backend
    for uri in (source, target):
        if not in_bucket(uri):
            raise OptionError(
                f"shard --on {backend.name} packs from a bucket into a bucket, but {uri} is not "
                "in one; without --on, shard packs data of this machine"
            )
    places = [backend.bucket(uri) for uri in (source, target)]
    roots = [backend.bucket(_root(uri)) for uri in (source, target)]
    mounted = [root for root in roots if not in_bucket(root)]
    code = _CODE.format(places=places, size=size, shuffle=shuffle, mounted=mounted)
    if options.get("rehearse") is not None and not chosen.job.dry_run:
        _create(_root(target))
    packages = dict.fromkeys(BUCKETS[uri.partition("://")[0]] for uri in places if in_bucket(uri))
    job_options = {
        **({} if chosen.layout.size else backend.example),
        "ranks_per_replica": 1,
        "name": "shard",
        **options,
        "require": (*chosen.job.require, *packages),
    }
    notebook = Notebook({}, (), working_folder())
    return Source(Cell("shard", code), notebook, returns=(RESULT,)), job_options


def _refuse_several(layout: Layout) -> None:
    if layout.size > 1 or (layout.ranks_per_replica or 1) > 1:
        raise OptionError(
            "shard packs by the processes of one machine: name a larger one rather than several"
        )


def _root(uri: str) -> str:
    """Return the URI of the bucket alone."""
    return "/".join(uri.split("/")[:3])


def _create(root: str) -> None:
    """Have the folder that stands for a bucket in rehearsals, which keeps what they write."""
    folder = private_home() / "rehearsal" / root.replace("://", "/")
    folder.mkdir(parents=True, exist_ok=True)
