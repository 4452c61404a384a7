"""The document's Horovod estimator: a script, two hosts, real `mpirun` and real Horovod."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from distrain_nb.worker.rank import values
from scripts.horovod_wheel import wheel
from tests.layout.documents import ESTIMATOR_HOROVOD
from tests.sagemaker.cells import HOROVOD_SCRIPT
from tests.sagemaker.jobs import of_estimator, planned
from tests.worker.hosts import Hosts, network

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.timeout(2400)  # Horovod is built for it where that has not been done
def test_two_hosts_train_one_model(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    with zipfile.ZipFile(wheel()) as file:
        file.extractall(packages)
    layout, code = of_estimator(ESTIMATOR_HOROVOD, HOROVOD_SCRIPT, tmp_path, framework=None)
    plan = planned(layout, code=code, results=("answer",))
    told = plan.request["Environment"]
    with network() as namespaces:
        hosts = Hosts(tmp_path / "job", namespaces, {"/opt/packages": packages})
        hosts.job(plan.job.program)
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
