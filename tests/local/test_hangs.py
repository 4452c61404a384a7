"""A run that hangs says which rank is odd and where, and one that is slow is left alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.api.source import Source
from distrain_nb.errors import OptionError, RunFailed, RunNotReady
from distrain_nb.program import Cell, Notebook, capture
from distrain_nb.run import Run
from distrain_nb.run.stacks import Stacks
from distrain_nb.worker.rank.stacks import HANG_AFTER_VARIABLE, STOP_VARIABLE
from tests.conftest import eventually

BEGIN = """\
import itertools, os, signal, sys, threading, time
rank = int(os.environ["RANK"])
lock = threading.Lock()
print("begun", flush=True)
"""
DISTRIBUTED = f"""{BEGIN}import torch, torch.distributed as dist
dist.init_process_group("gloo")
"""
AFTER = "2"
STOPPED = r"stopped by --stop-when-hung: it had made no progress for \d+ s"


def start(text: str, **options: object) -> Run:
    source = Source(Cell("Cell In[7]", text), Notebook({}, (), Path.cwd()))
    given = {"hang_after": AFTER, "wait": False, "ranks_per_replica": 2, **options}
    return api.submit(source, **given)  # type: ignore[call-overload, no-any-return]


def note_of(run: Run) -> str:
    assert eventually(lambda: bool(run.status.note), 120)
    return run.status.note


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("lock.acquire(); lock.acquire()", "waits for a lock"),
        ("sum(itertools.repeat(0))", "holds Python's lock in a call that does not return"),
        ("os.kill(os.getpid(), signal.SIGSTOP)", "is stopped (SIGSTOP)"),
    ],
)
def test_the_rank_that_others_wait_for_is_named(home: Path, deed: str, words: str) -> None:
    run = start(f"{DISTRIBUTED}if rank == 1:\n    {deed}\ndist.barrier()\n")
    note = note_of(run)
    assert "rank 0 waits in barrier (Cell In[7], line 9); rank 1 " + words in note
    if "SIGSTOP" not in deed:  # a stopped rank can only say where it was before
        assert note.endswith("(Cell In[7], line 8)")
    assert (
        "[service] distrain[hang]: the run makes no progress: rank 0 waits in barrier" in run.logs()
    )
    run.cancel()
    with pytest.raises(Exception, match="cancelled"):
        run.wait(60)
    assert "rank 1 " + words in run.status.note  # it is known of the run that has ended too


@pytest.mark.stands_for("a hang")
def test_no_rank_is_odd_and_the_run_is_stopped_if_asked_for(home: Path) -> None:
    run = start(f"{BEGIN}lock.acquire()\nlock.acquire()\n", stop_when_hung=True)
    with pytest.raises(RunFailed, match=STOPPED):
        run.wait(120)
    assert "all 2 ranks wait for a lock (Cell In[7], line 6" in run.status.error
    assert not run.status.note  # as the error says it


def test_a_silent_run_goes_on_undisturbed(home: Path) -> None:
    """A sleep in C keeps its time, whoever looks; a program has its own watchdog and its forks."""
    run = start(
        f"""{BEGIN}import ctypes, faulthandler
left = ctypes.CDLL(None).sleep(6), ctypes.PyDLL(None).sleep(6)
child = os.fork()
if not child:
    faulthandler.dump_traceback_later(60)
    faulthandler.cancel_dump_traceback_later()
    os._exit(5)
print("slept", left, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), threading.active_count())
"""
    )
    assert eventually(lambda: (run.folder / "look").exists(), 120)  # somebody has looked
    run.wait(120)
    assert run.logs().count("slept (0, 0) 5 1") == 2
    assert "makes no progress" not in run.logs()
    assert not run.status.note


def test_stacks_of_a_run_at_work(home: Path) -> None:
    run = start(f"{BEGIN}def inner():\n    time.sleep(300)\ninner()\n", hang_after="60")
    assert eventually(
        lambda: run.logs().count("begun") == 2 and list(run.folder.glob("where-*")), 120
    )
    # A rank that falls asleep while it is looked at has moved.
    asleep = re.compile(r"rank 0 sleeps \(Cell .*rank 1 sleeps \(Cell In\[7\], line 6\)", re.DOTALL)
    looks = list[Stacks]()
    assert eventually(lambda: looks.append(run.stacks()) or asleep.search(str(looks[-1])), 60)
    stacks = looks[-1]
    run.cancel()
    with suppress(RunNotReady):  # until it has ended, a rank that is ending isn't one that hangs
        assert "holds Python's lock" not in repr(run.stacks())
    assert "> inner, Cell In[7], line 6\n" in str(stacks)
    assert "<module>, Cell In[7], line 7" in str(stacks)
    assert re.search(r"inner, Cell In\[7\], line 6: [12]0 samples", stacks._repr_html_())
    assert eventually(lambda: run.state.final, 60)
    with pytest.raises(RunNotReady, match=r"is not running \(cancelled\)"):
        run.stacks()


def test_what_hang_after_takes(home: Path) -> None:
    with pytest.raises(OptionError, match="invalid --hang-after 'soon': expected seconds"):
        start(BEGIN, hang_after="soon")
    run = start(f"{BEGIN}time.sleep(300)", hang_after=0)
    assert eventually(lambda: "begun" in run.logs(), 120)
    with pytest.raises(OptionError, match="answers on this machine"):
        run.stacks()
    run.cancel()


def test_a_container_says_it_in_its_log(tmp_path: Path) -> None:
    text = f"{BEGIN}lock.acquire()\nlock.acquire()\n"
    variables = {HANG_AFTER_VARIABLE: AFTER, STOP_VARIABLE: "1"}
    captured = capture(Cell("Cell In[7]", text), 1, Notebook({}, (), tmp_path))
    replace(captured, variables=variables).write(tmp_path / "program")
    given = {"DISTRAIN_PROGRAM": str(tmp_path / "program"), "DISTRAIN_RANKS": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "distrain_nb.worker"],
        env={**os.environ, **given}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = "[service] distrain[hang]: the run makes no progress: all 2 ranks wait for a lock"
    assert done.returncode == 1, done.stderr
    assert said in done.stderr
    assert "stopped by --stop-when-hung: it had made no progress for" in done.stderr
