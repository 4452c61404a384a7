"""The monitor where there are no widgets: real runs in a terminal, in nbclient and in nbconvert."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

from distrain_nb.saved.document import RUN_TYPE
from tests.kernels import execute

pytestmark = pytest.mark.slow

TRAIN = """%%distrain -n 2 --name digits
import os, sys, time
from distrain_nb import log_metrics
for step in range(30):
    log_metrics(step=step, loss=1 / (step + 1))
    sys.stderr.write(f"\\rstep {step}")
    sys.stderr.flush()
    time.sleep(0.02)
print("\\x1b[31mdone\\x1b[0m")
"""
TERMINAL = """
import time
from IPython.terminal.interactiveshell import TerminalInteractiveShell
shell = TerminalInteractiveShell.instance(colors="NoColor")
shell.run_cell("%load_ext distrain_nb")
shell.run_cell({cell!r})
"""


def in_terminal(cell: str, folder: Path) -> str:
    """What IPython prints for the cell."""
    ran = subprocess.run(
        [sys.executable, "-c", TERMINAL.format(cell=cell)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ran.stdout


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    """A notebook with a run, executed as papermill and nbconvert do it."""
    home = tmp_path_factory.mktemp("home")
    sources = ["%load_ext distrain_nb", TRAIN]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    environment = {**os.environ, "DISTRAIN_HOME": str(home)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        execute(notebook, home)
    return notebook


def test_a_terminal_prints_lines_as_they_come(home: Path, notebook_folder: Path) -> None:
    text = in_terminal(TRAIN, notebook_folder)
    assert text.count("[rank 0] done\n") == 1
    assert text.count("[rank 1] done\n") == 1
    assert "run 1 (digits): succeeded after" in text
    assert "on this machine, 2 ranks\nloss 0.03333" in text
    assert text.count("step 29") == 2  # bars as they were left, and not on their way
    assert "step 12" not in text
    assert "\x1b[31m" not in text


def test_a_terminal_is_left_alone_by_runs_that_go_on(home: Path, notebook_folder: Path) -> None:
    slow = TRAIN.replace("0.02", "0.5")  # it has to be there when a busy machine lets go of it
    text = in_terminal(slow.replace("-n 2", "-n 2 --no-wait"), notebook_folder)
    assert "run 1 continues in the background; %distrain logs 1 --follow" in text
    assert "done" not in text


def test_a_terminal_has_the_report_of_a_failure_whole(home: Path, notebook_folder: Path) -> None:
    text = in_terminal("%%distrain\nraise ValueError('boom')", notebook_folder)
    report = text[text.index("run 1 (run-1) failed\n") :]
    assert "rank 0 failed: ValueError: boom" in report
    assert "line 2, in <module>" in report


def test_an_executed_notebook_keeps_the_end(executed: nbformat.NotebookNode) -> None:
    run, chart = (output["data"] for output in executed.cells[1].outputs)
    assert set(run) == set(chart) == {RUN_TYPE, "text/html", "text/plain"}
    assert [each[RUN_TYPE]["part"] for each in (run, chart)] == ["run", "charts"]
    assert "digits" in run["text/html"]
    assert "[rank 1] done" in run["text/plain"]
    assert chart["text/html"].count('data-tag="loss"') == 1
    assert len(json.dumps(executed)) < 100_000
    assert "widgets" not in executed.metadata


def test_a_converted_notebook_shows_the_run_without_scripts(
    executed: nbformat.NotebookNode,
) -> None:
    page, _ = HTMLExporter().from_notebook_node(executed)
    for words in ("succeeded", "this machine · 2 ranks", '<span class="ansi-red">done</span>'):
        assert words in page
    assert 'aria-label="loss by step"' in page
    assert '<path class="dn-line"' in page
