"""Failures of a stand-in: a request that is refused, and a job that fails."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ApiError(Exception):
    """A call that is refused: the name of the error and the service's words.

    The name is a gRPC status on Vertex AI; `status` is SageMaker's HTTP status.
    """

    code: str
    text: str
    status: int = 400


class JobFailed(Exception):
    """The job fails, for this reason."""
