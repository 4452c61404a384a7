"""A real Slurm cluster for the tests of a session: each of its workers has one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster

KNOWN_S = 2  # for how long the controller knows a job that has ended: it soon forgets


@pytest.fixture(scope="session")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("slurm"), KNOWN_S)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def slurm(one_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The cluster, which Slurm's commands find as long as the test runs; no job outlives it."""
    for name, value in one_cluster.environment.items():
        monkeypatch.setenv(name, value)
    one_cluster.resume_all()
    yield one_cluster
    one_cluster.cancel_all()


@pytest.fixture
def work(home: Path, notebook_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an empty DISTRAIN_HOME."""
    monkeypatch.chdir(notebook_folder)
    return notebook_folder
