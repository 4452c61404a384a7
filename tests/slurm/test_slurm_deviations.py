"""Ranks on several nodes of a real Slurm cluster that train wrongly say so."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import distrain_nb as d
from benchmarks.trained_wrong_cells import CASES
from tests.conftest import eventually
from tests.slurm.cluster import Cluster
from tests.slurm.test_jobs import ended

pytestmark = pytest.mark.slow

NAMES = (
    "module-called-by-itself",
    "clipped-on-one-rank",
    "split-without-seed",
    "one-rank-stops-early",
    "rate-by-local-loss",
)


def test_a_fault_of_each_kind_is_named_over_two_nodes(slurm: Cluster, work: Path) -> None:
    cases = {case.name: case for case in CASES if case.name in NAMES}
    runs = {
        name: d.submit(case.faulty, on="slurm", cpus=1, workers=2, name=name)
        for name, case in cases.items()
    }
    for name, case in cases.items():
        run = runs[name]
        assert eventually(partial(ended, run), 300)
        codes = {finding.code for finding in run.findings}
        assert set(case.codes) & codes, (name, str(run.logs())[-2000:])
        assert any(finding.message[:40] in run.status.note for finding in run.findings)
