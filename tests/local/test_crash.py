"""Killed at any step: what a run's folder says is true, nothing is left, the next run starts."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from distrain_nb import api
from distrain_nb.config import Config
from distrain_nb.run import Run, final_lines
from distrain_nb.worker.files.status import State
from tests.conftest import eventually

PROGRAM = "import os, time\nfor n in range(3):\n    print('line', n, flush=True)"
LINES = ["line 0", "line 1", "line 2"]
CRASHING = str(Path(__file__).parent / "crash")


@pytest.fixture
def plan(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Says who is killed at which step."""
    path = tmp_path / "plan"
    monkeypatch.setenv("CRASH", str(path))
    monkeypatch.setenv("PYTHONPATH", CRASHING)
    return path


def alive(plan: Path) -> set[str]:
    """What is alive of the runs of this test, by the names that processes have."""
    return {
        process.info["name"]
        for process in psutil.process_iter(["name", "environ", "status"])
        if (process.info["environ"] or {}).get("CRASH") == str(plan)
        and process.info["status"] != psutil.STATUS_ZOMBIE
    }


def check(run: Run, plan: Path) -> None:
    """The run has ended, in the state that it was left in."""
    assert eventually(lambda: run.state.final)
    assert run.state in (State.SUCCEEDED, State.FAILED)
    assert (run.status.error != "") == (run.state is State.FAILED)
    assert eventually(lambda: not alive(plan) & {"distrain run", "rank 0", "rank 1"})
    for rank in 0, 1:
        lines = [line.text for line in final_lines(run.lines(rank))]
        assert lines == (LINES if run.state is State.SUCCEEDED else LINES[: len(lines)])


def test_a_supervisor_is_killed_at_every_step(plan: Path) -> None:
    ends, step = [], 0
    while True:
        plan.write_text(f"supervisor {step}")
        run = api.submit(PROGRAM, ranks_per_replica=2)
        check(run, plan)
        if plan.exists():
            break
        ends.append(run.state)
        step += 1
    assert run.state is State.SUCCEEDED
    assert step > 40
    assert ends[0] is State.FAILED
    assert ends[-1] is State.SUCCEEDED


def test_a_fork_server_is_killed_at_every_step(plan: Path) -> None:
    Config(idle=0.1).save()
    step = 0
    while True:
        plan.write_text(f"server {step}")
        check(api.submit(PROGRAM, ranks_per_replica=2), plan)
        assert eventually(lambda: not alive(plan))
        if plan.exists():
            break
        assert api.submit("pass", wait=True).state is State.SUCCEEDED
        assert eventually(lambda: not alive(plan))
        step += 1
    assert step > 10
