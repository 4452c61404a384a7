"""Names of images: `[registry/]repository[:tag][@digest]`, read as Docker reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from distrain_nb.errors import ImageError

_HUB = "docker.io"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_REGISTRY = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::\d+)?")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LOOPBACK = re.compile(r"(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?")


@dataclass(frozen=True)
class Reference:
    """The name of an image. Prints in full: `docker.io/library/python:latest` for `python`."""

    registry: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read an image's name. Raises ImageError naming the part that is not allowed."""
        name, _, digest = text.strip().partition("@")
        name, tag = _split_tag(name)
        registry, repository = _split_registry(name)
        _require(_REGISTRY, registry, "registry", text)
        _require(_REPOSITORY, repository, "repository (lower case letters and digits)", text)
        if tag is not None:
            _require(_TAG, tag, "tag", text)
        if digest:
            _require(_DIGEST, digest, "digest (sha256: and 64 hexadecimal digits)", text)
        return cls(registry, repository, tag, digest or None)

    @property
    def name(self) -> str:
        """Registry and repository, without tag and digest."""
        return f"{self.registry}/{self.repository}"

    @property
    def identifier(self) -> str:
        """What a registry is asked for: the digest, else the tag, else `latest`."""
        return self.digest or self.tag or "latest"

    def at(self, digest: str) -> Reference:
        """Return the same repository and tag, pinned to `digest`."""
        return replace(self, digest=digest)

    def pinned(self) -> str:
        """Return the name by digest alone, which is what a job should run."""
        return f"{self.name}@{self.digest}" if self.digest else str(self)

    def __str__(self) -> str:
        tag = self.tag or (None if self.digest else "latest")
        return self.name + (f":{tag}" if tag else "") + (f"@{self.digest}" if self.digest else "")


def is_loopback(registry: str) -> bool:
    """Return whether the registry is on this machine, where plain http is allowed."""
    return _LOOPBACK.fullmatch(registry) is not None


def _split_tag(name: str) -> tuple[str, str | None]:
    """Return a name without its tag, and the tag. A colon after the last slash begins a tag; one
    before it, a port."""
    head, colon, tail = name.rpartition(":")
    return (head, tail) if colon and "/" not in tail else (name, None)


def _split_registry(name: str) -> tuple[str, str]:
    """Return the registry of a name, and the rest: the first component if it looks like a host,
    else Docker Hub."""
    first, slash, rest = name.partition("/")
    if slash and (first == "localhost" or any(c in first for c in ".:[") or first != first.lower()):
        return (_HUB if first == "index.docker.io" else first), rest
    return _HUB, name if slash else f"library/{name}"


def _require(pattern: re.Pattern[str], part: str, kind: str, name: str) -> None:
    if not pattern.fullmatch(part):
        raise ImageError(
            f"invalid image name {name!r}: {part!r} is not a valid {kind}; "
            "expected a name such as registry.example.com/team/image:tag"
        )
