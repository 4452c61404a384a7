"""TensorFlow's launcher starts one process a replica at every place; more are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

import distrain_nb as d
from distrain_nb.cluster import process_findings
from distrain_nb.layout import Layout
from distrain_nb.program.program import CapturedValue

MIRRORED = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
print(strategy.num_replicas_in_sync)
"""
NOWHERE = {"address": "http://127.0.0.1:1"}
CASES = {
    "local": ({}, 2),
    "local with workers": ({"workers": 2}, 6),
    "slurm": ({"on": "slurm", "workers": 1}, 2),
    "slurm with a primary": ({"on": "slurm", "primary": 1, "workers": 1}, 4),
    "ray": ({"on": "ray", "workers": 2, **NOWHERE}, 4),
    "vertex": ({"on": "vertex", "primary": "n1-standard-8"}, 2),
    "sagemaker": ({"on": "sagemaker", "workers": "2*ml.c5.xlarge"}, 4),
}


@pytest.mark.parametrize(("options", "processes"), CASES.values(), ids=CASES)
def test_more_than_one_is_refused(options: dict[str, object], processes: int, home: object) -> None:
    found = d.check(MIRRORED, **options, ranks_per_replica=2)  # type: ignore[arg-type]
    (finding,) = (item for item in found if item.code == "launcher.one-rank")
    assert str(finding.severity) == "error"
    assert f"asks for 2: leave out -n, and ask for {processes} replicas" in finding.message
    one = d.check(MIRRORED, **options)  # type: ignore[arg-type]
    assert not [item for item in one if item.code == "launcher.one-rank"]


@pytest.mark.parametrize(
    ("text", "workers", "starts", "severity"),
    [
        (MIRRORED, 1, True, "error"),
        (MIRRORED, 0, True, ""),
        (MIRRORED, 1, False, ""),
        (MIRRORED.replace("strategy =", "if v:\n    strategy ="), 1, True, "warning"),
        ("import tensorflow as tf\ntf.distribute.MirroredStrategy()", 1, True, ""),
    ],
)
def test_a_tensor_before_the_strategy_is_named(
    text: str, workers: int, starts: bool, severity: str
) -> None:
    value = CapturedValue("v", "EagerTensor", 9, ("Cell In[2], line 3",), None, starts)
    layout = Layout.of("local", primary=1, **({"workers": workers} if workers else {}))
    program = replace(d.api.program(text), values=(value,))
    found = list(process_findings(program, layout, "tensorflow", 1, 0))
    assert [(item.code, str(item.severity)) for item in found] == (
        [("launcher.before-strategy", severity)] if severity else []
    )
