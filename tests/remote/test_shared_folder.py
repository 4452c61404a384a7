"""Replicas that share a folder: they find each other, and what they leave there is a run's."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from distrain_nb.backends.job import Job
from distrain_nb.backends.remote.delivery import with_bytecode
from distrain_nb.backends.remote.options import RemoteOptions
from distrain_nb.backends.remote.service import LogEntry, Observed
from distrain_nb.backends.remote.shared_folder import (
    SharedFolderService,
    SharedSpec,
    environment,
    variables,
)
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.program import Cell, Notebook, Program, capture
from distrain_nb.types import JsonObject
from distrain_nb.worker.files import coded_line
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.replica import shared

CODE = """
import json, os, sys
print("hello", file=sys.stderr)
where = json.loads(os.environ["CLUSTER_SPEC"])
names = ("RANK", "WORLD_SIZE", "GROUP_RANK", "MASTER_PORT", "SECRET", "DISTRAIN_LAUNCHER")
print(json.dumps({**{n: os.environ[n] for n in names}, "task": where["task"], "tf":
                  json.loads(os.environ["TF_CONFIG"])["cluster"], "cluster": where["cluster"]}))
"""


def program_of(source: str) -> Program:
    return capture(Cell("Cell In[1]", source), 1, Notebook({}, (), Path.cwd()))


@dataclass(frozen=True)
class Started(SharedFolderService[SharedSpec]):
    """Its replicas are processes of this machine."""

    def create(self, request: JsonObject) -> str:
        return "job"

    find = create

    def observe(self, job: str) -> Observed:
        return self.outcome() or Observed(State.RUNNING)

    def cancel(self, job: str) -> None: ...

    def run(self, count: int, **extra: str) -> list[int]:
        """Start all replicas, and give their exit statuses."""
        own = {**os.environ, "NUMBER": "0", **extra}
        commands = [self.command("NUMBER", sys.executable)]
        commands += [self.command(number, sys.executable) for number in range(1, count)]
        processes = [
            subprocess.Popen(
                command, env=own, cwd=self.folder,
                stdout=subprocess.DEVNULL, stderr=(self.folder / "err").open("ab"),
            )
            for command in commands
        ]  # fmt: skip
        return [process.wait() for process in processes]


Make = Callable[..., Started]


@pytest.fixture
def staged(tmp_path: Path) -> Make:
    def make(code: str, ranks: int = 2, **changes: object) -> Started:
        program = program_of(code)
        program.write(tmp_path / "program")
        options = RemoteOptions(env=("SECRET=hush",))
        changes = {"layout": Layout.of("local", workers="1"), **changes}
        job = Job(program, folder=tmp_path, options=options, **changes)
        service = Started(SharedSpec.for_job(job, "shared", ranks))
        service.stage(tmp_path / "program", lambda progress: None)
        return service

    return make


def test_the_workers_files_are_links_to_those_of_the_last_job(staged: Make, tmp_path: Path) -> None:
    """Also of one whose carrier was killed before it was sent; a job's folder may go."""
    first, second = (staged("print('hello')", 1, name=name) for name in ("one", "two"))
    of_worker, of_program = Path("worker/distrain_nb/__init__.py"), Path("program/main.py")
    code = [service.folder / shared.CODE for service in (first, second)]
    assert (code[0] / of_worker).samefile(code[1] / of_worker)
    assert not (code[0] / of_program).samefile(code[1] / of_program)
    second.stage(tmp_path / "program", lambda progress: None)
    shutil.rmtree(second.folder)
    third = staged("print('hello')", 1, name="three")
    assert (third.folder / shared.CODE / of_worker).stat().st_nlink == 1
    assert (code[0] / of_worker).exists()


def test_bytecode_goes_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text("")
    done = tmp_path / "done.py"
    done.write_text("")
    compiled = Path(py_compile.compile(str(done), doraise=True) or "")
    files = [("a/new.py", tmp_path / "new.py"), ("a/done.py", done)]
    assert dict(with_bytecode(files)) == {**dict(files), f"a/__pycache__/{compiled.name}": compiled}


def lines(entries: object) -> dict[str, list[str]]:
    assert isinstance(entries, list)
    found: dict[str, list[str]] = {}
    for entry in entries:
        assert isinstance(entry, LogEntry)
        text = f"[{entry.process}] {entry.text}" if entry.process else entry.text
        found.setdefault(f"{entry.role} {entry.replica} {entry.stream}", []).append(text)
    return found


def test_replicas_find_each_other_and_their_lines_have_times(staged: Make) -> None:
    service = staged(CODE, name="first", results=())
    secret = service.folder / shared.VARIABLES
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    others = [path for path in service.folder.rglob("*") if path.is_file() and path != secret]
    assert not any(b"hush" in path.read_bytes() for path in others)
    assert service.run(2) == [0, 0], (service.folder / "err").read_text()
    entries, cursor = service.log("job", {}, last=False)
    assert [entry.time for entry in entries] == sorted(entry.time for entry in entries)
    assert service.log("job", json.loads(json.dumps(cursor)), last=True)[0] == []
    assert not secret.exists(), "what the job needed is not kept"
    found = lines(entries)
    assert sorted(found["workers 0 e"]) == ["[rank 2] hello", "[rank 3] hello"]
    said = [json.loads(text.partition("] ")[2]) for text in found["workers 0 o"]]
    said += [json.loads(text.partition("] ")[2]) for text in found["primary 0 o"]]
    assert {each["RANK"] for each in said} == {"0", "1", "2", "3"}
    assert {each["WORLD_SIZE"] for each in said} == {"4"}
    assert len({each["MASTER_PORT"] for each in said}) == 1
    assert {each["SECRET"] for each in said} == {"hush"}
    assert [each["task"] for each in said[::2]] == [
        {"type": "workerpool1", "index": 0}, {"type": "workerpool0", "index": 0},
    ]  # fmt: skip
    assert said[0]["tf"] == {
        "chief": said[0]["cluster"]["workerpool0"], "worker": said[0]["cluster"]["workerpool1"],
    }  # fmt: skip
    assert service.observe("job").state is State.SUCCEEDED
    (shared.replica_folder(service.folder, 1) / shared.DELIVERED).unlink()
    assert service.outcome() is None, "its results are still being copied"


def test_a_failure_is_said_once_with_its_cause(staged: Make) -> None:
    code = "import os\nif os.environ['RANK'] == '3': raise ValueError('no')"
    service = staged(code)
    assert service.outcome() is None
    assert 1 in service.run(2)
    entries, cursor = service.log("job", {}, last=True)
    said = lines(entries)["workers 0 e"]
    (head,) = filter(None, map(coded_line.read, said))
    assert head.text.startswith("rank 3 failed") and "ValueError: no" in head.text
    assert (head.code, head.facts["subject"]) == ("failed", "rank 3")
    assert service.log("job", cursor, last=True)[0] == []
    observed = service.observe("job")
    assert observed.state is State.FAILED and "ValueError: no" in observed.error


ENDS_LAST = """
import atexit, os, pathlib, time

job = pathlib.Path(os.environ["DISTRAIN_JOB"])

def until(holds):
    while not holds():
        time.sleep(0.01)

def end_last():
    (job / "failed").touch()
    until(lambda: '"state": "failed"' in (job / "replicas" / "0" / "status.json").read_text())

if os.environ["RANK"] == "3":
    atexit.register(end_last)
    raise ValueError("mine")
if os.environ["RANK"] == "0":
    until((job / "failed").exists)
    raise RuntimeError("connection closed by peer")
"""


def test_the_first_failure_is_told_although_its_replica_ends_last(staged: Make) -> None:
    service = staged(ENDS_LAST)
    service.run(2)
    assert service.observe("job").error.startswith("rank 3 failed first: ValueError: mine")
    assert service.first_failure() == service.observe("job").error


def test_another_attempt_has_a_log_of_its_own(staged: Make) -> None:
    service = staged("import os; print(os.environ['MASTER_PORT'])")
    service.run(2)
    first, cursor = service.log("job", {}, last=False)
    service.run(2, DISTRAIN_ATTEMPT="2")
    second, _ = service.log("job", cursor, last=False)
    assert len(first) == len(second) == 4
    assert (shared.replica_folder(service.folder, 1, 2) / "log.tsv").exists()


def test_hosts_with_ports_need_no_meeting(staged: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(shared.HOSTS_VARIABLE, "127.0.0.1:23456,127.0.0.1:23457")
    assert shared._addresses(Path("nowhere"), 1, 2) == ["127.0.0.1:23456", "127.0.0.1:23457"]


def test_a_replica_reads_one_file_to_hear_of_all_others(tmp_path: Path) -> None:
    """A thousand that each read a thousand would read a million in the folder that they share."""
    meeting = tmp_path / shared.REPLICAS / shared.ADDRESSES
    meeting.mkdir(parents=True)
    (meeting / "1").write_text("b:2")
    assert shared._met(tmp_path, 0, 2, "a:1") == ["a:1", "b:2"]
    (meeting / "0").unlink()
    assert shared._met(tmp_path, 1, 2, "b:2") == ["a:1", "b:2"]


def test_who_failed_is_said_while_others_have_not_ended(staged: Make) -> None:
    service = staged("1")
    for number, failed in enumerate((False, True)):
        folder = shared.replica_folder(service.folder, number)
        folder.mkdir(parents=True)
        status = Status(State.RUNNING)
        status.write(folder)
        if failed:
            assert not service.failing()
            status.enter(State.FAILED, error="rank 3 failed: ValueError: no\nmore").write(folder)
    assert service.outcome() is None
    assert service.failing() == "rank 3 failed: ValueError: no"


def test_links_in_the_output_are_left_out(staged: Make, tmp_path: Path) -> None:
    service = staged("1")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "key").write_text("x")
    output = service.folder / shared.OUTPUT
    (output / "results").mkdir(parents=True)
    (output / "results" / "own").write_text("ab")
    (output / "results" / "key").symlink_to(tmp_path / "mine" / "key")
    (output / "tensorboard").symlink_to(tmp_path / "mine")
    assert [each.name for each in service.output.objects("results/")] == ["results/own"]
    assert service.output.objects("tensorboard/") == []
    assert service.output.read("results/own", 1, 2) == b"b"


def test_what_replicas_are_told(staged: Make, tmp_path: Path) -> None:
    program = program_of("import torch, mpi4py\ntorch.optim.SGD")
    job = Job(
        program, Layout.of("local", workers="3"), tmp_path, RemoteOptions(), results=("a", "b")
    )
    told = environment(job, 4)
    assert (told["DISTRAIN_RANKS"], told["DISTRAIN_LAUNCHER"]) == ("4", "mpi")
    assert told["DISTRAIN_RESULTS"] == "a,b" and "torch" in told["DISTRAIN_PRELOAD"]
    assert told["DISTRAIN_REPLICAS"] == "primary=1,workers=3"
    alone = replace(job, layout=Layout.of("elsewhere", workers="3"))
    assert environment(alone, 4)["DISTRAIN_REPLICAS"] == "primary=1,workers=2"
    alone = replace(job, layout=Layout("elsewhere"))
    assert environment(alone, 4)["DISTRAIN_REPLICAS"] == "primary=1"


@pytest.mark.parametrize("text", ["A", "1A=b", "A=secret://b"])
def test_variables_that_cant_be(text: str) -> None:
    with pytest.raises(OptionError, match="invalid --env"):
        variables([text])


REDUCED = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))(torch.ones(2, 4)).sum().backward()
"""


def test_who_serves_ends_with_those_that_it_serves(staged: Make) -> None:
    """Parameter servers, their workers and evaluators wait for work for ever."""
    layout = Layout.of("local", primary="1", workers="1", servers="1", evaluators="1")
    service = staged(
        "import os, time\nwhile os.environ.get('RANK') != '0': time.sleep(0.1)",
        layout=layout, ranks=1,
    )  # fmt: skip
    assert service.run(4) == [0, 0, 0, 0], (service.folder / "err").read_text()
    assert service.observe("job") == Observed(State.SUCCEEDED, "succeeded")
    assert "was stopped" not in str(service.log("job", {}, last=True)[0])


NOTIFIED = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
os.execv(sys.argv[1], sys.argv[1:])
"""  # by exec: after a fork, threads of gRPC would take the signal


def test_a_notice_that_comes_before_the_worker_is_up_is_kept(staged: Make) -> None:
    code = (
        "import signal, time\ntime.sleep(1)\n"
        "assert signal.SIGUSR1 not in signal.pthread_sigmask(signal.SIG_BLOCK, [])"
    )
    service = staged(code, ranks=1, layout=Layout.of("local", primary="1"))

    command = [sys.executable, "-c", NOTIFIED, *service.command("0", sys.executable)]
    worker = subprocess.run(command, cwd=service.folder, capture_output=True, timeout=120)
    assert worker.returncode == 0, worker.stderr
    trail = Status.read(service.folder / "replicas" / "0").trail
    assert any("near the time limit" in stretch.phase for stretch in trail), trail


@pytest.mark.slow
def test_reducers_sum_and_end_with_the_last_rank(staged: Make) -> None:
    service = staged(REDUCED, layout=Layout.of("local", workers="1", reducers="1"), ranks=1)
    assert service.run(3) == [0, 0, 0], (service.folder / "err").read_text()
    said = lines(service.log("job", {}, last=True)[0])
    assert any("all-reduces" in text for text in said["primary 0 e"]), said
    assert any(" sums; " in text for text in said["reducers 0 o"]), said


def test_mpirun_needs_a_host_for_each_replica(staged: Make) -> None:
    service = staged("1", layout=Layout.of("local", workers="1", launcher="mpi"))
    assert service.run(2) == [1, 1]
    observed = service.observe("job")
    assert observed.state is State.FAILED
    assert "launcher mpi needs a host for each replica, and 2 of them are on" in observed.error
