"""Whatever a rank does to itself, the cell says it, soon, and nothing is left running."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from distrain_nb import api
from distrain_nb.errors import RunCancelled, RunFailed
from distrain_nb.run import Run, final_lines
from distrain_nb.worker.files.status import State
from tests.conftest import eventually
from tests.kernels import Kernel, kernel

IN_A_COLLECTIVE = """%%distrain -n 2
import os, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 1:
    time.sleep(0.3)
    {deed}
dist.all_reduce(torch.ones(1))
"""

SLEEP = """%%distrain -n 2 {options}
import time
print("asleep", flush=True)
time.sleep(600)
"""

# Whether the supervisor has looked at what ranks use.
SAMPLED = "glob.glob(os.path.dirname(os.path.dirname(__file__)) + '/resources/*/*')"
SAID = re.compile(r"it had taken (\d+) MB of memory; ([\d.]+) [MG]B were left [\d.]+ s before")


def ranks_of(run: Run) -> list[psutil.Process]:
    """The run's processes that are still alive."""
    pids = [p.pid for p in run.status.processes if p.pid]
    return [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]


def waited_for_no_collective(run: Run) -> bool:
    """Whether it ended without the half hour after which a collective gives up."""
    times = run.status.times
    return times["failed"] - times["running"] < 120


@pytest.mark.stands_for("a rank that fails")
def test_a_rank_that_raises_while_the_other_is_in_a_collective(nb: Kernel) -> None:
    outcome = nb.run(IN_A_COLLECTIVE.format(deed='raise ValueError("boom")'))
    run = api.attach()
    assert outcome.error.startswith("RunFailed")
    assert outcome.traceback.endswith(
        "failed: rank 1 failed first: ValueError: boom (Cell In[2], line 8)"
    )
    seen = [shown["text/plain"] for shown in outcome.displays if "text/plain" in shown]
    text = [each for each in seen if "failed after" in each][-1]  # the view's last state
    assert text.count('raise ValueError("boom")') == 1
    assert text.count("rank 0:") == 1
    assert "distrain_nb" not in text, "our own frames say nothing to a user"
    assert waited_for_no_collective(run)
    assert not ranks_of(run)


def test_on_a_page_the_report_stands_in_the_view_and_not_twice(nb: Kernel) -> None:
    sent = nb.send("%%distrain --name one\nraise ValueError('boom')", on_a_page=True)
    outcome = nb.outcome(sent)
    assert outcome.traceback == (
        "run 1 (one) failed: rank 0 failed: ValueError: boom (Cell In[2], line 2)"
    )
    shown = [display.get("text/html", "") for display in outcome.displays]
    assert any("Cell In[2], line 2" in html for html in shown)


@pytest.mark.stands_for("a kill")
def test_a_rank_that_is_killed(nb: Kernel) -> None:
    outcome = nb.run(IN_A_COLLECTIVE.format(deed="os.kill(os.getpid(), 9)"))
    assert "rank 1 failed first: killed by SIGKILL (it had taken" in outcome.traceback
    assert waited_for_no_collective(api.attach())
    assert not ranks_of(api.attach())


def test_an_exit_status_without_a_traceback(nb: Kernel) -> None:
    outcome = nb.run(IN_A_COLLECTIVE.format(deed="os._exit(3)"))
    assert "rank 1 failed first: exited with status 3" in outcome.traceback
    outcome = nb.run(IN_A_COLLECTIVE.format(deed="sys.exit(3)"))
    assert "rank 1 failed first: exited with status 3" in outcome.traceback
    assert "Cell In[3], line 8" in outcome.traceback


def test_a_rank_out_of_memory(nb: Kernel) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))"
    deed = f"{limit}; hog = bytearray(8 << 30)"
    outcome = nb.run(IN_A_COLLECTIVE.format(deed=deed))
    assert "rank 1 failed first: MemoryError" in outcome.traceback
    assert waited_for_no_collective(api.attach())


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """A control group whose processes may have 400 MiB together. Needs root."""
    version_1, version_2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    root = version_1 if version_1.exists() else version_2
    group = root / f"distrain-{os.getpid()}"
    group.mkdir()
    limit = "memory.limit_in_bytes" if root == version_1 else "memory.max"
    (group / limit).write_text(str(400 << 20))
    yield group
    assert eventually(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def test_a_rank_that_the_machine_kills_for_memory(nb: Kernel, small_memory: Path) -> None:
    join = f"open('{small_memory}/cgroup.procs', 'w').write(str(os.getpid()))"
    outcome = nb.run(IN_A_COLLECTIVE.format(deed=f"{join}; hog = bytearray(b'x') * (1 << 30)"))
    assert "rank 1 failed first: killed by SIGKILL: the machine" in outcome.traceback
    assert "ran out of memory (it had taken" in outcome.traceback


def test_a_killed_rank_says_what_memory_it_had_and_what_was_left(nb: Kernel) -> None:
    hog = "hog = bytearray(b'x') * 400_000_000"
    seen = f"while not {SAMPLED}: time.sleep(0.1)"
    cell = f"%%distrain\nimport glob, os, time\n{hog}\n{seen}\nos.kill(os.getpid(), 9)"
    said = SAID.search(nb.run(cell).traceback)
    assert said, "the sentence with both numbers"
    assert 400 <= int(said[1]) < 2000
    assert float(said[2]) > 0


def test_failures_before_any_line_of_the_cell_has_run(nb: Kernel) -> None:
    outcome = nb.run("%%distrain\nimport torhc\n")
    assert "No module named 'torhc'" in outcome.traceback
    assert "line 2" in outcome.traceback
    outcome = nb.run("%%distrain\nx = 1\ndef broken(:\n    pass\n")
    assert "invalid syntax: def broken(" in outcome.traceback
    assert "▶ 3 │ def broken(:" in outcome.traceback


def test_a_program_that_removes_its_working_folder(nb: Kernel) -> None:
    outcome = nb.run("%%distrain\nimport os, shutil\nshutil.rmtree(os.getcwd())\n1 / 0")
    assert "rank 0 failed: ZeroDivisionError" in outcome.traceback
    assert "Cell In[2], line 4" in outcome.traceback
    assert "distrain_nb" not in outcome.traceback


def test_a_working_folder_that_is_gone(
    home: Path, notebook_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notebook_folder)
    prepared = api.prepare("pass")
    notebook_folder.rmdir()
    with pytest.raises(RunFailed, match=f"FileNotFoundError: .*{notebook_folder}"):
        api.start(prepared).wait(60)


def test_a_message_that_is_no_unicode(home: Path) -> None:
    with pytest.raises(RunFailed, match=r"rank 0 failed: ValueError: one \? two"):
        api.submit(r"raise ValueError('one \udc80 two')", wait=True)


def test_an_exit_with_words_is_told_by_their_first_line(home: Path) -> None:
    with pytest.raises(RunFailed) as failed:
        api.submit("import sys\nsys.exit('wrong:\\nrate\\n3')", wait=True)
    head, body = str(failed.value).splitlines()[1:3]
    assert head == "rank 0 failed: exited with status 1: wrong:"
    assert body.startswith("Traceback")


def test_an_interrupt_cancels(nb: Kernel) -> None:
    sent = nb.send(SLEEP.format(options=""))
    assert eventually(lambda: api.runs() and "asleep" in api.attach().logs())
    nb.interrupt()
    outcome = nb.outcome(sent)
    assert outcome.error.startswith("RunCancelled")
    run = api.attach()
    assert run.state is State.CANCELLED
    assert {process.outcome for process in run.status.processes} == {"stopped"}
    assert not ranks_of(run)


def test_a_deaf_rank_is_killed_after_the_grace_period(nb: Kernel) -> None:
    sent = nb.send("%%distrain\nimport signal, time\nsignal.signal(15, signal.SIG_IGN)\n"
                   'print("deaf", flush=True)\ntime.sleep(600)\n')  # fmt: skip
    assert eventually(lambda: api.runs() and "deaf" in api.attach().logs())
    nb.interrupt()
    assert nb.outcome(sent, 60).error.startswith("RunCancelled")
    assert not ranks_of(api.attach())


def test_a_waiting_run_ends_with_its_kernel(nb: Kernel) -> None:
    nb.send(SLEEP.format(options=""))
    assert eventually(lambda: api.runs() and "asleep" in api.attach().logs())
    run, ranks = api.attach(), ranks_of(api.attach())
    assert len(ranks) == 2
    nb.kill()
    assert eventually(lambda: not any(rank.is_running() for rank in ranks))
    assert eventually(lambda: run.state is State.CANCELLED)
    assert "kernel" in run.status.error


@pytest.mark.stands_for("a kernel that restarts")
def test_a_run_that_nobody_waits_for_survives_a_restart_and_a_kill(
    home: Path, notebook_folder: Path
) -> None:
    go_on = notebook_folder / "go on"
    count = (
        "%%distrain -n 2 --no-wait --name counter\nimport os, time\nprint('first', flush=True)\n"
        "while not os.path.exists('go on'):\n    time.sleep(0.1)\n"
        "for n in range(60):\n    print('line', n, flush=True)\n    time.sleep(0.1)\n"
    )
    with kernel(notebook_folder, dict(os.environ)) as first:
        first.run("%load_ext distrain_nb")
        assert not first.run(count).error
        assert api.attach("counter").state in (State.STARTING, State.RUNNING)
        first.restart()
        assert eventually(lambda: "first" in api.attach("counter").logs())
        assert api.attach("counter").state is State.RUNNING
        first.kill()
    with kernel(notebook_folder, dict(os.environ)) as second:
        second.run("%load_ext distrain_nb")
        assert api.attach("counter").state is State.RUNNING
        go_on.touch()
        printed = second.run("%distrain logs counter --rank 1 --follow").text
    assert api.attach("counter").state is State.SUCCEEDED
    assert printed.split("\n")[:-1] == [
        "[rank 1] first",
        *(f"[rank 1] line {n}" for n in range(60)),
    ]


def test_two_runs_at_once(nb: Kernel) -> None:
    cell = (
        "%%distrain -n 2 --no-wait --name {0}\nimport torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\nt = torch.ones(1)\n"
        "for _ in range(200): dist.all_reduce(t, op=dist.ReduceOp.MAX)\nprint('{0}', t.item())"
    )
    for name in ("one", "two"):
        assert not nb.run(cell.format(name)).error
    for name in ("one", "two"):
        run = api.attach(name).wait(60)
        assert run.logs().splitlines().count(f"[rank 0] {name} 1.0") == 1


def test_a_run_cancelled_while_it_starts_can_be_deleted_once_it_says_so(home: Path) -> None:
    for _ in range(20):
        run = api.submit("import time\ntime.sleep(600)", ranks_per_replica=2)
        run.cancel()
        with pytest.raises(RunCancelled):
            run.wait(60)
        assert not ranks_of(run)
        api.delete(run)
        assert not run.folder.exists()


def test_ports_that_are_taken_are_not_given_out(nb: Kernel) -> None:
    taken = nb.run("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 29500)); s.listen()\n"
                   "t = socket.socket(); t.bind(('127.0.0.1', 2222)); t.listen()")  # fmt: skip
    assert not taken.error
    outcome = nb.run("%%distrain -n 2\nimport torch.distributed as dist\n"
                     "dist.init_process_group('gloo')\ndist.barrier()\nprint('met')")  # fmt: skip
    assert not outcome.error
    assert api.attach().logs().count("met") == 2


def test_a_runs_ports_are_kept_for_it(home: Path) -> None:
    code = """
import os, socket
address = ("127.0.0.1", int(os.environ["MASTER_PORT"]))
try:
    socket.socket().bind(address)
    kept = False
except OSError:
    kept = True
served = socket.create_server(address).getsockname()[1] == address[1]
"""
    run = api.submit(code, wait=True, result="kept,served")
    assert dict(run.results) == {"kept": True, "served": True}


def test_no_line_of_a_flood_is_lost(nb: Kernel) -> None:
    outcome = nb.run("%%distrain -n 4\nimport os\nfor n in range(100_000):\n"
                     "    print('rank', os.environ['RANK'], 'line', n)")  # fmt: skip
    assert not outcome.error
    seen: dict[int, list[str]] = {n: [] for n in range(4)}
    for line in final_lines(api.attach().lines()):
        seen[line.process].append(line.text)
    for rank, lines in seen.items():
        assert lines == [f"rank {rank} line {n}" for n in range(100_000)]
