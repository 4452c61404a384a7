"""The image that a build stands on: found, and read as far as its configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from distrain_nb.cluster.equipment import SCRATCH
from distrain_nb.config import private_home
from distrain_nb.errors import ImageError
from distrain_nb.image.registry.manifest import (
    OCI,
    Descriptor,
    ImageConfig,
    Manifest,
    digest_of,
    pick_platform,
)
from distrain_nb.image.registry.reference import Reference
from distrain_nb.image.registry.retry import Unreachable
from distrain_nb.program.requirements import public_version
from distrain_nb.scratch import Scratch
from distrain_nb.secrets import redacted_word
from distrain_nb.worker.files.disk import replace

if TYPE_CHECKING:
    from distrain_nb.image.registry.client import Registry


def cache_folder(kind: str) -> Path:
    """Return the folder for one kind of thing, made if it isn't there."""
    folder = private_home() / "cache" / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached_blob(digest: str, fetch: Callable[[], bytes]) -> bytes:
    """Return the blob of a digest: from the disk if it is there whole, else from `fetch`."""
    path = cache_folder("blobs") / digest.replace(":", "-")
    if path.exists() and digest_of(data := path.read_bytes()) == digest:
        return data
    data = fetch()
    with draft_of(path) as draft:
        draft.write_bytes(data)
    return data


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Yield a file to write, which replaces `path` when the block ends."""
    with Scratch("draft", path.parent) as folder:
        draft = folder / path.name
        yield draft
        replace(draft, path)


def without_local_version(requirement: str) -> str:
    """Remove a local version, which no public index has: `+cpu` of `torch==2.3.0+cpu`."""
    name, equals, version = requirement.partition("==")
    return f"{name}{equals}{public_version(version)}"


def requirement_name(line: str) -> NormalizedName:
    """Return the package that a requirement such as `numpy>=2` is about. Raises ImageError for
    none."""
    try:
        return canonicalize_name(Requirement(line.partition(" --")[0]).name)
    except InvalidRequirement:
        shown = redacted_word(line)
        raise ImageError(
            f"invalid requirement {shown!r}: expected one such as numpy or numpy>=2,<3"
        ) from None


@dataclass(frozen=True)
class Base:
    """An image for one platform, pinned by digest. None of its layers has been read."""

    reference: Reference
    manifest: Manifest
    config: ImageConfig


# What an image of ours says of its base.
BASE_LABEL = "org.opencontainers.image.base.name"
_EMPTY = Reference.parse(SCRATCH)


def read_own_base(
    registry: Registry, where: Reference, platform: str, *, bare_processes: bool = False
) -> Base:
    """Read the base that somebody has chosen for a build; with `bare_processes` it may be none.

    Raises ImageError, with the ways to choose another where its registry is out of reach.
    """
    if where == _EMPTY:
        if not bare_processes:
            raise ImageError(
                f"{SCRATCH} is the empty image, without Python: name another one, such as "
                "--base python:3.11-slim"
            )
        return _empty_base(platform)
    try:
        return read_base(registry, where, platform)
    except Unreachable as error:
        without = (
            f"; without any registry, a rehearsal runs with %distrain config base_image={SCRATCH}"
        )
        raise ImageError(
            f"the base image {where} can't be read, as {error.reason}: name one that can with "
            "--base IMAGE, or for all jobs with %distrain config base_image=IMAGE"
            f"{without if bare_processes else ''}"
        ) from None


def _empty_base(platform: str) -> Base:
    system, _, processor = platform.partition("/")
    rootfs = {"type": "layers", "diff_ids": []}
    config = ImageConfig({"os": system, "architecture": processor, "rootfs": rootfs})
    data = config.to_bytes()
    described = Descriptor("application/vnd.oci.image.config.v1+json", digest_of(data), len(data))
    return Base(_EMPTY, Manifest(OCI, described, ()), config)


def is_on_empty_base(config: ImageConfig) -> bool:
    """Return whether an image of ours has nothing below its own layers, and so no Python."""
    return config.labels.get(BASE_LABEL) == str(_EMPTY)


def read_base(registry: Registry, where: Reference, platform: str) -> Base:
    """Read a base's manifest and configuration. Raises ImageError if `where` is none."""
    document = registry.manifest(where)
    picked = pick_platform(document.data, document.media_type, platform, str(where))
    pinned = where.at(picked or document.digest)
    if picked is not None:
        document = registry.manifest(pinned)
    manifest = Manifest.read(document.data, document.media_type, str(pinned))
    digest = manifest.config.digest
    data = cached_blob(digest, lambda: registry.small_blob(where.repository, digest))
    return Base(pinned, manifest, ImageConfig.read(data, str(pinned)))
