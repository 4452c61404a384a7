"""The document's Horovod job: a cell, two hosts, real `mpirun` and real Horovod."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from distrain_nb.worker.rank import values
from scripts.horovod_wheel import wheel
from tests.sagemaker.cells import HOROVOD
from tests.sagemaker.jobs import laid, planned
from tests.worker.hosts import Hosts, network

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.timeout(2400)  # Horovod is built for it where that has not been done
def test_two_hosts_train_one_model(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    with zipfile.ZipFile(wheel()) as file:
        file.extractall(packages)
    told = planned(laid(launcher="mpi"), code=HOROVOD, results=("answer",)).request["Environment"]
    with network() as namespaces:
        hosts = Hosts(tmp_path / "job", namespaces, {"/opt/packages": packages})
        hosts.job(HOROVOD)
        ended = hosts.run(**{**told, "DISTRAIN_PACKAGES": "/opt/packages"})
    for rank, host in enumerate(ended):
        assert host.status == 0, host
        assert f"[rank {rank}] rank {rank} local rank 0 of 2 same True" in host.lines
    first, second = hosts.ml("algo-1"), hosts.ml("algo-2")
    answer = values.load(first / "output/data/results")["answer"]
    assert (answer["world"], answer["same"]) == (2, True)
    assert answer["loss"] < 1.0  # ten classes: untrained, it is above 2.3
    assert (first / "checkpoints/last.pt").exists()
    assert not (second / "checkpoints/last.pt").exists()
    assert list((first / "output/tensorboard").glob("events.out.tfevents.*"))
