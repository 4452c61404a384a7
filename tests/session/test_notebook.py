"""`notebooks/language-model.ipynb`, executed in a kernel as a user would."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.kernels import DEVIATING, execute

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "language-model.ipynb"


@pytest.mark.slow
def test_a_model_stays_and_adapters_bring_it_nearer_to_code(home: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(DEVIATING))
    execute(notebook, tmp_path, timeout=800)
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    shown = [o["data"] for o in outputs if "data" in o]
    printed = "".join(o.get("text", "") for o in outputs)
    plain = "".join(data.get("text/plain", "") for data in shown)
    shares = re.findall(r"([\d,]+) weights, ([\d,]+) of them in this rank", plain)
    whole, *parts = (int(n.replace(",", "")) for n in (shares[0][0], shares[0][1], shares[1][1]))
    assert sum(parts) == whole
    english = re.search(r"English: ([\d.]+) bits a character", plain)
    code = re.search(r"code: ([\d.]+) bits a character, ([\d.]+) before", plain)
    assert english and float(english[1]) < 2.8, "each letter by its frequency alone takes 4.6"
    assert code and float(code[1]) < float(code[2]) - 0.15
    assert "16 tensors, 49 kB" in printed and "session lab has ended" in printed
    assert any("image/png" in data for data in shown)
    assert "ranks deviate: []" in printed
