"""`notebooks/places.ipynb`, executed in a kernel as a user would, where all places are at hand."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
import pytest

from tests.kernels import DEVIATING, execute
from tests.ray.conftest import RayCluster, cluster  # noqa: F401 - a fixture
from tests.slurm.cluster import Cluster

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "places.ipynb"
PLACES = ("here", "slurm", "ray", "vertex")


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_four_places_train_the_same_weights(
    slurm: Cluster,
    cluster: RayCluster,  # noqa: F811
    home: Path,
    tmp_path: Path,
) -> None:
    home.mkdir()
    settings = f"address: {cluster.address}\nray_python: {sys.executable}\n"
    (home / "config.yaml").write_text(settings, encoding="utf-8")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(DEVIATING))
    execute(notebook, tmp_path, timeout=1200)
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    printed = "".join(o.get("text", "") for o in outputs)
    plain = "\n".join(o["data"].get("text/plain", "") for o in outputs if "data" in o)
    assert "left out" not in printed
    rows = dict(re.findall(r"^(\w+) +[\d.]+ s +(9\d\.\d% +0\.0)$", plain, re.M))
    assert tuple(rows) == PLACES and len(set(rows.values())) == 1, plain
    assert "workerPoolSpecs:" in printed
    assert "ranks deviate: []" in printed
