"""Sessions on a real Slurm cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.worker.files.status import Status
from tests.conftest import eventually
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


def test_names_outlive_a_replica_and_the_process_here(slurm: Cluster, work: Path) -> None:
    with Lab(1, on="slurm", workers=2) as lab:
        lab.lines("import os\nmine = int(os.environ['RANK'])")
        here = lab.session.status.supervisor
        assert here is not None
        os.kill(here.pid, signal.SIGKILL)
        assert eventually(lambda: not here.alive)
        assert lab.lines("print(mine)") == ["[rank 0] 0", "[rank 1] 1"]
        assert lab.session.status.supervisor != here
        (replica,) = work.parent.glob("**/slurm/*/replicas/1")
        there = Status.read(replica).supervisor
        assert there is not None
        os.kill(there.pid, signal.SIGKILL)
        assert eventually(lambda: lab.session.ranks[1].outcome, within=200)
        assert lab.session.ranks[1].outcome.startswith("its machine was lost")
        with pytest.raises(OptionError, match="rank 1 of session lab has ended"):
            lab.begin("print(mine)")
        assert lab.lines("print(mine)", rank="0") == ["[rank 0] 0"]
        with pytest.raises(DistrainError, match="rank 1 can't come back"):
            lab.session.restart(rank=1)
    slurm.wait(lambda: not slurm.run("squeue", "--noheader").stdout, 30)


def test_a_session_ends_where_nobody_answers(slurm: Cluster, work: Path) -> None:
    with Lab(1, on="slurm", workers=1) as lab:
        lab.lines("mine = 1")
        here = lab.session.status.supervisor
        assert here is not None
        (replica,) = work.parent.glob("**/slurm/*/replicas/0")
        there = Status.read(replica).supervisor
        assert there is not None
        slurm.end("slurmctld")
        os.kill(there.pid, signal.SIGKILL)
        lab.session.stop()
        assert eventually(lambda: not here.alive, within=90)
        assert lab.session.status.phase.startswith("ended; its job ")
        slurm.start_controller()
    slurm.wait(lambda: not slurm.run("squeue", "--noheader").stdout, 60)
