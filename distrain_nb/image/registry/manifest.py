"""A registry's documents about an image: manifests, indexes and configurations, as values.

Fields that this module doesn't know stay as they are. Formats: the OCI image specification 1.1
and Docker's image manifest version 2, schema 2.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from distrain_nb.errors import ImageError, shown

if TYPE_CHECKING:
    from distrain_nb.image.layers import Layer

T = TypeVar("T")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CALLED = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}


def read_document(data: bytes, where: str) -> dict[str, Any]:
    """Return the object that `data` holds. Raises ImageError if none, or one that JSON can't
    say."""
    try:
        document = json.loads(data)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ImageError(f"{where} doesn't hold a JSON document, so it is not a container image.")
    return document


def part(of: Any, name: str, kind: type[T], where: str) -> T:
    """Return a field of a JSON document. Raises ImageError if it is missing or of another type."""
    value = _object(of, where).get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise damaged(where, f"{name} is {shown(value)} and not {_CALLED[kind]}")
    return value


def texts_at(of: Any, name: str, where: str) -> list[str]:
    """Return a list of texts, empty where it is null or missing. Raises ImageError for anything
    else."""
    members = optional(of, name, list, where)
    for member in members:
        if not isinstance(member, str) or "\0" in member:
            raise damaged(where, f"{name} has {shown(member)} in it, which is not text")
    return members


def optional(of: Any, name: str, kind: type[T], where: str) -> T:
    """Return a field as `part` does, or an empty value where it is null or missing."""
    return kind() if _object(of, where).get(name) is None else part(of, name, kind, where)


def digest(of: Any, where: str) -> str:
    """Return the `digest`, which names files here. Raises ImageError for anything but a SHA-256."""
    text = part(of, "digest", str, where)
    if not _DIGEST.fullmatch(text):
        raise damaged(where, f"digest is {shown(text)} and not sha256: with 64 digits")
    return text


def damaged(where: str, why: str) -> ImageError:
    """Make the error for a damaged image: what is wrong, and what to do."""
    return ImageError(f"cannot read {where}: its {why}. Build or push it again, or name another.")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise damaged(where, f"document has {shown(value)} where an object has to be")
    return value


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
_LONGEST = 300
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


@dataclass(frozen=True)
class ImageConfig:
    """The configuration blob: platform, environment, entry point, history."""

    document: Mapping[str, Any] = field(repr=False)

    @classmethod
    def read(cls, data: bytes, where: str) -> ImageConfig:
        """Parse a configuration. Raises ImageError if `data` isn't one."""
        document = read_document(data, where)
        if "rootfs" not in document:
            raise ImageError(f"{where} has no container configuration: choose another base.")
        _check_config(document, where)
        return cls(document)

    @property
    def platform(self) -> str:
        """Operating system and processor, as `linux/amd64`."""
        system, processor = self.document.get("os"), self.document.get("architecture")
        return f"{system or 'linux'}/{processor or 'amd64'}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its containers."""
        pairs = (entry.partition("=") for entry in self._run.get("Env") or ())
        return {name: value for name, _, value in pairs}

    @property
    def labels(self) -> dict[str, str]:
        """The image's labels."""
        return dict(self._run.get("Labels") or {})

    @property
    def entrypoint(self) -> tuple[str, ...]:
        """The command that its containers start; empty if there is none."""
        return tuple(self._run.get("Entrypoint") or ())

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """The digests of the unpacked layers, from the bottom."""
        return tuple(self.document["rootfs"].get("diff_ids") or ())

    @property
    def _run(self) -> Mapping[str, Any]:
        return self.document.get("config") or {}

    def with_layers(self, layers: Mapping[str, Layer], settings: ContainerSettings) -> ImageConfig:
        """Return the configuration of an image with `layers` (by their purpose) on top."""
        when = self.document.get("created") or "1980-01-01T00:00:00Z"
        history = [
            {"created": when, "created_by": f"distrain-nb {purpose}", "comment": "distrain-nb"}
            for purpose in layers
        ]
        added = [layer.diff_id for layer in layers.values()]
        return ImageConfig(
            {
                **self.document,
                "config": settings.over(self),
                "rootfs": {"type": "layers", "diff_ids": [*self.diff_ids, *added]},
                "history": [*(self.document.get("history") or ()), *history],
            }
        )

    def settings(self) -> Mapping[str, Any]:
        """Return the part that says how a container starts."""
        return self._run

    def to_bytes(self) -> bytes:
        """Return the JSON document."""
        return to_json(self.document)


@dataclass(frozen=True)
class ContainerSettings:
    """The settings with which a container of the new image starts; the base's other settings are
    kept."""

    entrypoint: tuple[str, ...]
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    folder: str

    def over(self, base: ImageConfig) -> dict[str, Any]:
        """Return the base's settings with these on top; the base's default command goes."""
        environment = {**base.environment, **self.environment}
        return {
            **{k: v for k, v in base.settings().items() if k != "Cmd"},
            "Env": [f"{name}={value}" for name, value in environment.items()],
            "Labels": {**base.labels, **self.labels},
            "Entrypoint": list(self.entrypoint),
            "WorkingDir": self.folder,
        }


def to_json(document: Mapping[str, Any]) -> bytes:
    """Write JSON in one spelling, so that equal documents have equal digests."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


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


def _check_config(document: Mapping[str, Any], where: str) -> None:
    """Raise ImageError where something that a container starts with is of another kind."""
    texts_at(part(document, "rootfs", dict, where), "diff_ids", where)
    optional(document, "history", list, where)
    run = optional(document, "config", dict, where)
    for name in ("Env", "Entrypoint", "Cmd"):
        texts_at(run, name, where)
    labels = optional(run, "Labels", dict, where)
    texts = [document.get(x) for x in ("os", "architecture", "created")] + [*labels.values()]
    for text in (*texts, run.get("WorkingDir"), run.get("User")):
        if not isinstance(text, str | None) or "\0" in (text or ""):
            raise damaged(where, f"configuration has {shown(text)} in it, which is not text")
