"""An image in a registry: the result of a build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from distrain_nb.secrets import is_secret_name
from distrain_nb.worker.files.disk import readable_size

if TYPE_CHECKING:
    from distrain_nb.image.registry.reference import Reference


@dataclass(frozen=True)
class ImageLayer:
    """A layer: its purpose, its size in bytes as sent, and how it came to its repository."""

    purpose: str
    digest: str
    size: int
    how: str


@dataclass(frozen=True, repr=False)
class Image:
    """An image in a registry. `reference` has its digest. `sent` are bytes, if they are known."""

    reference: Reference
    base: Reference
    platform: str
    layers: tuple[ImageLayer, ...]
    entrypoint: tuple[str, ...]
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    notes: tuple[str, ...]
    sent: int | None
    seconds: float

    @property
    def uri(self) -> str:
        """The name by digest, for a job's request."""
        return self.reference.pinned()

    @property
    def by_hand(self) -> str:
        """The command that runs the image on any machine with Docker."""
        return f"docker run --rm {self.uri}"

    def __str__(self) -> str:
        table = [(x.purpose, readable_size(x.size), x.how, x.digest[7:19]) for x in self.layers]
        lines = [
            f"{self.reference.name}:{self.reference.tag or 'latest'}  ({self.platform})",
            f"  on {self.base}",
            *(f"  {p:<9} {s:>9}  {how:<14} {digest}" for p, s, how, digest in table),
            *(f"  {label:<12} {value}" for label, value in self._rows()),
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(x.purpose)}</td><td>{readable_size(x.size)}</td>"
            f"<td>{escape(x.how)}</td><td><code>{x.digest[7:19]}</code></td></tr>"
            for x in self.layers
        )
        figures = "".join(
            f"<tr><td>{escape(label)}</td><td colspan='3'><code>{escape(value)}</code></td></tr>"
            for label, value in self._rows()
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return (
            f"<div><b>{escape(str(self.reference.name))}</b> on {escape(str(self.base))}"
            "<table><tr><th>layer</th><th>size</th><th>how</th><th>digest</th></tr>"
            f"{rows}{figures}</table>{f'<ul>{notes}</ul>' if notes else ''}</div>"
        )

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("entry point", " ".join(self.entrypoint)),
            *(("environment", f"{name}={shown}") for name, shown in self._variables()),
            ("digest", self.reference.digest or "not known"),
            ("run it", self.by_hand),
            ("took", f"{self.seconds:.1f} s{self._sent()}"),
        ]

    def _variables(self) -> list[tuple[str, str]]:
        """Return the new variables. The value of a secret is hidden."""
        pairs = self.environment.items()
        return [(name, "(hidden)" if is_secret_name(name) else value) for name, value in pairs]

    def _sent(self) -> str:
        return "" if self.sent is None else f", {readable_size(self.sent)} sent"
