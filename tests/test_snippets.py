"""What README and the documents show works as a user pastes it."""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tests.kernels import kernel

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted(ROOT.glob("docs/*.md"))]
OF_CHECKOUTS = {"dev", "docs", "first"}  # extras for those who change the project
HEAD = re.compile(r"^%%distrain(.*\\\n)*.*\n", re.M)


def snippets(page: Path) -> list[str]:
    """The cells of a page, in their order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_reads_every_snippet(page: Path) -> None:
    for text in snippets(page):
        code = TransformerManager().transform_cell(HEAD.sub("", text))
        compile(code, page.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_readme_names_every_extra() -> None:
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(r"^\| (`.+`) \|", README.read_text(encoding="utf-8"), re.M)
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert set(project["optional-dependencies"]) - OF_CHECKOUTS <= named


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_a_page_imports_us_before_it_names_us(page: Path) -> None:
    """`%load_ext` binds no name: a snippet that is pasted alone would end in a NameError."""
    imported = False
    for text in snippets(page):
        tree = ast.parse(TransformerManager().transform_cell(HEAD.sub("", text)))
        named = any(isinstance(n, ast.Name) and n.id == "distrain_nb" for n in ast.walk(tree))
        imported = imported or any(
            alias.name.partition(".")[0] == "distrain_nb"
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        )
        assert imported or not named, text


@pytest.mark.slow
def test_cells_of_readme_and_of_studies_run_when_they_are_pasted(
    home: Path, tmp_path: Path
) -> None:
    first, result, *session = snippets(README)
    study, of_study, *_ = snippets(ROOT / "docs" / "tuning.md")
    layouts = snippets(ROOT / "docs" / "layouts.md")
    hello, executor, *_ = snippets(ROOT / "docs" / "python.md")
    # The second needs a cloud.
    hello = "\n".join(line for line in hello.splitlines() if "vertex" not in line)
    with kernel(tmp_path, {**os.environ, "DISTRAIN_HOME": str(home)}) as notebook:
        notebook.run("%load_ext distrain_nb")
        notebook.run("text = '--on vertex --primary n1-standard-4'")
        notebook.run("def train(rate, steps=1): return rate * steps")
        pasted = ((first, ""), (result, "weight"), (study, ""), (of_study, ""), (hello, ""))
        for cell, said in (*pasted, (executor, ""), *((cell, "") for cell in layouts)):
            outcome = notebook.run(cell, 300)
            assert not outcome.error, f"{cell}\n{outcome.traceback}"
            assert said in str([outcome.text, outcome.displays])
        for cell in (*session, "%distrain session stop lab"):
            outcome = notebook.run(cell, 300)
            assert not outcome.error, f"{cell}\n{outcome.traceback}"
        said = notebook.run("print(distrain_nb.studies())").text
        assert "succeeded" in said
