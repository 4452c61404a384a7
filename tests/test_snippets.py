"""What README and the documents show works as a user pastes it."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest
import tomllib
from IPython.core.inputtransformer2 import TransformerManager

from tests.kernels import kernel

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
OF_CHECKOUTS = {"dev", "docs", "first"}  # extras for those who change the project
HEAD = re.compile(r"^%%distrain(.*\\\n)*.*\n", re.M)


def snippets(page: Path) -> list[str]:
    """The cells of a page, in their order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)


@pytest.mark.parametrize("page", [README, *sorted(ROOT.glob("docs/*.md"))], ids=lambda p: p.name)
def test_python_reads_every_snippet(page: Path) -> None:
    for text in snippets(page):
        code = TransformerManager().transform_cell(HEAD.sub("", text))
        compile(code, page.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_readme_names_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(r"^\| (`.+`) \|", README.read_text(encoding="utf-8"), re.M)
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert set(project["optional-dependencies"]) - OF_CHECKOUTS <= named


@pytest.mark.slow
def test_cells_of_readme_and_of_studies_run_when_they_are_pasted(
    home: Path, tmp_path: Path
) -> None:
    first, result = snippets(README)
    study, *_ = snippets(ROOT / "docs" / "tuning.md")
    with kernel(tmp_path, {**os.environ, "DISTRAIN_HOME": str(home)}) as notebook:
        notebook.run("%load_ext distrain_nb")
        for cell, said in ((first, ""), (result, "weight"), (study, "")):
            outcome = notebook.run(cell, 300)
            assert not outcome.error, outcome.traceback
            assert said in str([outcome.text, outcome.displays])
        said = notebook.run("print(distrain_nb.studies())").text
        assert "succeeded" in said
