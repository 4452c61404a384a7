"""An exported notebook on paper: what a frame would hide on a screen stands on the page."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import Browser

import distrain_nb
from distrain_nb.run import Store
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.log.reader import LogReader
from distrain_nb.run.summary import summary_of
from distrain_nb.saved import document
from distrain_nb.saved.study_table import StudyTable
from distrain_nb.saved.tail import Tail
from distrain_nb.study.summary import summary_of as summary_of_study
from distrain_nb.ui.compare import ComparisonView
from distrain_nb.ui.experiment_table import experiment_table
from distrain_nb.ui.table import runs_table
from distrain_nb.worker.files.status import State
from tests.browser.jupyter import new_page
from tests.browser.test_overlay import reporting
from tests.server.stored import stored_run
from tests.study.stored import stored_study

A4 = 718  # CSS pixels between margins of 1 cm
LINE = "a line that goes on for longer than a sheet of paper is wide, whichever way it is turned: "
# Cells and lines whose text is beyond the sheet, or cut by themselves or what they stand in.
CUT = """() => [...document.querySelectorAll(".dn-table :is(th, td), .dn-line > span")]
    .filter((cell) => {
        if (!cell.innerText.trim() || cell.closest("details:not([open])")) return false;
        const text = document.createRange();
        text.selectNodeContents(cell);
        const seen = text.getBoundingClientRect();
        if (!seen.width || seen.right > document.documentElement.clientWidth + 1) return true;
        for (let box = cell; box; box = box.parentElement) {
            const { overflowX, overflowY } = getComputedStyle(box);
            const { left, right, top, bottom } = box.getBoundingClientRect();
            const isBeside = seen.right > right + 1 || seen.left < left - 1;
            const isBelow = seen.bottom > bottom + 1 || seen.top < top - 1;
            if (overflowX !== "visible" && isBeside) return true;
            if (overflowY !== "visible" && isBelow) return true;
        }
        return false;
    }).map((cell) => cell.innerText)"""


def bundle_of(store: Store) -> list[dict[str, object]]:
    """A list of runs, an experiment, a comparison, a study and a run, as a notebook keeps them."""
    metrics = {"loss": 1.0, "validation/accuracy_of_the_best_five": 0.4, "rate": 0.1}
    runs = [reporting(store, **metrics) for _ in range(3)]
    failed = stored_run(store, "".join(f"{LINE}{n}\n" for n in range(60)), State.FAILED)
    tail, of_failed = Tail(), Metrics(failed.folder)
    for records in iter(LogReader(failed.folder).records, b""):
        tail.add(records)
    of_failed.read()
    study = StudyTable(summary_of_study(stored_study(store.folder, 60, 60)))
    return [
        runs_table([*runs, failed])._repr_mimebundle_(),
        experiment_table(runs)._repr_mimebundle_(),
        ComparisonView(distrain_nb.compare(*[run.id for run in runs]))._repr_mimebundle_(),
        study._repr_mimebundle_(),
        document.run_bundle(summary_of(failed), tail, of_failed),
    ]


@pytest.mark.parametrize("width", [A4, 500])
def test_no_column_row_or_line_is_cut(
    browser: Browser, home: Path, tmp_path: Path, width: int
) -> None:
    outputs = [nbformat.v4.new_output("display_data", bundle) for bundle in bundle_of(Store(home))]
    cells = [nbformat.v4.new_code_cell("", outputs=[output]) for output in outputs]
    text, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    file = tmp_path / "exported.html"
    file.write_text(text, encoding="utf-8")
    with new_page(browser) as page:
        page.route(re.compile("^https?:"), lambda route: route.abort())
        page.goto(file.as_uri())
        page.set_viewport_size({"width": width, "height": 1000})
        assert page.evaluate(CUT)  # a screen has frames that scroll
        page.emulate_media(media="print")
        assert page.evaluate(CUT) == []
        assert page.locator(".dn-table tbody tr").count() > 4 + 3 + 50
        assert page.locator(".dn-line").count() == 60
