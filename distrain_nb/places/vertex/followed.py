"""A job that the cloud's own SDK has started, followed from here."""

from __future__ import annotations

from collections.abc import Mapping

from distrain_nb.backends.remote.sdk import NoOutput
from distrain_nb.places.vertex.service import VertexService


class ForeignService(VertexService):
    """A job that the SDK has started: its state, its log, its end."""

    @property
    def output(self) -> NoOutput:
        """Empty: only our worker writes event files and results where we look for them."""
        return NoOutput()

    def links(self, job: str) -> Mapping[str, str]:
        """Return the job and its log in the console."""
        return {name: link for name, link in super().links(job).items() if name in ("job", "log")}
