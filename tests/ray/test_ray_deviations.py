"""Ranks on the nodes of a real Ray cluster that train wrongly say so: nodes share no folder."""

from __future__ import annotations

from functools import partial

import pytest

import distrain_nb as d
from benchmarks.trained_wrong_cells import CASES
from tests.conftest import eventually
from tests.slurm.test_jobs import ended
from tests.slurm.test_slurm_deviations import NAMES

from .conftest import RayCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]  # five runs of two nodes in turn


def test_a_fault_of_each_kind_is_named_over_two_nodes(cluster: RayCluster, home: object) -> None:
    cases = {case.name: case for case in CASES if case.name in NAMES}
    runs = {
        name: d.submit(case.faulty, **cluster.options(cpus="1"), workers=2, name=name)
        for name, case in cases.items()
    }
    for name, case in cases.items():
        run = runs[name]
        assert eventually(partial(ended, run), 900), (name, run.state, run.logs())
        codes = {finding.code for finding in run.findings}
        assert set(case.codes) & codes, (name, str(run.logs())[-2000:])
        assert any(finding.message[:40] in run.status.note for finding in run.findings)
