"""The curves of a trial's run, read while it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from distrain_nb.study.endings import TrialMetrics
from distrain_nb.worker.files.status import Status

if TYPE_CHECKING:
    from distrain_nb.run.metrics.records import Points

POINTS_OF_CURVE = 256  # at most


class RunCurves:
    """The curves of the run in *folder*, read while it goes on. Threads may share one object."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._metrics: TrialMetrics | None = None
        self._reading = Lock()

    def read(self, metrics: Sequence[str]) -> dict[str, Points]:
        """Return the curves of these metrics so far, each thinned to POINTS_OF_CURVE points."""
        with self._reading:
            is_over = self.is_over
            reader = self._metrics or TrialMetrics(self.folder)
            reader.read()
            self._metrics = None if is_over else reader
            return {metric: reader.curve(metric, POINTS_OF_CURVE) for metric in metrics}

    @property
    def is_over(self) -> bool:
        """Whether no more points will come.

        A cloud's files may arrive after the end of the trial.
        """
        try:
            return Status.read(self.folder).state.final
        except (OSError, ValueError):
            return True
