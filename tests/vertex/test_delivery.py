"""A program as a source distribution: pip installs it, and its module runs the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from distrain_nb.api import program
from distrain_nb.backends.remote.delivery import ProgramFolder
from distrain_nb.places.vertex.containers import needed
from distrain_nb.places.vertex.delivery import PACKAGE_FILE, write_archive

pytestmark = pytest.mark.slow

SOURCE = """
import os
total = 40 + int(os.environ["WORLD_SIZE"])
print("from the package")
"""
TENSORFLOW = "europe-docker.pkg.dev/vertex-ai/training/tf-gpu.2-17.py310:latest"
PYTORCH = "europe-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"


def test_pip_installs_it_and_the_module_runs_the_program(tmp_path: Path) -> None:
    program(SOURCE).write(tmp_path / "program")
    package = tmp_path / PACKAGE_FILE
    with package.open("wb") as file:
        write_archive(ProgramFolder(tmp_path / "program", ()), PYTORCH, file)
    there = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, "--target", str(there), str(package)], check=True)
    spec = {
        "cluster": {"workerpool0": ["127.0.0.1:2222"]},
        "task": {"type": "workerpool0", "index": 0},
    }
    told = {
        **os.environ,
        "PYTHONPATH": str(there),
        "CLUSTER_SPEC": json.dumps(spec),
        "DISTRAIN_OUTPUT": str(tmp_path / "output"),
        "DISTRAIN_RESULTS": "total",
    }
    done = subprocess.run(
        [sys.executable, "-m", "distrain_program.task"],
        env=told, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[rank 0] from the package\n"
    assert any((tmp_path / "output" / "results").iterdir())


def test_what_the_container_has_is_left_as_it_is() -> None:
    program = ProgramFolder(Path(), ("torch==2.13.0", "numpy==2.3.1"), ("webdataset>=0.2,<1",))
    assert list(needed(program, PYTORCH)) == ["numpy", "webdataset>=0.2,<1"]
    on_cpus = ProgramFolder(Path(), ("tensorflow-cpu==2.21.0", "numpy==2.3.1"))
    assert list(needed(on_cpus, TENSORFLOW)) == ["numpy"]
    assert list(needed(program, "mine:1")) == ["torch", "numpy", "webdataset>=0.2,<1"]
