"""`notebooks/tuning.ipynb`, executed in a kernel as a user would."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.kernels import execute

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "tuning.ipynb"


@pytest.mark.slow
def test_a_study_of_digits(home: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    execute(notebook, tmp_path, timeout=600)
    shown = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    page = "".join(o["data"].get("text/html", "") for o in shown if "data" in o)
    plain = [o["data"].get("text/plain", "") for o in shown if "data" in o]
    printed = "".join(o.get("text", "") for o in shown)
    assert "study 1 (digits): succeeded, 8 of 8 trials; best accuracy 0." in page
    assert "study 1 (digits): succeeded, 10 of 10 trials" in page
    best = re.search(r"trial \d+: (0\.\d+) with \{'rate': ", printed)
    assert best and float(best[1]) > 0.85
    assert "(10, 64)" in plain and "10" in plain
