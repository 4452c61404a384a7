"""A warm start is as clean as a cold one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from distrain_nb import api
from distrain_nb.config import Config
from distrain_nb.run import Run
from distrain_nb.worker.files.launch import FORK_SAFE, IMPORTED_BY, OPTIMIZER
from distrain_nb.worker.supervisor.heartbeat import note_watched
from tests.conftest import eventually

LOOK = """
import os, random, sys, threading
import numpy, torch
state = {
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "own modules": sorted(m for m in sys.modules if m in ("mine", "sitecustom")),
    "draws": (random.random(), float(numpy.random.rand()), float(torch.rand(()))),
    "threads": threading.active_count(),
    "path": list(sys.path),
    "main": sorted(n for n in vars(sys.modules["__main__"]) if not n.startswith("__")),
    "parent": os.getppid(),
}
"""
SPOIL = """
import os, sys, threading, time
import mine
os.environ["SPOILT"] = "yes"
os.chdir("/")
sys.path.append("/spoilt")
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
"""


def server_of(run: Run) -> psutil.Process:
    """The fork server that the run's supervisor came from, asked while the run is alive."""
    supervisor = run.status.supervisor
    assert supervisor is not None
    parent = psutil.Process(supervisor.pid).parent()
    assert parent is not None
    return parent


def test_nothing_is_left_of_the_run_before(
    home: Path, notebook_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notebook_folder / "mine.py").write_text("value = 1\n")
    monkeypatch.chdir(notebook_folder)
    before = api.submit(LOOK, wait=True, result="state").results["state"]
    api.submit(SPOIL, wait=True)
    after = api.submit(LOOK, wait=True, result="state").results["state"]
    assert after["folder"] == before["folder"] == str(notebook_folder)
    assert after["own modules"] == []
    assert "SPOILT" not in after["environment"]
    assert "/spoilt" not in after["path"]
    assert after["threads"] == 1
    assert after["main"] == before["main"]


def test_ranks_weigh_like_other_programs_while_a_page_looks(home: Path) -> None:
    look = """
import os, time
from pathlib import Path
shared = Path("/proc/self/autogroup")
print("nice", os.nice(0), flush=True)
for _ in range(4):
    time.sleep(0.5)
    if shared.exists() and shared.read_text().split()[-1] != "0":
        print("session", shared.read_text(), flush=True)
print("end", flush=True)
"""
    run = api.submit(look)

    def ended() -> bool:
        note_watched(run.folder)
        return "end" in run.logs()

    assert eventually(ended)
    assert [line.text for line in run.lines()] == [f"nice {os.nice(0)}", "end"]


def test_each_rank_leads_a_session_and_so_weighs_like_a_program(home: Path) -> None:
    """Linux shares CPUs among sessions first: ranks in one would have the share of one program."""
    run = api.submit(
        "import os\nprint(os.getpid() == os.getsid(0))", wait=True, ranks_per_replica=2
    )
    assert [line.text for line in run.lines()] == ["True", "True"]


def test_a_page_s_session_weighs_more_where_that_is_allowed() -> None:
    shared = Path("/proc/self/autogroup")
    if os.geteuid() or not shared.exists():
        pytest.skip("root alone may, where Linux shares CPUs among sessions")
    code = (
        "from distrain_nb.worker.machine import system as s; s.weigh_session_more(); "
        "print(open('/proc/self/autogroup').read())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, start_new_session=True
    )
    assert ran.stdout.split()[-1] == "-5"


def test_random_numbers_are_those_of_a_fresh_process(home: Path) -> None:
    code = LOOK + "\nprint(*state['draws'])"
    one, two = (api.submit(code, wait=True, ranks_per_replica=2) for _ in range(2))
    printed = (line for run in (one, two) for line in run.lines() if line.stream == "o")
    drawn = [line.text.split() for line in printed]
    for library in zip(*drawn, strict=True):
        assert len(set(library)) == 4, "seeded from the system, so never alike"


def test_a_seed_of_the_program_holds_in_every_rank_and_run(home: Path) -> None:
    code = "import torch\ntorch.manual_seed(3)\nprint(torch.rand(3).tolist())"
    runs = [api.submit(code, wait=True, ranks_per_replica=2) for _ in range(2)]
    printed = {line.text for run in runs for line in run.lines() if line.stream == "o"}
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed == {plain.stdout.strip()}


def test_runs_share_a_server_and_another_environment_gets_another(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def server() -> int:
        run = api.submit("import time; time.sleep(600)")
        assert eventually(lambda: str(run.state) == "running")
        found = server_of(run).pid
        run.cancel()
        return found

    first, second = server(), server()
    monkeypatch.setenv("MY_SETTING", "1")
    assert first == second
    assert server() != first


def test_an_optimizer_of_the_kernel_asks_for_no_other_server() -> None:
    """PyTorch sets a variable for the first one, in any process that makes one."""
    look = """
import os, torch
from distrain_nb.places.local.warm import _environment
before = _environment()
torch.optim.SGD(torch.nn.Linear(1, 1).parameters())
print("TORCHINDUCTOR_CACHE_DIR" in os.environ, _environment() == before)
os.environ["TORCHINDUCTOR_CACHE_DIR"] += "_of_mine"
print(_environment()["TORCHINDUCTOR_CACHE_DIR"] == os.environ["TORCHINDUCTOR_CACHE_DIR"])
"""
    environment = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_CACHE_DIR"}
    command = [sys.executable, "-c", look]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["True"] * 3


def test_the_kernels_environment_is_inherited_and_in_no_file(
    home: Path, runtime_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_PASSWORD", "drawn-4471")
    run = api.submit("import os; print(len(os.environ['MY_PASSWORD']))", wait=True)
    assert run.logs() == "[rank 0] 10"
    files = [path for folder in (home, runtime_folder) for path in folder.rglob("*")]
    having = [path for path in files if path.is_file() and b"drawn-4471" in path.read_bytes()]
    assert len(files) > 5 and having == []


def test_a_changed_local_module_is_seen(
    home: Path, notebook_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notebook_folder)
    for value in (1, 2):
        (notebook_folder / "mine.py").write_text(f"value = {value}\n")
        run = api.submit("import mine\nvalue = mine.value", wait=True, result="value")
        assert run.results["value"] == value


def test_the_server_goes_away_when_idle(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANOTHER_SERVER", "1")
    Config(idle=1.0).save()
    run = api.submit("import time; time.sleep(600)")
    assert eventually(lambda: str(run.state) == "running")
    server = server_of(run)
    run.cancel()
    assert eventually(lambda: not server.is_running() or server.status() == "zombie")


def test_importing_frameworks_leaves_nothing_that_a_fork_would_share() -> None:
    """No thread, no process, no open file, and no note of who the process is or where its files go.
    One after the other, as a fork server may; pyarrow is among what pandas imports."""
    assert importlib.util.find_spec("pyarrow")
    of_libraries = (name for names in IMPORTED_BY.values() for name in names)
    names = tuple(dict.fromkeys((*FORK_SAFE, *of_libraries, OPTIMIZER)))
    look = (
        "import os, uuid\nfrom multiprocessing import current_process, resource_tracker\n"
        "from distrain_nb.worker.machine.framework_import import import_without\n"
        "def shared():\n"
        "    children = [p for task in os.listdir('/proc/self/task')\n"
        "        for p in open(f'/proc/self/task/{task}/children').read().split()]\n"
        "    config = current_process()._config\n"
        "    tracker = resource_tracker._resource_tracker._fd\n"
        "    kept = children, config.get('tempdir'), uuid._node, tracker\n"
        "    return len(os.listdir('/proc/self/task')), len(os.listdir('/proc/self/fd')), kept\n"
        f"shared()\nbefore = shared()\nfor name in {names}:\n    import_without(name)\n"
        "    print(name, before == shared() or (before, shared()))"
    )
    single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", look]
    printed = subprocess.run(command, capture_output=True, text=True, env=single, check=True)
    assert printed.stdout.splitlines() == [f"{name} True" for name in names]
