"""Cells that the tests here run, and what is seen of them."""

from __future__ import annotations

import json
import shutil

from playwright.sync_api import Locator, Page, expect

from tests.browser.jupyter import NOTEBOOK
from tests.embedding.environments import ROOT
from tests.embedding.spaces import Space, SpaceNotebook, give

# What is told of each cell in the page's own model: it draws only those that are seen.
CELLS = f"() => {NOTEBOOK}.content.widgets.map((cell) => cell.model.sharedModel.getSource())"

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


def train(name: str, options: str = "-n 2") -> str:
    return TRAIN.format(name=name, options=options)


def see_running(notebook: SpaceNotebook) -> Locator:
    """The view of the run in that page, with a log and a chart that move."""
    view = notebook.page.locator("section.distrain")
    expect(view.locator(".dn-badge")).to_contain_text("running")
    expect(view.locator(".dn-line").nth(5)).to_be_visible()
    charts = notebook.page.frame_locator("iframe.dn-plot").first
    expect(charts.locator(".scatterlayer .trace").first).to_be_attached()
    return view


def end(notebook: SpaceNotebook, name: str, view: Locator) -> None:
    """Let the run of that name end, and see it end."""
    (notebook.path.parent / name).touch()
    expect(view.locator(".dn-badge")).to_contain_text("succeeded")
    expect(view).to_contain_text("seen")
    expect(view).to_have_count(1)


def open_all(page: Page, space: Space) -> None:
    """Open each notebook of the project, and see its cells with no word of an error."""
    for file in sorted((ROOT / "notebooks").glob("*.ipynb")):
        shutil.copy(file, space.folder)
        give(space.folder)
        SpaceNotebook(page, space, file.name, same_kernel=True)
        written = json.loads(file.read_text(encoding="utf-8"))["cells"]
        assert page.evaluate(CELLS) == ["".join(cell["source"]) for cell in written], file.name
        expect(page.locator(".jp-Dialog, .jp-toast-error")).to_have_count(0)
