"""Base images: found in a registry, and read as far as their configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.cluster.equipment import SCRATCH
from distrain_nb.errors import ImageError
from distrain_nb.image.cache import cached_blob
from distrain_nb.image.registry.image_config import ImageConfig
from distrain_nb.image.registry.manifest import OCI, Descriptor, Manifest, digest_of, pick_platform
from distrain_nb.image.registry.reference import Reference
from distrain_nb.image.registry.retry import Unreachable

if TYPE_CHECKING:
    from distrain_nb.image.registry.client import Registry

# The label in which an image that was built here names its base.
BASE_LABEL = "org.opencontainers.image.base.name"

_EMPTY = Reference.parse(SCRATCH)


@dataclass(frozen=True)
class Base:
    """An image for one platform, pinned by digest. None of its layers has been read."""

    reference: Reference
    manifest: Manifest
    config: ImageConfig


def read_chosen_base(
    registry: Registry, where: Reference, platform: str, *, bare_processes: bool = False
) -> Base:
    """Read the base that the user has chosen for a build.

    With `bare_processes` it may be the empty image: such a rehearsal runs the Python of this
    machine. Raises ImageError. If the registry is out of reach, the error says how to choose
    another base.
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


def read_base(registry: Registry, where: Reference, platform: str) -> Base:
    """Read manifest and configuration of a base. Raises ImageError if *where* is no image."""
    document = registry.manifest(where)
    picked = pick_platform(document.data, document.media_type, platform, str(where))
    pinned = where.at(picked or document.digest)
    if picked is not None:
        document = registry.manifest(pinned)
    manifest = Manifest.read(document.data, document.media_type, str(pinned))
    digest = manifest.config.digest
    data = cached_blob(digest, lambda: registry.small_blob(where.repository, digest))
    return Base(pinned, manifest, ImageConfig.read(data, str(pinned)))


def is_on_empty_base(config: ImageConfig) -> bool:
    """Return whether an image that was built here has the empty base, and so no Python."""
    return config.labels.get(BASE_LABEL) == str(_EMPTY)


def _empty_base(platform: str) -> Base:
    system, _, processor = platform.partition("/")
    rootfs = {"type": "layers", "diff_ids": []}
    config = ImageConfig({"os": system, "architecture": processor, "rootfs": rootfs})
    data = config.to_bytes()
    described = Descriptor("application/vnd.oci.image.config.v1+json", digest_of(data), len(data))
    return Base(_EMPTY, Manifest(OCI, described, ()), config)
