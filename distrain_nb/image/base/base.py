"""The image that a build stands on: found, and read as far as its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.errors import ImageError
from distrain_nb.image.base.cache import cached_blob
from distrain_nb.image.registry.manifest import ImageConfig, Manifest, pick_platform
from distrain_nb.image.registry.retry import Unreachable

if TYPE_CHECKING:
    from distrain_nb.image.registry.client import Registry
    from distrain_nb.image.registry.reference import Reference


@dataclass(frozen=True)
class Base:
    """An image for one platform, pinned by digest. None of its layers has been read."""

    reference: Reference
    manifest: Manifest
    config: ImageConfig


def read_own_base(registry: Registry, where: Reference, platform: str) -> Base:
    """Read the base that somebody has chosen for a build. Raises ImageError, with the ways to
    choose another where its registry is out of reach."""
    try:
        return read_base(registry, where, platform)
    except Unreachable as error:
        raise ImageError(
            f"the base image {where} can't be read, as {error.reason}: name one that can with "
            "--base IMAGE, or for all jobs with %distrain config base_image=IMAGE"
        ) from None


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
