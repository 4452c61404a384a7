"""`notebooks/data.ipynb`, executed in a kernel as a user would."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from distrain_nb import api
from tests.kernels import execute

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "data.ipynb"
IMAGES, WAIT_S = 320, 0.010
RANKS = {
    "one-process-disk": 1,
    "one-process-bucket": 1,
    "dp-bucket": 1,
    "ddp-disk": 2,
    "ddp-bucket": 2,
    "ddp-shards": 2,
    "fsdp-shards": 2,
}


@pytest.mark.slow
def test_seven_configurations_side_by_side(home: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    beside = tmp_path / "notebooks"
    beside.mkdir()
    execute(notebook, beside, timeout=600)
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    shown = [o["data"] for o in outputs if "data" in o]
    pages = [data.get("text/html", "") for data in shown]
    printed = "".join(o.get("text", "") for o in outputs)
    assert f"{IMAGES} samples in 3 shards" in printed and "; 4 classes" in printed
    seconds = {n: float(s) for n, s in re.findall(r"^(\S+) +([\d.]+) s an epoch$", printed, re.M)}
    assert seconds.keys() == RANKS.keys()
    for name in (name for name in RANKS if name.endswith("-bucket")):
        assert seconds[name] >= IMAGES * WAIT_S / RANKS[name], "each file keeps its reader waiting"
    table = next(page for page in pages if '<th scope="row">--param strategy</th>' in page)
    assert all(f"{name} #" in table for name in RANKS)
    assert any('<path class="dn-line"' in page and "fsdp-shards" in page for page in pages)
    assert any('class="dataframe"' in page and "seconds an epoch" in page for page in pages)
    assert any("image/png" in data for data in shown)
    assert not list(beside.iterdir()), "the images are gone"
    see_what_was_trained()


def see_what_was_trained() -> None:
    """Ways to train that read the same batches come to the same losses."""
    runs = {run.name: run for run in api.runs()}
    loss = {name: list(runs[name].metrics()["loss"]) for name in RANKS}
    for name, ranks in RANKS.items():
        assert len(runs[name].status.processes) == ranks, name
        assert not runs[name].status.note, name
        assert loss[name][-1] < 1, f"{name}: what can't tell 4 classes apart has a loss of 1.39"
    assert loss["dp-bucket"] == pytest.approx(loss["one-process-bucket"], rel=0.05)
    assert loss["ddp-bucket"] == pytest.approx(loss["ddp-disk"], rel=0.05)
    assert loss["fsdp-shards"] == pytest.approx(loss["ddp-shards"], rel=0.05)
