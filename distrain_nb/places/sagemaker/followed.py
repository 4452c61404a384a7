"""A job that the cloud's own SDK has started, followed from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.sdk import NoOutput
from distrain_nb.places.sagemaker.client import plain_words
from distrain_nb.places.sagemaker.service import SageMakerService

if TYPE_CHECKING:
    from distrain_nb.backends.remote.service import Cursor, LogEntry


class ForeignService(SageMakerService):
    """A job that the SDK has started: its state, its log, its metric definitions, its end."""

    @cached_property
    def output(self) -> NoOutput:
        """Empty: only our worker writes event files and results where we look for them."""
        return NoOutput()

    def log(self, job: str, cursor: Cursor, *, last: bool) -> tuple[Sequence[LogEntry], Cursor]:
        """Return the lines since the cursor, with the metrics that the job's definitions find in
        them."""
        return self._described.log(job, cursor, last=last)

    @cached_property
    def _described(self) -> SageMakerService:
        """The service with the request that it says the job had."""
        with plain_words("ask what the job runs on"):
            asked = self._client("sagemaker").describe_training_job(TrainingJobName=self.spec.job)
        return SageMakerService(replace(self.spec, request=asked), self.endpoints)

    def links(self, job: str) -> Mapping[str, str]:
        """Return the job and its log in the console."""
        return {name: link for name, link in super().links(job).items() if name in ("job", "log")}
