"""Which ends are tried again, and what counts as progress."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.worker.files.failure import Failure, cause_of, decisive
from distrain_nb.worker.files.launch import RUN, Launch, ProcessSpec
from distrain_nb.worker.files.status import Process
from distrain_nb.worker.metrics import event_format, writer
from distrain_nb.worker.supervisor.retries import (
    FOLDERS,
    RETRIED,
    Headway,
    Retries,
    RunAttempt,
    highest_step,
    is_retried,
    read_causes,
)

KILLED = Failure(0, 1.0, "killed by SIGKILL", status=-signal.SIGKILL)


def a_run(folder: Path, retries: int, **options: Any) -> Retries:
    """The attempts of a run of one rank, which reports and saves below its folder."""
    folders = {name: f"{RUN}/{name}" for name in FOLDERS}
    rank = ProcessSpec("rank 0", "", 0, 0, {"MINE": "1", **folders})
    return Retries(folder, Launch((rank,), str(folder), retries=retries, **options))


def told(run: Retries) -> tuple[str, str]:
    """The variables by which the rank of the present attempt knows it."""
    environment = run.launch().processes[0].environment
    assert environment["MINE"] == "1"
    return environment["TORCHELASTIC_RESTART_COUNT"], environment["TORCHELASTIC_MAX_RESTARTS"]


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


def test_a_run_goes_on_while_its_attempts_come_further(tmp_path: Path) -> None:
    events, checkpoints = (tmp_path / name for name in FOLDERS)
    run = a_run(tmp_path, 9)
    assert (run.which, told(run)) == ("", ("0", "9"))
    assert not events.exists()  # the first attempt needs no mark in the charts
    assert run.go_on([KILLED], has_saved=False)
    assert (run.which, told(run)) == (", attempt 2 of 10", ("1", "9"))
    (mark,) = events.iterdir()
    assert mark.name.endswith(".attempt-2")
    mark.unlink()
    run.launch()
    assert len([*events.iterdir()]) == 1  # also where there is the folder of an earlier attempt
    (checkpoints / "step-1").mkdir(parents=True)
    assert run.go_on([KILLED], has_saved=False)
    assert run.attempt.fruitless == 2  # an empty folder is no checkpoint
    (checkpoints / "step-1" / "weights").write_text("1")
    assert run.go_on([KILLED], has_saved=False) and run.attempt.fruitless == 0
    writer.append(events, 7, {"loss": 0.5})
    for path in events.iterdir():  # clocks of files are coarse: it was written since then
        os.utime(path, (run.attempt.began + 1, run.attempt.began + 1))
    assert run.go_on([KILLED], has_saved=False) and run.attempt.fruitless == 0
    process = Process(0, "rank 0", "", 0, 0)
    assert run.after([KILLED], [process]).startswith("attempt 5 of 10, after rank 0")
    assert run.with_no_retry_reason("failed") == "failed"


def test_a_run_that_gets_no_further_ends_and_says_so(tmp_path: Path) -> None:
    run = a_run(tmp_path, 9)
    while run.go_on([KILLED], has_saved=False):
        assert run.attempt.number < 9
    assert run.with_no_retry_reason("failed").startswith("failed\nnot started again: ")


def test_which_ends_of_a_run_are_tried_again(tmp_path: Path) -> None:
    own = Failure(0, 1.0, "ValueError: mine")
    assert not a_run(tmp_path, 1).go_on([own], has_saved=False)
    assert not a_run(tmp_path, 1).go_on([own], has_saved=True)
    assert not a_run(tmp_path, 1).go_on([], has_saved=False)
    saved = a_run(tmp_path, 1)
    assert saved.go_on([], has_saved=True)
    assert saved.after([], []) == "attempt 2 of 2, after it had saved ahead of its time limit"
    assert not saved.go_on([KILLED], has_saved=False)  # it had one retry
    assert not a_run(tmp_path, 1, retried=("75",)).go_on([KILLED], has_saved=False)
    once = a_run(tmp_path, 0)
    assert not once.go_on([KILLED], has_saved=False)
    assert "TORCHELASTIC_RESTART_COUNT" not in once.launch().processes[0].environment


def test_a_failed_attempt_leaves_its_log_and_checkpoints_alone(tmp_path: Path) -> None:
    gone = ("failure-0.json", "alone-0", "begun-1", "succeeded-1", "pipe-0.o")
    kept = ("log.tsv", "checkpoints")
    for name in (*gone, *kept):
        (tmp_path / name).touch()
    (tmp_path / "results" / "0").mkdir(parents=True)
    a_run(tmp_path, 1).forget()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
