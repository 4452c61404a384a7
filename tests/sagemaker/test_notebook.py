"""`notebooks/sagemaker.ipynb`, executed in a kernel as a user would, in rehearsal."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.kernels import DEVIATING, execute
from tests.sagemaker.containers import container
from tests.vertex.conftest import without_docker  # noqa: F401

ROOT = Path(__file__).parents[2]

# Two jobs whose image has two gigabytes of frameworks.
pytestmark = pytest.mark.timeout(900)


def test_parameter_servers_and_horovod(
    images: str,
    without_docker: dict[str, str],  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = f"{images}/bases/frameworks:1"
    container().push(base)
    for name, value in without_docker.items():
        monkeypatch.setenv(name, value)
    config = Path(without_docker["DISTRAIN_HOME"], "config.yaml")
    config.write_text(f"base_image: {base}\n", encoding="utf-8")
    notebook = nbformat.read(ROOT / "notebooks" / "sagemaker.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(DEVIATING))
    execute(notebook, tmp_path, timeout=800)
    shown = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    printed = "".join(o.get("text", "") for o in shown)
    page = "".join(o["data"].get("text/html", "") for o in shown if "data" in o)
    assert "aws sagemaker create-training-job" in printed
    assert "ranks deviate: []" in printed
    first, last = re.search(r"loss ([\d.]+), then ([\d.]+)", printed).groups()  # type: ignore[union-attr]
    assert float(last) < 0.8 * float(first)
    for said in ("chief 0 ends", "worker 0 ends", "rank 0 of 2 ends", "rank 1 of 2 ends"):
        assert said in page
    right = re.search(r"2 processes; (\d+)% of the pictures", printed)
    assert right and int(right[1]) > 90
