"""An image's configuration: platform, history, and the settings with which a container starts.

Fields that this module doesn't know stay as they are. Formats: the OCI image specification 1.1 and
Docker's image manifest version 2, schema 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import ImageError, shown
from distrain_nb.image.registry.documents import (
    damaged,
    optional,
    part,
    read_document,
    texts_at,
    to_json,
)

if TYPE_CHECKING:
    from distrain_nb.image.layers import Layer


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
