"""`notebooks/images.ipynb`, executed in a kernel as a user would."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.kernels import DEVIATING, execute

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "images.ipynb"


@pytest.mark.slow
def test_two_ranks_learn_the_digits_from_shards(home: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(DEVIATING))
    beside = tmp_path / "notebooks"
    beside.mkdir()
    execute(notebook, beside, timeout=600)
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    shown = [o["data"] for o in outputs if "data" in o]
    printed = "".join(o.get("text", "") for o in outputs)
    pages = "".join(data.get("text/html", "") for data in shown)
    assert "1,347 samples in 3 shards" in printed and "10 classes" in printed
    found = re.search(r"accuracy here: ([\d.]+)%; of the ranks: ([\d.]+)%", printed)
    assert found and float(found[1]) > 97 and found[1] == found[2]
    assert "of 450 test images" in pages and '<path class="dn-line"' in pages
    assert any("image/png" in data for data in shown)
    assert "ranks deviate: []" in printed
    assert not list(beside.iterdir()), "the images are gone"
