"""Where the server runs the cells, doctor says so, and whether this notebook is trusted."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from distrain_nb.backends.checks import Check, Health
from distrain_nb.health.notebooks import jupyter


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook of a session, on a server with jupyter-server-documents."""
    about = tmp_path / "packages" / "jupyter_server_documents-0.3.3.dist-info" / "METADATA"
    about.parent.mkdir(parents=True)
    about.write_text("Metadata-Version: 2.1\nName: jupyter-server-documents\nVersion: 0.3.3\n")
    monkeypatch.syspath_prepend(about.parents[1])
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    path = tmp_path / "training.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")]), path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    return path


def checks() -> dict[str, Check]:
    return {check.subject: check for check in jupyter()}


@pytest.mark.brief
def test_a_notebook_that_is_not_trusted_is_told_of(notebook: Path) -> None:
    found = checks()
    assert found["jupyter-server-documents"].result.startswith("0.3.3: ")
    assert found["trust"].state is Health.MISSING
    assert "training.ipynb is not trusted" in found["trust"].result
    assert "Trust Notebook" in found["trust"].remedy
    NotebookNotary().sign(nbformat.read(notebook, as_version=4))
    assert checks()["trust"].state is Health.GOOD


@pytest.mark.brief
def test_trust_that_can_not_be_told_is_said_so(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    NotebookNotary().sign(nbformat.read(notebook, as_version=4))
    monkeypatch.setenv("JPY_SESSION_NAME", "elsewhere/of-a-server.ipynb")
    assert "can't find out whether" in checks()["trust"].result
    monkeypatch.delenv("JPY_SESSION_NAME")
    assert "can't find out whether" in checks()["trust"].result


def test_a_server_of_the_usual_kind_needs_no_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    assert "trust" not in checks()
