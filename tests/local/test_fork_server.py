"""Whoever speaks to a fork server, and wherever it has to live: runs start, or say why not."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

import distrain_nb.worker
from distrain_nb import api
from distrain_nb.config import Config
from distrain_nb.errors import DistrainError
from distrain_nb.places.local import warm
from distrain_nb.run import Run
from distrain_nb.worker.files import status
from distrain_nb.worker.files.request import Request, send
from distrain_nb.worker.files.status import State
from tests import seccomp
from tests.conftest import eventually

SLEEP = "import time\nprint('asleep', flush=True)\ntime.sleep(600)"


@pytest.fixture
def server(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> psutil.Process:
    """A fork server of this test's own."""
    monkeypatch.setenv("SERVER_OF", tmp_path.name)
    run = api.submit(SLEEP)
    assert eventually(lambda: run.state is State.RUNNING)
    found = server_of(run)
    run.cancel()
    return found


def server_of(run: Run) -> psutil.Process:
    supervisor = run.status.supervisor
    assert supervisor is not None
    parent = psutil.Process(supervisor.pid).parent()
    assert parent is not None
    return parent


def test_no_client_harms_anothers_start(server: psutil.Process, tmp_path: Path) -> None:
    address = server_address(server)
    gone = tmp_path / "gone"
    nobody_reads = os.pipe()
    os.close(nobody_reads[0])
    full = os.pipe()
    os.set_blocking(full[1], False)
    os.write(full[1], bytes(1 << 20))
    for folder, answer in ((gone, nobody_reads[1]), (gone, full[1]), (Path("relative"), full[1])):
        assert send(address, Request(folder, answer))
    (tmp_path / "launch.json").write_text("{")
    (tmp_path / "status.json").write_text("")
    assert send(address, Request(tmp_path, full[1]))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as silent:
        silent.connect(str(address))
        for data in (b"", b"\0", b"/" * 100_000, b"/nothing/passed"):
            silent.send(data)
        run = api.submit(SLEEP)
        assert eventually(lambda: run.state is State.RUNNING)
    assert server_of(run) == server
    run.cancel()
    for descriptor in (nobody_reads[1], *full):
        os.close(descriptor)
    with pytest.raises(DistrainError, match=r"No such file or directory: '.*gone/status.json'"):
        warm.submit_run(gone, 60.0)


def test_an_edited_worker_gets_a_server_of_its_own(
    home: Path, server: psutil.Process, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = shutil.copytree(distrain_nb.worker.__path__[0], tmp_path / "worker")
    monkeypatch.setattr(distrain_nb.worker, "__path__", [str(copy)])
    os.utime(copy / "files" / "launch.py")
    run = api.submit(SLEEP)
    assert eventually(lambda: run.state is State.RUNNING)
    assert server_of(run) != server
    run.cancel()


def server_address(server: psutil.Process) -> Path:
    words = server.cmdline()
    return Path(words[words.index("distrain_nb.worker.supervisor.forkserver") + 1])


def test_a_run_that_a_server_has_not_taken_when_it_ends_is_given_to_another(
    home: Path, server: psutil.Process
) -> None:
    server.suspend()
    runs: list[Run] = []
    asking = [threading.Thread(target=lambda: runs.append(api.submit(SLEEP))) for _ in range(2)]
    for each in asking:
        each.start()
    assert eventually(lambda: len(list(home.glob("runs/*/status.json"))) == 3)
    assert not runs  # they wait for the server's answer
    server.send_signal(signal.SIGKILL)
    for each in asking:
        each.join(60)
    assert eventually(lambda: [run.state for run in runs] == [State.RUNNING] * 2)
    for run in runs:
        assert server_of(run) != server
        run.cancel()


def test_a_run_starts_though_servers_are_killed_before_they_take_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SERVER_OF", tmp_path.name)
    monkeypatch.setattr(warm.subprocess, "Popen", _killed_at_once(8))
    assert api.submit("pass", wait=True).state is State.SUCCEEDED


def test_a_run_of_which_each_server_is_killed_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SERVER_OF", tmp_path.name)
    monkeypatch.setattr(warm, "MOST_SERVERS", 3)
    monkeypatch.setattr(warm.subprocess, "Popen", _killed_at_once(4))
    with pytest.raises(DistrainError, match="its server has ended: it was killed, 3 times in turn"):
        api.submit("pass", wait=True)


def _killed_at_once(count: int) -> Callable[..., subprocess.Popen[bytes]]:
    """Start processes, of which the first are killed."""
    left, start = iter(range(count)), subprocess.Popen

    def popen(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = start(*words, **options)
        if next(left, None) is not None:
            process.kill()
        return process

    return popen


def test_a_run_starts_however_long_it_waits_for_its_server(
    home: Path, server: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.suspend()
    monkeypatch.setattr(status, "TAKEN_UP_WITHIN_S", 0.0)
    asking = threading.Thread(target=lambda: api.submit(SLEEP))
    asking.start()
    assert eventually(lambda: api.runs()[0].name == "run-2")
    run = api.runs()[0]
    assert run.state is State.STARTING
    run.cancel()
    assert run.state is State.STARTING
    server.resume()
    asking.join(60)
    assert eventually(lambda: run.state is State.CANCELLED)


def test_a_run_whose_process_has_ended_before_a_server_takes_it_is_not_started(
    home: Path, server: psutil.Process
) -> None:
    server.suspend()
    asking = subprocess.Popen(
        [sys.executable, "-c", f"from distrain_nb import submit; submit({SLEEP!r})"]
    )
    assert eventually(lambda: (home / "runs" / "2" / "launch.json").exists())
    asking.kill()
    asking.wait()
    run = api.attach(2)
    assert run.state is State.FAILED
    server.resume()
    assert api.submit("pass", wait=True).state is State.SUCCEEDED
    assert run.state is State.FAILED


def test_a_run_whose_folder_is_gone_when_it_ends(server: psutil.Process) -> None:
    run = api.submit(SLEEP)
    assert eventually(lambda: run.state is State.RUNNING)
    owner = run.status.supervisor
    assert owner is not None
    moved = run.folder.with_name("moved")
    run.folder.rename(moved)
    os.kill(owner.pid, signal.SIGKILL)
    assert eventually(lambda: not owner.alive)
    assert api.submit("pass", wait=True).state is State.SUCCEEDED
    assert server.is_running()


def test_a_killed_supervisor_leaves_nothing_behind(server: psutil.Process) -> None:
    code = """
import subprocess
child = subprocess.Popen(["sleep", "600"])
print(child.pid, flush=True)
child.wait()
"""
    run = api.submit(code)
    assert eventually(run.logs)
    owner, child = run.status.supervisor, psutil.Process(int(next(run.lines()).text))
    assert owner is not None
    os.kill(owner.pid, signal.SIGKILL)
    assert eventually(lambda: not child.is_running())
    assert eventually(lambda: run.status.error == "the run's supervisor failed: killed by SIGKILL")
    assert run.state is State.FAILED


def test_what_a_killed_run_had_put_into_sessions_of_their_own_ends_and_other_runs_go_on(
    server: psutil.Process,
) -> None:
    code = """
import subprocess, sys
inner = "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
outer = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], start_new_session=True)
left = subprocess.run([sys.executable, "-c", inner])
print(outer.pid, flush=True)
outer.wait()
"""
    runs = [api.submit(code) for _ in range(2)]
    assert eventually(lambda: all(len(numbers(run)) == 3 for run in runs))
    killed, other = ([psutil.Process(int(pid)) for pid in numbers(run)] for run in runs)
    owner = runs[0].status.supervisor
    assert owner is not None
    os.kill(owner.pid, signal.SIGKILL)
    assert eventually(lambda: runs[0].state is State.FAILED)
    assert eventually(lambda: not any(process.is_running() for process in killed))
    assert eventually(lambda: [*server.children()] == [psutil.Process(supervisor_of(runs[1]))])
    assert runs[1].state is State.RUNNING and all(process.is_running() for process in other)
    runs[1].cancel()
    assert eventually(lambda: not any(process.is_running() for process in other))


def test_a_run_whose_folder_is_deleted_ends(server: psutil.Process) -> None:
    run = api.submit(SLEEP)
    assert eventually(run.logs)
    supervisor = psutil.Process(supervisor_of(run))
    below = [supervisor, *supervisor.children(recursive=True)]
    shutil.rmtree(run.folder)
    assert eventually(lambda: not any(process.is_running() for process in below))
    assert api.submit("pass", wait=True).state is State.SUCCEEDED
    assert server.is_running()


def supervisor_of(run: Run) -> int:
    owner = run.status.supervisor
    assert owner is not None
    return owner.pid


def numbers(run: Run) -> list[str]:
    return [word for word in run.logs().split() if word.isdigit()]


def test_a_long_folder_for_temporary_files_and_none_of_the_system(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 30) / ("longer" * 30)
    long.mkdir(parents=True)
    Config(idle=1.0).save()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    for runtime in (None, str(tmp_path / "not there")):
        if runtime is None:
            monkeypatch.delenv("XDG_RUNTIME_DIR")
        else:
            monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        assert api.submit("x = 1", wait=True, result="x").results["x"] == 1
    assert (long / f"distrain-{os.getuid()}").is_dir()


def test_a_folder_that_others_can_enter_is_not_used(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, temporary = tmp_path / "runtime", tmp_path / "temporary"
    Config(idle=1.0).save()
    theirs = runtime / "distrain", temporary / f"distrain-{os.getuid()}"
    for folder in theirs:
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    api.submit("pass", wait=True)
    assert list((home / "sockets").iterdir())
    assert not [path for folder in theirs for path in folder.iterdir()]
    (home / "sockets").chmod(0o755)
    with pytest.raises(DistrainError, match="set XDG_RUNTIME_DIR"):
        api.submit("pass", wait=True)


def test_a_file_system_without_locks(home: Path) -> None:
    code = "from distrain_nb import api\nprint(api.submit('pass', wait=True).state)"
    no_locks = partial(seccomp.fail, seccomp.FLOCK, errno.ENOLCK)
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SERVER_OF": "a file system without locks"},
        preexec_fn=no_locks,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    assert printed == b"succeeded\n"


def test_only_no_such_process_means_that_one_has_ended() -> None:
    look = """
import os, subprocess
from distrain_nb.worker.files.status import Owner
ended = subprocess.Popen(["sleep", "600"])
owners = Owner.of(os.getpid()), Owner.of(ended.pid)
ended.kill()
ended.wait()
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError as error:
    print(error.errno, [owner.alive for owner in owners])
"""
    command = [sys.executable, "-c", look]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert printed == f"{errno.EMFILE} [True, False]\n"


def test_few_files_may_be_open(home: Path) -> None:
    """More than the supervisor needs for 60 processes, fewer than for 60 and what they use."""
    code = '''
from distrain_nb import api
from distrain_nb.errors import RunFailed
program = """import os, time
if os.environ["RANK"] == "40":
    raise ValueError("boom")
time.sleep(600)
"""
for workers in 59, 120:
    try:
        api.start(api.prepare(program, workers=workers, wait=True)).wait(300)
    except RunFailed as error:
        print(str(error).splitlines()[1])
'''
    few = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (256, 256))
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SERVER_OF": "few files"},
        preexec_fn=few,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert printed[0] == "rank 40 failed first: ValueError: boom"
    assert "Too many open files; `ulimit -n` says how many there may be" in printed[1]
