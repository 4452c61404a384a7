"""Vertex AI: worker pools on managed machines, from a custom job or a training pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote.backend import RemoteBackend
from distrain_nb.backends.vertex.plan import VertexPlan, plan
from distrain_nb.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.backends.base import Job
    from distrain_nb.backends.vertex.service import VertexService


class VertexBackend(RemoteBackend):
    """Jobs in Google Cloud, which a cell does not wait for."""

    name = "vertex"

    def data(self, name: str, uri: str) -> str:
        """Buckets are mounted below /gcs/, NFS shares below /mnt/nfs/. Raises OptionError."""
        if uri.startswith("gs://"):
            return f"/gcs/{uri.removeprefix('gs://')}"
        if uri.startswith("/"):
            return uri
        raise OptionError(
            f"--data {name}={uri}: write gs://BUCKET/PATH, or the path at which the replicas have "
            "it mounted, such as /mnt/nfs/data"
        )

    def plan(self, job: Job) -> VertexPlan:
        """Raises OptionError for options that can't be read."""
        return plan(job)

    def service(self, told: Mapping[str, Any], endpoints: Mapping[str, str]) -> VertexService:
        """A job on Vertex AI, or on the stand-in that listens at `endpoints`."""
        from distrain_nb.backends.vertex.service import VertexService

        return VertexService(told, endpoints)
