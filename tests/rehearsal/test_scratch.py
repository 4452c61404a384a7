"""A rehearsal without any registry outside this machine: the image stands on the empty one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distrain_nb import api
from distrain_nb.errors import ImageError
from distrain_nb.findings import Severity
from distrain_nb.image import Recipe, build
from tests.kernels import DEVIATING, execute

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.brief
@pytest.mark.parametrize(
    ("options", "severity"),
    [
        ({"on": "vertex", "primary": "n1-standard-4", "rehearse": ""}, Severity.INFO),
        ({"on": "vertex", "primary": "n1-standard-4"}, Severity.ERROR),
        ({"on": "sagemaker", "workers": "ml.m5.xlarge", "rehearse": ""}, Severity.ERROR),
    ],
)
def test_only_what_needs_no_python_of_its_image_takes_the_empty_one(
    home: Path, options: dict[str, Any], severity: Severity
) -> None:
    found = api.check("import torch", base="scratch", **options)
    assert [x.severity for x in found if x.code == "image.scratch"] == [severity]


@pytest.mark.brief
def test_no_other_image_is_built_on_the_empty_one(home: Path) -> None:
    recipe = Recipe(base="scratch", target="127.0.0.1:1/job")
    with pytest.raises(ImageError, match="without Python"):
        build(api.program("print(1)"), recipe)
    with pytest.raises(ImageError, match="only --builder append"):
        build(api.program("print(1)"), recipe, "docker")


@pytest.mark.brief
def test_a_base_out_of_reach_names_the_command(home: Path) -> None:
    recipe = Recipe(base="127.0.0.1:1/base", target="127.0.0.1:1/job", bare_processes=True)
    with pytest.raises(ImageError, match="%distrain config base_image=scratch"):
        build(api.program("print(1)"), recipe)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_one_command_and_the_notebook_for_vertex_ai_runs_as_it_stands(
    home: Path, tmp_path: Path
) -> None:
    notebook = nbformat.read(ROOT / "notebooks" / "vertex.ipynb", as_version=4)
    notebook.cells.insert(1, nbformat.v4.new_code_cell("%distrain config base_image=scratch"))
    notebook.cells.append(nbformat.v4.new_code_cell(DEVIATING))
    execute(notebook, tmp_path, timeout=250)
    shown = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    printed = "".join(o.get("text", "") for o in shown)
    page = "".join(o["data"].get("text/html", "") for o in shown if "data" in o)
    resumed = re.search(r"resumed at epoch (\d+); test accuracy: ([\d.]+)%", printed)
    assert resumed and int(resumed[1]) > 3 and float(resumed[2]) > 90
    assert "the image has no base" in page
    assert "ranks deviate: []" in printed
