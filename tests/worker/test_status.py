"""A run's status, read while its supervisor is about to end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from distrain_nb.worker.files import failure
from distrain_nb.worker.files.cause import EXIT, MEMORY
from distrain_nb.worker.files.failure import Memory
from distrain_nb.worker.files.status import Owner, Process, State, Status, request_cancel


def test_a_run_that_ends_while_its_status_is_read_has_ended_as_its_supervisor_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Status(State.STARTING, supervisor=Owner.of(os.getpid())).enter(State.RUNNING)
    running.write(tmp_path)

    def ends_now(_: Owner) -> bool:
        running.enter(State.SUCCEEDED).write(tmp_path)
        return False

    monkeypatch.setattr(Owner, "alive", property(ends_now))
    assert Status.current(tmp_path).state is State.SUCCEEDED


def test_a_run_whose_supervisor_is_gone_without_a_last_word_has_failed(tmp_path: Path) -> None:
    Status(State.RUNNING, supervisor=Owner(2**22 + 1, "1")).write(tmp_path)
    found = Status.current(tmp_path)
    assert found.state is State.FAILED and found.says_nothing_of_the_program


def test_a_run_that_is_cancelled_while_it_starts_goes_on_until_its_supervisor_has_read_that(
    tmp_path: Path,
) -> None:
    Status(State.STARTING, supervisor=Owner.of(os.getpid())).write(tmp_path)
    request_cancel(tmp_path)
    assert Status.current(tmp_path).state is State.STARTING
    Status(State.STARTING, supervisor=Owner(2**22 + 1, "1")).write(tmp_path)
    assert Status.current(tmp_path).state is State.CANCELLED


@pytest.mark.parametrize(
    ("failed", "killed"),
    [
        (failure.of_exit(0, -9, False, Memory(1 << 30)), True),
        (failure.of_exit(0, -9, True, Memory(1 << 30)), False),
        (failure.of_exit(0, -11, False, Memory(1 << 30)), False),
        (failure.Failure(0, 1.0, "ValueError: rank 0 failed: killed by SIGKILL"), False),
    ],
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_cause_says_that_somebody_killed_a_process(
    tmp_path: Path, failed: failure.Failure, killed: bool, ranks: int
) -> None:
    processes = [Process(n, f"rank {n}", "workers", 0, n) for n in range(ranks)]
    cause = failure.cause_among([failed], processes)
    assert cause.was_killed is killed
    assert cause.subject == "rank 0"
    ended = Status(State.RUNNING).enter(State.FAILED, error="reworded", cause=cause)
    ended.write(tmp_path)
    assert Status.read(tmp_path).says_nothing_of_the_program is killed


@pytest.mark.parametrize(
    ("status", "kind"),
    [(-9, MEMORY), (128 + 9, MEMORY), (-11, EXIT), (-15, EXIT), (3, EXIT)],
)
def test_only_a_sigkill_is_laid_to_a_machine_without_memory(status: int, kind: str) -> None:
    failed = failure.of_exit(0, status, True, Memory(1 << 30))
    assert failed.kind == kind
    assert ("ran out of memory" in failed.summary) is (status == -9)
