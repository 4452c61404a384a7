"""`notebooks/vertex.ipynb`, executed in a kernel as a user would, in rehearsal."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.kernels import execute

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_it_loses_a_machine_and_trains_to_the_end(
    pytorch: str,
    without_docker: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = Path(without_docker["DISTRAIN_HOME"])
    for name, value in without_docker.items():
        monkeypatch.setenv(name, value)
    (home / "config.yaml").write_text(f"base_image: {pytorch}\n", encoding="utf-8")
    notebook = nbformat.read(ROOT / "notebooks" / "vertex.ipynb", as_version=4)
    execute(notebook, tmp_path, timeout=800)
    shown = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    printed = "".join(o.get("text", "") for o in shown)
    page = "".join(o["data"].get("text/html", "") for o in shown if "data" in o)
    resumed = re.search(r"resumed at epoch (\d+); test accuracy: ([\d.]+)%", printed)
    assert resumed and int(resumed[1]) > 3 and float(resumed[2]) > 90
    assert "workerPoolSpecs:" in printed and "gcloud ai custom-jobs create" in printed
    assert "start at epoch 0" in page and f"start at epoch {resumed[1]}" in page
    assert '<path class="dn-line"' in page
