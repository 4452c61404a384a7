"""Sessions on a real Ray cluster, whose nodes share no folder with the notebook's machine."""

from __future__ import annotations

import pytest

from tests.session import notebook
from tests.session.lab import Lab

from .conftest import RayCluster, wait_for

pytestmark = pytest.mark.slow


def test_the_notebook_of_this_machine_runs_there(cluster: RayCluster, home: object) -> None:
    with Lab(1, **cluster.options(workers=2)) as lab:
        notebook.run_all(lab)
    assert lab.session.status.phase == "ended"
    wait_for(lambda: not cluster.replicas() and not cluster.ranks(), 60)
