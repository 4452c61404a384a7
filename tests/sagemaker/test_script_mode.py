"""From a cell to its results through a container that AWS's own toolkit starts."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from distrain_nb import script, submit
from tests.image.services.bases import BaseImage, Blob, kept_layer
from tests.sagemaker.toolkit import toolkit
from tests.vertex.packages import WHERE, base_with

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("engine")]

# Of what the toolkit needs, what this environment has itself.
NEEDED = ("boto3", "cryptography", "numpy", "protobuf", "psutil", "scipy", "six", "werkzeug")

# SageMaker starts a container with the first of these; the toolkit asks for programs by the other.
COMMANDS = {
    "train": b"#!/usr/bin/python3\nfrom sagemaker_training.cli.train import main\n\nmain()\n",
    "which": b'#!/bin/sh\ncommand -v "$1"\n',
}
# Hosts wait for each other: AWS's toolkit looks all of them up, and Docker forgets those that have
# left.
CELL = """
import json, os, socket, time
from distrain_nb import log_metrics

with socket.create_server(("", 7000)) as server:
    hosts = json.loads(os.environ["SM_HOSTS"])
    for host in hosts:
        while True:
            try:
                socket.create_connection((host, 7000)).close()
                break
            except OSError:
                time.sleep(0.2)
    for _ in hosts:
        server.accept()
print("host", os.environ["SM_CURRENT_HOST"], "of", os.environ["WORLD_SIZE"])
print("loss=0.5")
log_metrics(step=0, accuracy=0.75)
total = int(os.environ["SM_HP_EPOCHS"])
"""
ARGUMENTS = """
import sys
assert sys.argv[1:] == ["--epochs", "60"], sys.argv
"""


def container() -> BaseImage:
    """Debian's Python with the toolkit."""
    return BaseImage((*base_with(*NEEDED).layers, _layer(toolkit())))


def _layer(folder: Path) -> Blob:
    def pack(draft: Path) -> None:
        with (
            gzip.GzipFile(draft, "wb", 1, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as tar,
        ):
            tar.add(folder, WHERE)
            for name, text in COMMANDS.items():
                command = tarfile.TarInfo(f"usr/local/bin/{name}")
                command.size, command.mode = len(text), 0o755
                tar.addfile(command, io.BytesIO(text))

    return kept_layer(folder.name, pack)


@pytest.mark.parametrize("as_script", [False, True])
def test_two_hosts_of_a_framework_container(
    images: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_script: bool
) -> None:
    image = f"{images}/bases/toolkit:1"
    container().push(image)
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text(CELL + ARGUMENTS)
    monkeypatch.chdir(tmp_path)
    code = script("code/train.py", "--epochs", "60") if as_script else CELL
    run = submit(
        code, on="sagemaker", workers="2*ml.m5.xlarge", launcher="python", image=image,
        python_package=True, rehearse="", result="total", hyperparameter="epochs=60",
        metric="loss=loss=([0-9.]+)", wait=True,
    )  # fmt: skip
    for rank in (0, 1):
        assert f"[rank {rank}] host algo-{rank + 1} of 2" in run.logs(rank).splitlines()
    assert run.results["total"] == 60
    values = run.metrics()
    assert list(values["loss"]) == [0.5]
    assert list(values["accuracy"]) == [0.75]
