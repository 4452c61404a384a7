"""The quickstart's cells, for a place that trains."""

from __future__ import annotations

import json
from pathlib import Path

from tests.kernels import Kernel

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "quickstart.ipynb"


def cells() -> list[str]:
    """The code of each."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]


def train(nb: Kernel, options: str) -> None:
    """Run the notebook with more options of its training; its last cell tests the weights."""
    data, net, training, _, look, check, *_ = cells()
    head, _, body = training.partition("\n")
    for cell in (data, net, f"{head} {options} --wait\n{body}", look, check):
        outcome = nb.run(cell, 1200)
        assert not outcome.error, outcome.traceback
    assert "weights that were trained on 2 ranks: 9" in outcome.text
