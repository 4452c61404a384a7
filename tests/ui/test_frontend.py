"""A page is told from a document that is executed in one go, with real kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb.ui.frontend import SESSION_VARIABLE
from tests.kernels import Kernel, kernel

pytestmark = pytest.mark.slow

ASK = "from distrain_nb.ui.frontend import frontend; print(frontend().value, end='')"
EXECUTE = f"""
import nbformat
from nbclient import NotebookClient
inner = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell({ASK!r})])
executed = NotebookClient(inner, kernel_name="python3").execute()
print(executed.cells[0].outputs[0].text)
"""
OTHER_PROCESS = f"""import subprocess, sys
print(subprocess.run([sys.executable, "-c", {EXECUTE!r}], capture_output=True, text=True).stdout)
"""
# nbclient wants an event loop of its own.
SAME_PROCESS = (
    f"import threading; t = threading.Thread(target=exec, args=({EXECUTE!r},)); t.start(); t.join()"
)
TRAIN = "%%distrain --name short --param unused=1\nprint('trained')"


@pytest.fixture
def session(home: Path, notebook_folder: Path) -> Iterator[Kernel]:
    """A kernel of a Jupyter server's session, as far as its variables tell."""
    with kernel(notebook_folder, {**os.environ, SESSION_VARIABLE: "work.ipynb"}) as started:
        started.run("%load_ext distrain_nb")
        yield started


def test_who_can_answer_questions_is_a_page(nb: Kernel) -> None:
    assert nb.outcome(nb.send(ASK, on_a_page=True)).text == "page"
    assert nb.run(ASK).text == "document"


def test_a_page_breaks_the_lines_of_a_text_between_words(nb: Kernel) -> None:
    """JupyterLab breaks printed lines within words."""
    nb.run("%load_ext distrain_nb")
    shown = nb.outcome(nb.send("%distrain config", on_a_page=True)).displays[-1]
    assert "word-break: normal" in shown["text/html"]
    document = nb.run("%distrain config")
    assert document.text.strip() == shown["text/plain"].strip() and not document.displays


def test_a_server_s_session_is_a_page_and_what_its_notebook_executes_is_none(
    session: Kernel,
) -> None:
    assert session.run(ASK).text == "server"
    assert session.run(OTHER_PROCESS).text.split() == ["document"]
    assert session.run(SAME_PROCESS).text.split() == ["document"]


def test_the_end_and_a_warning_are_displayed_anew_instead_of_updates(session: Kernel) -> None:
    outcome = session.run(TRAIN)
    texts = [display["text/plain"] for display in outcome.displays]
    sign, warning, first, again, last = texts[:5]
    assert sign.startswith("Preparing the run: ")  # until the next output
    assert warning == again
    assert "`unused` has no effect" in warning
    assert first.startswith("run 1 (short): ")
    assert "[rank 0] trained" in last
    assert "application/vnd.jupyter.widget-view+json" not in outcome.displays[4]


def test_other_output_of_the_cell_is_not_cleared(session: Kernel) -> None:
    assert not session.run(TRAIN).error
    outcome = session.run("print('mine')\n%distrain show last")
    assert outcome.text.startswith("mine")
    assert outcome.cleared == 0
    assert session.run("%distrain show last").cleared == 1
