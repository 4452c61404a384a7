"""AWS's own toolkit starts what script mode stages, with the hyperparameters that we send."""

from __future__ import annotations

import sys
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.backends.remote.code import Laid
from distrain_nb.backends.sagemaker.code import write_archive
from tests.sagemaker.jobs import laid, planned
from tests.sagemaker.toolkit import toolkit
from tests.worker.hosts import NAMES, Ended, Hosts, finish, network

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MPI = """
from mpi4py import MPI
import os, sys

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
print("sum", total, "channel", os.environ["SM_CHANNEL_TRAINING"])
print("to stderr", file=sys.stderr)
"""

TORCH = """
import os
import torch.distributed as dist
import torch

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print("sum", total.item(), "local", os.environ["LOCAL_RANK"], "on", os.environ["SM_CURRENT_HOST"])
answer = total.item()
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with network() as namespaces:
        yield Hosts(tmp_path / "job", namespaces)


def start(
    hosts: Hosts, module: str, source: str, names: Sequence[str], launcher: str, **told: Any
) -> list[Any]:
    """The hosts of a job in script mode, each with what the service lays out for it."""
    layout = laid(f"{len(names)}*ml.p3.2xlarge", launcher=launcher, **told)
    plan = planned(layout, code=source, results=("answer",), options={"python_package": True})
    sent = plan.request["HyperParameters"]
    hosts.job(source, names, sent, {"training": {"TrainingInputMode": "File"}})
    program = Laid(hosts.folder / "program", plan.job.program.requirements)
    archive = hosts.folder / "sourcedir.tar.gz"
    with archive.open("wb") as file:
        write_archive(program, "pytorch", file)
    for name in names:
        with tarfile.open(archive) as tar:
            tar.extractall(hosts.ml(name) / "code", filter="data")
    environment = {
        **plan.request["Environment"],
        "PYTHONPATH": str(toolkit()),
        "SAGEMAKER_TRAINING_MODULE": module,
        "AWS_REGION": "us-west-2",
    }
    command = (sys.executable, str(toolkit() / "bin" / "train"))
    return [hosts.start(name, command, **environment) for name in names]


def labelled(ended: Ended, text: str) -> list[str]:
    """Labels of the lines with that text, without what mpirun and the toolkit put before them."""
    lines = [line for line in ended.lines if text in line]
    return sorted(line[line.index("[rank") : line.index("] ") + 1] for line in lines)


def test_it_launches_mpirun_and_torchrun(hosts: Hosts, tmp_path: Path) -> None:
    pytorch = "sagemaker_pytorch_container.training:main"
    with network() as others:
        single = Hosts(tmp_path / "mpi", others)
        mpi = start(single, pytorch, MPI, NAMES[:1], "mpi", ranks_per_replica=2)
        torchrun = start(hosts, pytorch, TORCH, NAMES, "torchrun")
        one, *two = finish([*mpi, *torchrun])
    assert one.status == 0, one
    assert "sum 3 channel /opt/ml/input/data/training" in one.out
    assert labelled(one, "sum 3") == ["[rank 0]", "[rank 1]"]
    for number, ended in enumerate(two):
        assert ended.status == 0, ended
        assert f"sum 3.0 local 0 on {NAMES[number]}" in ended.out
        assert labelled(ended, "sum 3.0") == [f"[rank {number}]"]
    assert (hosts.ml("algo-1") / "output/data/results").is_dir()
    assert not (hosts.ml("algo-2") / "output/data/results").exists()
