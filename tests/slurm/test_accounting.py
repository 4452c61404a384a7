"""What a cluster's accounts say of jobs that its controller has forgotten: a real slurmdbd."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import distrain_nb as d
from distrain_nb.backends.remote import carrier_start
from distrain_nb.places.slurm.commands import Commands
from distrain_nb.places.slurm.rest import Rest
from distrain_nb.worker.files.status import Status
from tests.conftest import eventually
from tests.slurm.cluster import Cluster, free_ports
from tests.slurm.conftest import KNOWN_S
from tests.slurm.test_jobs import LONG, begun, ended, job_of, queued

pytestmark = pytest.mark.slow


@pytest.fixture
def accounts(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / "slurm", KNOWN_S, accounts=True)
    try:
        cluster.start()
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        yield cluster
    finally:
        cluster.stop()


def test_a_forgotten_job_is_known_by_the_accounts(
    accounts: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody saw its end, and it left no word of it."""
    run = d.submit(LONG, on="slurm", cpus=1, workers=1, name="unseen")
    assert eventually(lambda: begun(run), 300)
    monkeypatch.setattr(carrier_start, "START_AGAIN_AFTER_S", 0.0)
    carrier = Status.read(run.folder).supervisor
    assert carrier is not None
    os.kill(carrier.pid, signal.SIGKILL)
    job = job_of(accounts, run)
    accounts.run("scancel", job)
    assert eventually(lambda: job not in queued(accounts), 300)
    (Path(run.links["folder"]) / "said").unlink()
    assert eventually(lambda: Commands().accounted(job).startswith("CANCELLED by "), 300)
    assert eventually(lambda: ended(run), 300) and str(run.state) == "cancelled"
    assert run.status.error == "cancelled in Slurm, by scancel"
    (port,) = free_ports(1)
    accounts.start_rest(port)
    monkeypatch.setenv("SLURM_JWT", accounts.token())
    assert Rest(f"http://127.0.0.1:{port}").accounted(job) == "CANCELLED"
    assert Rest(f"http://127.0.0.1:{port}").accounted("999999") == ""
