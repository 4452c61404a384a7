"""The archive of script mode, and what a framework container is to install."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from distrain_nb.api import program
from distrain_nb.backends.remote.delivery import ProgramFolder
from distrain_nb.layout import Layout
from distrain_nb.places.sagemaker.containers import equipment_of, python_of
from distrain_nb.places.sagemaker.delivery import needed, write_archive
from tests.sagemaker.jobs import job, laid

pytestmark = [pytest.mark.slow, pytest.mark.brief]


def unpacked(tmp_path: Path, source: str) -> Path:
    program(source).write(tmp_path / "program")
    file = io.BytesIO()
    write_archive(
        ProgramFolder(tmp_path / "program", ("torch==2.13.0", "numpy==2.3.1")), "pytorch", file
    )
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:gz") as archive:
        archive.extractall(tmp_path / "code", filter="data")
    return tmp_path / "code"


def test_the_archive_has_what_a_rank_needs(tmp_path: Path) -> None:
    code = unpacked(tmp_path, "print('here')\n")
    assert (code / "requirements.txt").read_text() == "numpy\n"
    assert (code / "program" / "main.py").is_file()
    assert not list(code.rglob("__pycache__"))
    there = {**os.environ, "PYTHONPATH": ""}
    check = "import distrain_nb.worker, sys; assert sys.path[0] in distrain_nb.__file__"
    bare = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(code)!r}); {check}"]
    subprocess.run(bare, cwd=tmp_path, env=there, check=True)


def test_what_the_container_has_is_left_as_it_is() -> None:
    program = ProgramFolder(Path(), ("torch==2.13.0", "numpy==2.3.1"))
    assert list(needed(program, "pytorch")) == ["numpy"]
    assert list(needed(program, None)) == ["torch", "numpy"]


def test_what_was_asked_for_is_installed_as_it_was_asked_for() -> None:
    asked = ("numpy==1.26.4", 'typing-extensions==4.9; python_version=="3.8"', "torch[opt]==2.6.0")
    laid = ProgramFolder(Path(), ("torch==2.13.0", "numpy==2.3.1", "PyYAML==6.0.3"), asked)
    assert list(needed(laid, "pytorch")) == ["PyYAML", *asked]


@pytest.mark.parametrize(
    ("layout", "code", "region", "image"),
    [
        (laid(), "import torch\n", "us-west-2", "pytorch-training:2.8.0-gpu-py312"),
        (laid("ml.m5.xlarge"), "import torch\n", "us-west-2", "pytorch-training:2.8.0-cpu-py312"),
        (laid(), "import keras\n", "us-west-2", "tensorflow-training:2.19.0-gpu-py312"),
        (laid(framework="pytorch-2.1"), "", "us-west-2", "pytorch-training:2.1-gpu-py310"),
        (laid(framework="tensorflow-1.15.2"), "", "us-west-2", "training:1.15.2-gpu-py37"),
    ],
)
def test_the_container_of_a_program(layout: Layout, code: str, region: str, image: str) -> None:
    found = equipment_of(job(layout, code, python_package=True), region).image
    assert found.endswith(image)
    assert found.startswith("763104351884.dkr.ecr.us-west-2.amazonaws.com/")


def test_regions_have_registries_of_their_own() -> None:
    china = equipment_of(job(python_package=True), "cn-north-1").image
    assert china.startswith("727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/pytorch-training")
    assert not equipment_of(job(python_package=True), "nowhere-1").image
    script = job(laid(framework="pytorch-9"), python_package=True)
    assert not equipment_of(script, "us-west-2").image
    assert not equipment_of(job(code="x = 1\n", python_package=True), "us-west-2").image


def test_a_tag_tells_its_python() -> None:
    assert python_of("h/pytorch-training:2.8.0-gpu-py312-cu129") == (3, 12)
    assert python_of("h/tensorflow-training:1.13-gpu-py3") == (3, 6)
    assert python_of("mine:py27") is None
