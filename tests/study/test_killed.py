"""Killed at any step: a study ends with the trials that it was asked for, none counted twice."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from distrain_nb import study
from distrain_nb.config import Config
from distrain_nb.run import Store
from distrain_nb.study import Study
from distrain_nb.study import __main__ as process
from distrain_nb.study import process as owning
from distrain_nb.study import study as handle
from distrain_nb.worker.files.status import UNTAKEN, State, is_cancelled_as_untaken, request_cancel
from tests.conftest import eventually
from tests.local.test_crash import CRASHING
from tests.study.conftest import process_of

pytestmark = pytest.mark.slow

# What changes something that others can see.
STEPS = {"posix": {"link", "mkdir", "replace", "unlink"}, "socket": {"sendmsg"}}
CELL = """\
from distrain_nb import log_metrics
with open(journal, "a") as file:
    file.write(f"{x}\\n")
log_metrics(loss=x)
"""


class Killer:
    """Ends this process at the n-th thing that the package asks of the system."""

    def __init__(self, last: int) -> None:
        self.left = last

    def __call__(self, frame: Any, event: str, function: Any) -> None:
        if event != "c_call" or not _changes(function, frame):
            return
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1


def _changes(function: Any, frame: Any) -> bool:
    module = (
        getattr(function, "__module__", None)
        or type(getattr(function, "__self__", None)).__module__
    )
    if function.__name__ == "execute":  # of the list of runs
        return "distrain_nb/run/" in frame.f_code.co_filename
    return function.__name__ in STEPS.get(module, ())


def own(folder: Path, last: int) -> bool:
    """Be the study's process in a fork of this one, to a step; say whether it came to its end."""
    pid = os.fork()
    if pid == 0:
        try:
            sys.setprofile(Killer(last))
            process.main(folder)
        finally:
            os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def test_the_process_of_a_study_is_killed_at_every_step(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distrain_nb.study.starting.start_process", lambda folder: None)
    monkeypatch.setattr(handle, "start_process", lambda *_: None)
    monkeypatch.setattr("distrain_nb.backends.remote.lock._TRIES", 1)
    monkeypatch.setattr(owning, "TURN_S", 0.01)
    step = 0
    while True:
        journal = tmp_path / f"journal-{step}"
        found = study.tune(
            CELL, tune="x=1..10", goal="min:loss", trials=1, param=f"journal={str(journal)!r}"
        )
        unharmed = own(found.folder, step)
        assert unharmed or own(found.folder, sys.maxsize)
        check(found, journal)
        if unharmed:
            break
        step += 1
    assert step > 20


# How far apart the steps are at which each is killed.
APART = {"server": 3, "supervisor": 16, "rank": 2}


@pytest.mark.parametrize("who", APART)
def test_a_trial_and_what_starts_it_are_killed_at_many_steps(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    who: str,
) -> None:
    """The trial is tried again; the end of a server doesn't count as an attempt."""
    import optuna  # noqa: F401 - once, rather than in each fork

    plan = tmp_path / "plan"
    monkeypatch.setenv("CRASH", str(plan))
    monkeypatch.setenv("PYTHONPATH", CRASHING)
    monkeypatch.setattr("distrain_nb.study.starting.start_process", lambda folder: None)
    monkeypatch.setattr(handle, "start_process", lambda *_: None)
    monkeypatch.setattr(owning, "MOST_ATTEMPTS", 1 if who == "server" else 2)
    Config(idle=0.1).save()
    for step in itertools.count(0, APART[who]):
        plan.write_text(f"{who} {step}")
        monkeypatch.setenv("SERVER_OF", f"{plan} {step}")
        found = study.tune(
            CELL, tune="x=1..10", goal="min:loss", trials=1, param=f"journal={str(home / 'j')!r}"
        )
        assert own(found.folder, sys.maxsize)
        assert found.trials["state"].tolist() == ["succeeded"], found.status.error
        if plan.exists():
            break
    assert step > 4 * APART[who] or step > 10


def check(found: Study, journal: Path) -> None:
    """It has its one trial, which has run once, to its end."""
    assert found.state is State.SUCCEEDED, found.status.error
    assert found.trials["state"].tolist() == ["succeeded"]
    values = [trial.params["x"] for trial in found.all_trials()]
    assert [float(line) for line in journal.read_text().split()] == values
    assert [trial.goals["loss"] for trial in found.all_trials()] == values
    assert [trial.run.state for trial in found.all_trials()] == [State.SUCCEEDED]
    mine = [r for r in Store().all() if r.handle.get("study") == found.file.key]
    assert sorted(record.id for record in mine) == [trial.run_id for trial in found.all_trials()]


def test_who_asks_for_a_study_whose_process_was_killed_starts_another(home: Path) -> None:
    cell = f"import time\ntime.sleep(1)\n{CELL}"
    found = study.tune(
        cell, tune="x=1..10", goal="min:loss", trials=3, param=f"journal={str(home / 'j')!r}"
    )
    assert eventually(lambda: found.all_trials())
    first = process_of(found)
    first.kill()
    assert found.wait(240).trials["state"].tolist() == ["succeeded"] * 3
    assert process_of_last(found) != first.pid
    assert len((home / "j").read_text().split()) == 3


def process_of_last(found: Study) -> int:
    owner = found.status.supervisor
    assert owner is not None
    return owner.pid


STARTS = """\
import sys
from distrain_nb import tune
cell = "import time\\nfrom distrain_nb import log_metrics\\nlog_metrics(loss=x)\\ntime.sleep(1)"
tune(cell, tune="x=1..10", goal="min:loss", trials=3, wait=sys.argv[1] == "wait", name=sys.argv[1])
sys.stdin.read()
"""


@pytest.mark.parametrize("waits", [True, False])
def test_a_study_ends_with_the_kernel_that_waits_for_it_and_outlives_any_other(
    home: Path, waits: bool
) -> None:
    command = [sys.executable, "-c", STARTS, "wait" if waits else "go on"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as kernel:
        assert eventually(lambda: any(t.run_id for s in study.studies() for t in s.all_trials()))
        kernel.kill()
    found = study.find_study()
    assert eventually(lambda: found.state.final)
    if waits:
        assert found.state is State.CANCELLED
        assert found.status.error == "the kernel that waited for it has ended"
        assert all(trial.state.final and trial.run.state.final for trial in found.all_trials())
    else:
        assert found.trials["state"].tolist() == ["succeeded"] * 3


def test_the_study_leaves_a_users_request_as_it_is(tmp_path: Path) -> None:
    request_cancel(tmp_path)
    request_cancel(tmp_path, UNTAKEN)
    assert not is_cancelled_as_untaken(tmp_path)


@pytest.mark.parametrize("by", ["the study", "a user"])
def test_a_trial_whose_run_was_given_up_too_early_is_tried_again(home: Path, by: str) -> None:
    """Its run came to life after the study had told it not to begin."""
    cell = f"import os, time\ntime.sleep(0 if os.path.exists(journal) else 600)\n{CELL}"
    journal = home / "journal"
    found = study.tune(
        cell, tune="x=1..10", goal="min:loss", trials=1, param=f"journal={str(journal)!r}"
    )
    assert eventually(
        lambda: found.all_trials() and found[1].run_id and found[1].run.status.processes
    )
    journal.touch()
    asked = ("", UNTAKEN, "") if by == "a user" else (UNTAKEN,)
    for why in asked:
        request_cancel(found[1].run.folder, why)
    assert eventually(lambda: found.state.final)
    assert str(found[1].state) == ("succeeded" if by == "the study" else "cancelled")
    assert len(found.all_trials()) == 1


def test_a_trial_whose_supervisor_was_killed_is_tried_again_with_the_same_values(
    home: Path,
) -> None:
    cell = f"import os, time\ntime.sleep(0 if os.path.exists(journal) else 600)\n{CELL}"
    journal = home / "journal"
    found = study.tune(
        cell, tune="x=1..10", goal="min:loss", trials=1, param=f"journal={str(journal)!r}"
    )
    assert eventually(
        lambda: found.all_trials() and found[1].run_id and found[1].run.status.processes
    )
    first = found[1]
    owner = first.run.status.supervisor
    assert owner is not None
    journal.touch()
    psutil.Process(owner.pid).kill()
    again = found.wait(240)[1]
    assert again.params == first.params and again.run_id != first.run_id
    assert str(again.state) == "succeeded" and len(found.all_trials()) == 1
