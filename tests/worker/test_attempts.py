"""Which ends are tried again, and what counts as progress."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from distrain_nb.worker.files.failure import Failure, cause_of, decisive
from distrain_nb.worker.metrics import event_format, writer
from distrain_nb.worker.supervisor.retries import (
    RETRIED,
    Headway,
    RunAttempt,
    highest_step,
    is_retried,
    read_causes,
)


@pytest.mark.parametrize(
    ("status", "cause"),
    [(None, ""), (1, "1"), (75, "75"), (-9, "SIGKILL"), (137, "SIGKILL"), (143, "SIGTERM")],
)
def test_a_cause_is_a_signal_or_a_status(status: int | None, cause: str) -> None:
    assert cause_of(status) == cause
    assert is_retried(cause, RETRIED) == (cause not in ("", "1"))


def test_the_error_of_a_rank_that_lost_a_killed_one_is_not_the_cause() -> None:
    heard = Failure(0, 10.0, "RuntimeError: Connection closed by peer")
    killed = Failure(1, 11.0, "killed by SIGKILL", status=-signal.SIGKILL)
    assert decisive([heard, killed]) is killed


def test_a_library_that_aborts_for_another_ranks_error_is_not_the_cause() -> None:
    raised = Failure(0, 10.0, "ValueError: mine")
    aborted = Failure(1, 10.5, "killed by SIGABRT", status=-signal.SIGABRT)
    assert decisive([raised, aborted]) is raised


def test_only_attempts_in_turn_without_progress_count() -> None:
    attempt = RunAttempt()
    for step, checkpoints in ((-1, ""), (-1, ""), (5, ""), (5, ""), (3, "a"), (3, "a"), (5, "a")):
        attempt = attempt.next(Headway(step, checkpoints))
        assert attempt.is_of_use
    assert attempt.pause == 2.0
    assert not attempt.next(Headway(5, "a")).is_of_use


def test_the_highest_step_is_that_of_any_event_file(tmp_path: Path) -> None:
    writer.append(tmp_path / "a", 7, {"loss": 0.5})
    writer.append(tmp_path / "b", 300, {"loss": 0.5})
    writer.append(tmp_path / "b", 20, {"loss": 0.5})
    torn = tmp_path / "a" / "events.out.tfevents.1"
    torn.write_bytes(event_format.record(event_format.event(1.0, 9000, {}))[:9])
    assert highest_step(tmp_path) == 300
    assert highest_step(tmp_path / "none") == -1
    assert highest_step(tmp_path, since=1e11) == -1


def test_causes_are_read_by_their_names() -> None:
    assert read_causes("75, SIGKILL,lost") == {"75", "SIGKILL", "lost"}
    for wrong in ("0", "256", "", "sigkill", "75;76"):
        with pytest.raises(ValueError, match=wrong or "^$"):
            read_causes(wrong)
