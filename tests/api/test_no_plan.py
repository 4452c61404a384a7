"""A layout with a count below one is refused, whatever asks for its plan."""

from __future__ import annotations

import pytest

import distrain_nb
from distrain_nb.errors import OptionError

pytestmark = pytest.mark.brief

FEW = [
    {"primary": "0"},
    {"primary": "-1"},
    {"workers": "0"},
    {"ranks_per_replica": "-1"},
    {"on": "ray", "primary": "0"},
    {"on": "slurm", "workers": "0"},
    {"on": "vertex", "primary": "0*n1-standard-4"},
    {"on": "sagemaker", "workers": "0*ml.m5.large"},
]


@pytest.mark.parametrize("options", FEW, ids=str)
def test_a_count_below_one_has_a_finding_and_no_plan(options: dict[str, str], home: object) -> None:
    codes = {finding.code for finding in distrain_nb.check("print(1)", **options)}  # type: ignore[call-overload]
    assert codes & {"replicas-positive", "ranks-positive"}
    with pytest.raises(OptionError, match="it needs 1 or more"):
        distrain_nb.plan("print(1)", **options)  # type: ignore[call-overload]
