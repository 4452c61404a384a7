"""An image's manifest and the index that lists manifests by platform, as values.

Fields that this module doesn't know stay as they are. Formats: the OCI image specification 1.1 and
Docker's image manifest version 2, schema 2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import ImageError
from distrain_nb.image.registry.documents import (
    damaged,
    digest,
    optional,
    part,
    read_document,
    to_json,
)

if TYPE_CHECKING:
    from distrain_nb.image.layers import Layer

_LONGEST = 300


@dataclass(frozen=True)
class Family:
    """The media types of one of the two formats; an image is wholly of one."""

    index: str
    manifest: str
    layer: str


OCI = Family(
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.layer.v1.tar+gzip",
)
DOCKER = Family(
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
)
ACCEPT = ", ".join((OCI.index, OCI.manifest, DOCKER.index, DOCKER.manifest))


def digest_of(data: bytes) -> str:
    """Return the name of content by its SHA-256."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass(frozen=True)
class Descriptor:
    """A blob that a manifest points to: `size` in bytes. Foreign blobs are fetched by `urls`."""

    media_type: str
    digest: str
    size: int
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, entry: Mapping[str, Any], where: str) -> Descriptor:
        """Raise ImageError for what describes no blob of SHA-256."""
        size = part(entry, "size", int, where)
        if size < 0:
            raise damaged(where, f"size is {size}")
        media_type = optional(entry, "mediaType", str, where)
        more = {k: v for k, v in entry.items() if k not in ("mediaType", "digest", "size")}
        return cls(media_type, digest(entry, where), size, more)

    @property
    def foreign(self) -> bool:
        """Whether the blob lives outside registries, and may not be pushed to one."""
        return bool(self.more.get("urls"))

    def to_dict(self) -> dict[str, Any]:
        """Return the descriptor as manifests have it."""
        return {
            "mediaType": self.media_type,
            "size": self.size,
            "digest": self.digest,
            **self.more,
        }


@dataclass(frozen=True)
class Manifest:
    """One image for one platform: its configuration and its layers, the lowest first."""

    family: Family
    config: Descriptor
    layers: tuple[Descriptor, ...]
    annotations: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, data: bytes, media_type: str, where: str) -> Manifest:
        """Parse what a registry sent. Raises ImageError for what is not an image's manifest."""
        document = read_document(data, where)
        family = _family(document, media_type)
        if family is None or "config" not in document:
            kind = document.get("mediaType") or media_type or "a manifest in an outdated format"
            raise ImageError(f"{where} is {kind}, not a container image in OCI or Docker format.")
        layers = optional(document, "layers", list, where)
        return cls(
            family,
            Descriptor.read(part(document, "config", dict, where), where),
            tuple(Descriptor.read(entry, where) for entry in layers),
            optional(document, "annotations", dict, where),
        )

    def with_layers(self, config: bytes, layers: Sequence[Layer]) -> Manifest:
        """Return the same image with `layers` on top, described by the new `config`."""
        added = tuple(Descriptor(self.family.layer, x.digest, x.size) for x in layers)
        described = replace(self.config, digest=digest_of(config), size=len(config))
        return replace(self, config=described, layers=self.layers + added)

    def to_bytes(self) -> bytes:
        """Return the document that is pushed; its digest is the image's."""
        document: dict[str, Any] = {
            "schemaVersion": 2,
            "mediaType": self.family.manifest,
            "config": self.config.to_dict(),
            "layers": [layer.to_dict() for layer in self.layers],
        }
        if self.annotations:
            document["annotations"] = dict(self.annotations)
        return to_json(document)


def pick_platform(data: bytes, media_type: str, platform: str, where: str) -> str | None:
    """Return the digest of the image for `platform` (`linux/amd64`) if `data` is an image index.

    None if it is an image itself. Raises ImageError, with the platforms that there are, if the
    index has no such image.
    """
    document = read_document(data, where)
    if "manifests" not in document or _family(document, media_type) is None:
        return None
    entries = part(document, "manifests", list, where)
    entry_of = {_platform(entry, where): entry for entry in reversed(entries)}
    for name, entry in entry_of.items():
        if name == platform or name.startswith(f"{platform}/"):
            return digest(entry, where)
    names = ", ".join(sorted(name for name in entry_of if "unknown" not in name))
    raise ImageError(f"{where} has no image for {platform}. It has: {names[:_LONGEST] or 'none'}.")


def _family(document: Mapping[str, Any], media_type: str) -> Family | None:
    """Return the family of a document by its own `mediaType`, which OCI makes optional, else by how
    it was sent."""
    for kind in (document.get("mediaType"), media_type.partition(";")[0].strip()):
        for family in (OCI, DOCKER):
            if kind in (family.manifest, family.index):
                return family
    return None


def _platform(entry: Mapping[str, Any], where: str) -> str:
    fields = optional(entry, "platform", dict, where)
    parts = [optional(fields, x, str, where) for x in ("os", "architecture", "variant")]
    return "/".join(filter(None, (parts[0] or "unknown", parts[1] or "unknown", parts[2])))
