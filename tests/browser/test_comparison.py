"""Runs laid over each other: charts that grow, and their tools, with and without the server."""

from __future__ import annotations

import csv
import math
import os
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from distrain_nb.run import Run, Store
from distrain_nb.worker.files.status import Owner, State, Status
from distrain_nb.worker.metrics import event_format, writer
from tests.browser.jupyter import Lab, OpenNotebook
from tests.browser.waits import holds
from tests.server.stored import stored_run

STEPS = 3_000
LINES = "plot.data.filter(({ uid }) => !/ (low|high)$/.test(uid))"  # not the edges of bands
TRACES = f"{LINES}.map(({{ name, x }}) => [name, x.length, x[x.length - 1]])"


@pytest.fixture(params=["server", "kernel"])
def answering(request: pytest.FixtureRequest) -> tuple[Lab, Page]:
    """A server that tells of runs, and one whose pages ask the kernel; a page for it."""
    names = ("lab", "page") if request.param == "server" else ("bare", "bare_page")
    lab, page = map(request.getfixturevalue, names)
    return lab, page


def report(run: Run, steps: range, rate: float) -> None:
    events = writer._EventFile(run.folder / "tensorboard")
    for step in steps:
        values = {"loss": math.exp(-rate * step / STEPS), "rate": rate}
        events.write(event_format.event(time.time(), step, values))


def test_runs_are_compared_in_charts_that_grow(answering: tuple[Lab, Page], tmp_path: Path) -> None:
    lab, page = answering
    store = Store(lab.home)
    slow, fast = stored_run(store), stored_run(store, state=State.RUNNING)
    report(slow, range(STEPS), 2.0)
    report(fast, range(STEPS // 2), 8.0)
    Status(State.RUNNING, supervisor=Owner.of(os.getpid())).write(fast.folder)
    cells = ("%load_ext distrain_nb", f"%distrain compare {slow.id} {fast.id}")
    names = [f"stored #{run.id}" for run in (slow, fast)]
    opened = OpenNotebook(page, lab, lab.write("compared", *cells), same_kernel=True)
    opened.run_cells(2)
    opened.wait_for_cell(1, 60)
    charts = page.locator(".distrain-charts")
    traces = charts.frame_locator("iframe.dn-plot").locator(".scatterlayer .trace")
    expect(traces).to_have_count(3 * 4)  # each line has a band
    frame = charts.locator("iframe").element_handle().content_frame()
    assert frame
    told = frame.evaluate(TRACES)
    assert [name for name, _, _ in told] == [names[0]] * 2 + [names[1]] * 2
    assert [last for _, _, last in told] == [STEPS - 1] * 2 + [STEPS // 2 - 1] * 2

    table = page.get_by_role("table", name="runs compared")
    state, loss = (table.get_by_role("row", name=re.compile(f"^{it}")) for it in ("state", "loss"))
    expect(state.get_by_role("cell")).to_have_text(["✓ succeeded", "● running"])
    expect(table.get_by_role("rowheader")).to_contain_text(["state"])
    expect(loss.get_by_role("cell").nth(1)).to_have_accessible_name(re.compile("best$"))
    heads = table.get_by_role("columnheader")
    loss.get_by_role("button").click()
    expect(loss.get_by_role("rowheader")).to_have_attribute("aria-sort", "ascending")
    expect(heads).to_have_text(["what differs", names[1], names[0]])
    before = loss.get_by_role("cell").first.inner_text()

    report(fast, range(STEPS // 2, STEPS), 8.0)
    failed = Status(State.RUNNING).enter(State.FAILED, error="rank 0 failed: Odd: 1\nmore")
    failed.write(fast.folder)
    expect(state.get_by_role("cell")).to_have_text(["✕ failed", "✓ succeeded"])
    cause = table.get_by_role("row", name=re.compile("^cause"))
    expect(cause.get_by_role("cell").first).to_have_text("rank 0 failed: Odd: 1")
    expect(loss.get_by_role("cell").first).not_to_have_text(before)
    grown = f"{TRACES}.every(([, , last]) => last === {STEPS - 1})"
    holds(frame, grown)
    page.get_by_role("slider", name="Smoothing").press("End")
    averaged = f"{LINES}.length === 8 && {LINES}[1].x.length === 500"
    holds(frame, averaged)
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == f"runs-{slow.id}-{fast.id}-curves.csv"
    download.value.save_as(tmp_path / "all.csv")
    rows = list(csv.DictReader((tmp_path / "all.csv").open()))
    assert {row["run"] for row in rows} == set(names)
    assert len(rows) == 4 * STEPS

    saved = opened.save()["cells"][1]["outputs"]
    assert not any("widget-view" in mime for output in saved for mime in output["data"])
    assert '<path class="dn-line"' in "".join(saved[0]["data"]["text/html"])
