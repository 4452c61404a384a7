"""What a cell could ask for instead where a Ray cluster has no room, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distrain_nb.backends.job import Job
from distrain_nb.findings import Finding
from distrain_nb.layout import Layout
from distrain_nb.places.ray.backend import RayBackend
from distrain_nb.places.ray.options import RayOptions
from distrain_nb.places.ray.plan import CLUSTER
from distrain_nb.program import Cell, Notebook, capture

GIB = 1 << 30
NODES = [[name, {"CPU": 16.0, "memory": 64.0 * GIB, "GPU": 4.0}, None, {}] for name in ("a", "b")]


def no_room(line: str, **options: object) -> Finding:
    program = capture(Cell("Cell In[1]", "import torch"), 1, Notebook({}, (), Path.cwd()))
    job = Job(
        program, Layout.from_line(f"--on ray {line}"), Path("/home/me/work"),
        RayOptions(**options), machine={CLUSTER: json.dumps(NODES)}, nonce="abc", environ={},
    )  # fmt: skip
    (finding,) = (f for f in RayBackend().plan(job).findings if f.code == "ray.no-room")
    return finding


@pytest.mark.parametrize(
    ("line", "options", "labels"),
    [
        ("--workers 1*node+8*GPU", {}, ["Take 4 GPUs for each of the workers"]),
        ("--workers 3*node+4*GPU", {}, ["Take 2 replicas"]),
        ("--workers 4*node+2*GPU", {}, ["Write `--placement SPREAD`", "Take 2 replicas"]),
        ("--workers 3*node+8*GPU", {}, []),
        ("--workers 1*node+2*GPU", {"cpus": "17"}, []),
    ],
)  # fmt: skip
def test_each_repair_fits_the_cluster(
    line: str, options: dict[str, object], labels: list[str]
) -> None:
    assert [fix.label for fix in no_room(line, **options).fixes] == labels
