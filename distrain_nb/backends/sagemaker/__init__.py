"""SageMaker: hosts on managed instances of AWS, from a training job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote.backend import RemoteBackend
from distrain_nb.backends.sagemaker.channels import Channel
from distrain_nb.backends.sagemaker.names import INPUT
from distrain_nb.backends.sagemaker.plan import SageMakerPlan, plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.backends.base import Job
    from distrain_nb.backends.sagemaker.service import SageMakerService


class SageMakerBackend(RemoteBackend):
    """Jobs in AWS, which a cell does not wait for."""

    name = "sagemaker"

    def data(self, name: str, uri: str) -> str:
        """The folder of the channel that brings the data, or in Pipe mode the FIFO of the first
        pass over them: that name with `_0`, which `_1`, … follow. Raises OptionError."""
        if uri.startswith("/"):
            return uri
        channel = Channel.read(f"{name}={uri}", "data")
        return f"{INPUT}/{channel.name}{'_0' if channel.mode == 'Pipe' else ''}"

    def brings(self, uri: str) -> bool:
        """A channel does, for all but a path that is there already."""
        return not uri.startswith("/")

    def plan(self, job: Job) -> SageMakerPlan:
        """Raises OptionError for options that can't be read."""
        return plan(job)

    def service(self, told: Mapping[str, Any], endpoints: Mapping[str, str]) -> SageMakerService:
        """A job on SageMaker, or on the stand-in that listens at `endpoints`."""
        from distrain_nb.backends.sagemaker.service import SageMakerService

        return SageMakerService(told, endpoints)
