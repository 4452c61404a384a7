"""Programs of the frameworks on two nodes of a real Slurm cluster, as they run anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import distrain_nb as d
from tests.frameworks_cells import EXAMPLES
from tests.kernels import Kernel
from tests.quickstart_cells import train
from tests.slurm.cluster import Cluster
from tests.tensorflow_cells import BESIDE_JAX, leave_out

pytestmark = pytest.mark.slow


@pytest.mark.timeout(1500)
def test_they_run_unchanged(
    slurm: Cluster, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: a node has room for four."""
    monkeypatch.setenv("PYTHONPATH", str(leave_out(tmp_path, BESIDE_JAX)))
    runs = {
        name: d.submit(code, **options, on="slurm", cpus=1, name=name, result="total")
        for name, (code, options, _) in EXAMPLES.items()
    }
    for run in runs.values():
        run.wait(1200)
    results = {name: run.results["total"] for name, run in runs.items()}
    assert results == {name: example.result for name, example in EXAMPLES.items()}
    said = str(runs["reduced"].logs())
    assert "1 all-reduce (256 B) by 1 reducer" in said and "reducer 0: 1 sums; " in said


@pytest.mark.timeout(1500)
def test_the_quickstart_trains(slurm: Cluster, nb: Kernel) -> None:
    train(nb, "--on slurm --workers 2")
