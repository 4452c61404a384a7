"""Tuning jobs that a cloud's own SDK has started: each becomes a study."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

from distrain_nb.backends.remote.backend import RemotePlanT
from distrain_nb.backends.remote.options import RemoteOptionsT
from distrain_nb.backends.remote.sdk import SdkRemoteBackend
from distrain_nb.backends.remote.studies import TuningBackend
from distrain_nb.backends.remote.submission import Submission, follow
from distrain_nb.errors import DistrainError

if TYPE_CHECKING:
    from distrain_nb.backends.remote.service import TuningService
    from distrain_nb.backends.remote.submission import Spec
    from distrain_nb.backends.tuning import ServiceStudy


class SdkTuningBackend(
    SdkRemoteBackend[RemoteOptionsT, RemotePlanT], TuningBackend[RemoteOptionsT, RemotePlanT]
):
    """A remote backend whose service tunes, and whose cloud has an SDK with objects for jobs."""

    def foreign_study(self, job: object) -> ServiceStudy:
        """What the service says of the study. Raises DistrainError."""
        spec = self._foreign_spec(job)
        raw = json.loads(json.dumps(asdict(spec)))
        service = cast("TuningService", self.service(raw, {}, Path()))
        return service.study(spec.job)

    def follow_study(self, job: object, folder: Path) -> None:
        """Have its folder as if it had been submitted from here."""
        follow(Submission(self.name, asdict(self._foreign_spec(job)), ()), folder)

    def _foreign_spec(self, job: object) -> Spec:
        found = self.foreign(job)
        if found is None or not found.study:
            raise DistrainError(f"{job!r} is not a tuning job of {self.name}")
        return found
