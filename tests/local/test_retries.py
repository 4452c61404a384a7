"""A run with `--retries` goes on from its checkpoint after a kill, and after nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kills import EVERY, killed
from distrain_nb import api
from distrain_nb.errors import OptionError, RunCancelled, RunFailed
from distrain_nb.run import Run
from tests.conftest import eventually

# How often it has begun, for a program that is to see it.
COUNTED = """
import os, signal, sys
folder = os.environ["AIP_CHECKPOINT_DIR"]
begun = os.path.join(os.path.dirname(folder), "begun")
with open(begun, "a") as file:
    file.write("x")
count = len(open(begun).read())
"""


def attempts(run: Run) -> int:
    return len((run.folder / "begun").read_text())


def test_ranks_that_are_killed_at_random_moments_go_on(home: Path) -> None:
    outcome = killed(5, seed=3)
    assert outcome.kills == 5
    assert outcome.is_whole, outcome
    assert max(outcome.again) <= EVERY


def test_a_rank_is_told_of_its_attempt_and_the_log_marks_it(home: Path) -> None:
    code = f"""{COUNTED}
print(sorted((k, v) for k, v in os.environ.items() if "ATTEMPT" in k or "RESTART" in k))
if count == 1:
    os.kill(os.getpid(), signal.SIGTERM)
elif count == 2:
    sys.exit(75)
"""
    run = api.submit(code, retries=3, wait=True)
    names = ["DISTRAIN_ATTEMPT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RESTART_COUNT"]
    said = [list(zip(names, (str(n + 1), "3", str(n)), strict=True)) for n in range(3)]
    assert run.logs().splitlines() == [
        f"[rank 0] {said[0]}",
        "[service] attempt 2 of 4, after rank 0 was killed by SIGTERM",
        f"[rank 0] {said[1]}",
        "[service] attempt 3 of 4, after rank 0 exited with status 75",
        f"[rank 0] {said[2]}",
    ]
    assert "running, attempt 3 of 4" in [stretch.phase for stretch in run.status.trail]


@pytest.mark.parametrize(
    ("ends", "options"),
    [
        ("raise ValueError('mine')", {}),
        ("raise ValueError('mine')", {"retry_on": "1"}),
        ("sys.exit(3)", {}),
        ("os.kill(os.getpid(), signal.SIGKILL)", {"retry_on": "75,preemption"}),
    ],
)
def test_an_end_that_is_the_programs_own_is_not_tried_again(
    home: Path, ends: str, options: dict[str, str]
) -> None:
    with pytest.raises(RunFailed):
        api.submit(COUNTED + ends, retries=3, wait=True, **options)
    assert attempts(api.attach()) == 1


def test_three_attempts_that_come_no_further_are_the_last(home: Path) -> None:
    code = f"""{COUNTED}
import distrain_nb
distrain_nb.log_metrics(loss=1.0, step=min(count, 2))
os._exit(9)
"""
    with pytest.raises(RunFailed, match="3 attempts in turn have saved no newer checkpoint"):
        api.submit(code, retries=20, retry_on="9", wait=True)
    assert attempts(api.attach()) == 5  # the second came further than the first


@pytest.mark.stands_for("a retry")
def test_a_newer_checkpoint_counts_as_progress(home: Path) -> None:
    code = f"""{COUNTED}
with open(os.path.join(folder, "last"), "w") as file:
    file.write(str(count))
if count < 5:
    os._exit(9)
"""
    run = api.submit(code, retries=4, retry_on="9", wait=True)
    assert attempts(run) == 5


def test_a_run_that_is_stopped_before_its_next_attempt_is_over(home: Path) -> None:
    run = api.submit(f"{COUNTED}os.kill(os.getpid(), signal.SIGKILL)", retries=9)
    assert eventually(lambda: "attempt 3" in run.status.phase)
    run.cancel()
    with pytest.raises(RunCancelled):
        run.wait(60)
    assert attempts(run) < 9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retries": "-1"}, "--retries: -1 is not between 0 and 1000"),
        (
            {"retry_on": "75,SIGNAL"},
            "--retry-on: 'SIGNAL' is no cause: use an exit status from 1 to 255",
        ),
        ({"retry_on": "256"}, "--retry-on: '256' is no cause: use an exit status from 1 to 255"),
    ],
)
def test_what_retries_can_not_be_is_said(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        api.submit("pass", **options)
