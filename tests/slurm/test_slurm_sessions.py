"""Sessions on a real Slurm cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.session import notebook
from tests.session.lab import Lab
from tests.slurm.cluster import Cluster

pytestmark = pytest.mark.slow


def test_the_notebook_of_this_machine_runs_there(slurm: Cluster, work: Path) -> None:
    with Lab(1, on="slurm", workers=2) as lab:
        notebook.run_all(lab)
        assert slurm.run("squeue", "--noheader").stdout.count("\n") == 1
    slurm.wait(lambda: not slurm.run("squeue", "--noheader").stdout, 30)
    assert lab.session.status.phase == "ended"
