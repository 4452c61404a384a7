"""The worker runs on whatever Python a container has, 3.8 and later, with nothing installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from distrain_nb.program import Cell, Notebook, capture
from distrain_nb.worker.files.launch import Launch, ProcessSpec
from distrain_nb.worker.files.request import TAKEN
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.rank import values
from tests.conftest import eventually

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parents[2] / "distrain_nb"
CODE = """
import os, sys
from distrain_nb import log_metrics
rank = int(os.environ["RANK"])
print("rank", rank, "of", scale, flush=True)
log_metrics(step=1, loss=0.5)
version = sys.version_info[:2]
"""
# `spawned` is part of a program's process.
EVERY_MODULE = """
import importlib, pkgutil
import distrain_nb.worker as worker
for module in pkgutil.walk_packages(worker.__path__, "distrain_nb.worker."):
    if not module.name.endswith(".spawned"):
        importlib.import_module(module.name)
"""


def interpreters() -> list[str]:
    """Every Python on this machine from 3.8 on, this one included."""
    found = {sys.executable: sys.version_info[:2]}
    for minor in range(8, 16):
        names = [f"python3.{minor}"]
        names += [str(p) for p in Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")]
        for path in filter(None, map(shutil.which, names)):
            if (3, minor) not in found.values() and works(path):
                found[path] = (3, minor)
    return list(found)


def works(path: str) -> bool:
    """A shim may stand for an interpreter that is not there."""
    return subprocess.run([path, "-c", "import sqlite3"], capture_output=True).returncode == 0


@pytest.mark.parametrize("python", interpreters())
def test_two_ranks_run_on_a_bare_interpreter(tmp_path: Path, python: str) -> None:
    shipped = tmp_path / "shipped"
    shutil.copytree(PACKAGE / "worker", shipped / "distrain_nb" / "worker")
    shutil.copy(PACKAGE / "__init__.py", shipped / "distrain_nb")
    program = capture(Cell("Cell In[1]", CODE), 1, Notebook({"scale": [2] * 3000}, (), tmp_path))
    run = tmp_path / "run"
    program.write(run / "program")
    told = {"AIP_TENSORBOARD_LOG_DIR": "${RUN}/tb"}
    specs = [ProcessSpec(f"rank {n}", "primary", 0, n, {"RANK": str(n), **told}) for n in (0, 1)]
    Launch(tuple(specs), str(tmp_path), results=("version",)).write(run)
    Status(State.STARTING).enter(State.STARTING).write(run)
    answer, asked = os.pipe()
    command = [
        python,
        "-m",
        "distrain_nb.worker.supervisor.forkserver",
        str(tmp_path / "s"),
        "1",
        str(run),
    ]
    command.append(str(asked))
    environment = {"PYTHONPATH": str(shipped), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, cwd="/", env=environment, pass_fds=[asked]) as server:
        os.close(asked)
        with os.fdopen(answer) as answers:
            assert answers.read() == TAKEN
        assert eventually(lambda: Status.current(run).state.final)
        status = Status.read(run)
        assert status.state is State.SUCCEEDED, status.error
        assert server.wait(15) == 0
    every = [python, "-c", EVERY_MODULE]
    assert subprocess.run(every, env=environment, cwd="/", check=False).returncode == 0
    assert values.load(run / "results")["version"][0] == 3
    assert list((run / "tb").iterdir())
    log = (run / "log.tsv").read_text()
    assert "rank 0 of" in log and "rank 1 of" in log


def test_a_replica_of_an_image_under_mpirun(tmp_path: Path) -> None:
    code = "from mpi4py import MPI\nprint('sum', MPI.COMM_WORLD.allreduce(1))\nimport extra"
    program = capture(Cell("Cell In[1]", code), 1, Notebook({}, (), tmp_path))
    program.write(tmp_path / "program")
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "extra.py").write_text("")
    told = {
        "DISTRAIN_PROGRAM": str(tmp_path / "program"),
        "DISTRAIN_PACKAGES": str(tmp_path / "packages"),
        "DISTRAIN_RANKS": "2",
        "DISTRAIN_LAUNCHER": "mpi",
        "PATH": "/usr/bin:/bin",
    }
    command = [sys.executable, "-m", "distrain_nb.worker"]
    done = subprocess.run(command, env=told, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[rank 0] sum 2", "[rank 1] sum 2"]
    told["PATH"] = str(tmp_path)
    without = subprocess.run(command, env=told, cwd=tmp_path, capture_output=True, text=True)
    assert without.returncode == 1
    assert without.stderr.startswith("launcher mpi needs mpirun, which this image does not have")
