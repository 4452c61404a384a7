"""Where jupyter-server-documents runs the cells and keeps their outputs, with real runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from distrain_nb.saved.document import RUN_TYPE
from tests.browser.environments import SAGEMAKER_4_4
from tests.browser.jupyter import Lab, OpenNotebook, serve

LOAD = "%load_ext distrain_nb"
# It goes on until the test has seen it run.
TRAIN = """%%distrain {options} --name {name}
import time
from pathlib import Path
from distrain_nb import log_metrics
step = 0
while not Path("{name}").exists():
    step += 1
    log_metrics(loss=1 / step, step=step)
    print("step", step)
    time.sleep(0.1)
print("seen")
"""
INNER = """%%distrain -n 2 --name inner
print("done")
"""
EXECUTE = """import subprocess, sys
command = "-m nbconvert --to notebook --execute inner.ipynb --output outer.ipynb"
subprocess.run([sys.executable, *command.split()], check=True)
"""
HTML, TEXT = "text/html", "text/plain"
OPEN = Callable[..., OpenNotebook]


class _Served(OpenNotebook):
    """Of its kernels the page knows no more than that they are there, for a while."""

    IDLE = OpenNotebook.CONNECTED


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with serve(tmp_path_factory.mktemp("documents"), python=SAGEMAKER_4_4.python()) as running:
        yield running


@pytest.fixture
def opened(documents: Lab, page: Page) -> OPEN:
    def open_trusted(name: str, *cells: str) -> OpenNotebook:
        file = documents.write(name, *cells)
        documents.trust(file)  # this server marks no cell as trusted because it was run
        return _Served(page, documents, file)

    return open_trusted


def displays(notebook: OpenNotebook, cell: int, count: int) -> list[dict[str, Any]]:
    """What the document keeps of a cell's displays, once it has as many: the server writes it."""
    found: list[dict[str, Any]] = []
    for _ in range(50):
        try:
            outputs = notebook.save()["cells"][cell]["outputs"]
        except json.JSONDecodeError:  # the server is writing it
            continue
        found = [each["data"] for each in outputs if "data" in each]
        if len(found) >= count:
            break
        notebook.page.wait_for_timeout(200)
    return found


def see(notebook: OpenNotebook, name: str) -> Locator:
    """The view of that run, which is live and may end now."""
    view = notebook.page.locator("section.distrain")
    expect(view.locator(".dn-badge")).to_contain_text("running")
    expect(view.locator(".dn-line").nth(5)).to_be_visible()
    charts = notebook.page.frame_locator("iframe.dn-plot").first
    expect(charts.locator(".scatterlayer .trace")).to_have_count(1)
    (notebook.path.parent / name).touch()
    expect(view.locator(".dn-badge")).to_contain_text("succeeded")
    return view


def test_a_run_is_live_and_leaves_one_view(opened: OPEN) -> None:
    notebook = opened("live", LOAD, TRAIN.format(options="-n 2", name="live"))
    notebook.run_cells(2)
    view = see(notebook, "live")
    notebook.wait_for_cell(1, 60)
    expect(view).to_have_count(1)
    expect(view).to_contain_text("seen")
    run, charts = displays(notebook, 1, 2)
    assert set(run) == set(charts) == {RUN_TYPE, HTML, TEXT}
    assert "seen" in "".join(run[HTML])


def test_a_run_that_nobody_waits_for_shows_its_end(opened: OPEN) -> None:
    notebook = opened("left", LOAD, TRAIN.format(options="--no-wait", name="left"))
    notebook.run_cells(2)
    view = see(notebook, "left")
    expect(view).to_have_count(1)
    expect(view.locator(".dn-log")).to_contain_text("seen")


def test_the_table_of_runs_is_live(opened: OPEN) -> None:
    table = TRAIN.format(options="--no-wait", name="listed")
    notebook = opened("table", LOAD, table, "%distrain")
    notebook.run_cells(3)
    row = notebook.page.locator(".dn-table tr", has_text="listed")
    expect(row).to_contain_text("running")
    (notebook.path.parent / "listed").touch()
    expect(row).to_contain_text("succeeded")


def test_what_a_notebook_executes_has_no_page(opened: OPEN, documents: Lab) -> None:
    documents.write("inner", LOAD, INNER)
    notebook = opened("executes", EXECUTE)
    notebook.run_cells(1)
    notebook.wait_for_cell(0, 120)
    executed = nbformat.read(documents.folder / "outer.ipynb", as_version=4)
    (run,) = [output["data"] for output in executed.cells[1].outputs if output["data"][TEXT]]
    assert set(run) == {RUN_TYPE, HTML, TEXT}
    assert "[rank 1] done" in run[TEXT]
    assert "widgets" not in executed.metadata
