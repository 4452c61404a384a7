"""How a rehearsed job ends when something goes wrong on its way."""

from __future__ import annotations

import contextvars

import pytest

from distrain_nb.errors import DistrainError
from distrain_nb.program.progress import report, report_to
from distrain_nb.rehearsal.failures import JobFailed
from distrain_nb.rehearsal.job_thread import JobThread


class Failing(JobThread):
    """A job that reports a step, and raises an error."""

    reason = ""

    def __init__(self, error: Exception) -> None:
        super().__init__("a job", contextvars.copy_context())
        self._error = error

    def run(self) -> None:
        report("running")
        raise self._error

    def fail(self, reason: str) -> None:
        self.reason = reason


@pytest.mark.brief
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (JobFailed("The replica has failed."), "The replica has failed."),
        (DistrainError("docker cannot do it"), "Internal error: docker cannot do it"),
        (ZeroDivisionError("division"), "Internal error: ZeroDivisionError('division')"),
    ],
)
def test_no_error_leaves_a_job_that_seems_to_run(error: Exception, reason: str) -> None:
    steps: list[str] = []
    with report_to(lambda step: steps.append(step.phase)):
        job = Failing(error)
    job.start()
    job.join()
    assert job.reason == reason
    assert steps == ["running"]
