"""The monitor in JupyterLab, with real runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.jupyter import OpenNotebook

TRAIN = """%%distrain -n 2 --name digits
import math, os, sys, time
from distrain_nb import log_metrics
rank = int(os.environ["RANK"])
print(f"\\x1b[32mready\\x1b[0m on rank {rank}")
for step in range(STEPS):
    loss = math.exp(-step / 30) + 0.05 * math.sin(step + rank)
    log_metrics({"train/loss": loss, "test/accuracy": 1 - loss / 2}, step=step, every_rank=EVERY)
    if step % 10 == 0:
        print(f"epoch {step // 10}: loss {loss:.4f}")
    sys.stderr.write(f"\\r{step + 1:3d}/{STEPS} " + "█" * (step * 30 // STEPS))
    sys.stderr.flush()
    time.sleep(PAUSE)
sys.stderr.write("\\n")
"""
FOREVER = """%%distrain -n 2 {options} --name endless
import time
for n in range(100_000):
    print("line", n)
    time.sleep(0.05)
"""
FAIL = """%%distrain -n 2
import os
if os.environ["RANK"] == "1":
    raise ValueError("<odd>")
"""
LOAD = "%load_ext distrain_nb"
OPEN = Callable[..., OpenNotebook]


def view_of(page: Page) -> Locator:
    return page.locator(".distrain")


def badge(page: Page) -> Locator:
    return view_of(page).locator(".dn-badge")


def tags(page: Page) -> set[str]:
    return set(view_of(page).locator(".dn-log .dn-tag:visible").all_inner_texts())


def test_a_run_is_shown_while_it_runs(notebook: OPEN) -> None:
    lab = notebook("live", LOAD, "STEPS, PAUSE, EVERY = 200, 0.05, True", TRAIN)
    lab.run_cells(3)
    page, view = lab.page, view_of(lab.page)
    expect(badge(page)).to_contain_text("running", timeout=20_000)
    expect(view.locator(".dn-head")).to_contain_text("this machine · 2 ranks")
    expect(view.locator(".dn-line .ansi-green").first).to_have_text("ready")
    expect(view.locator(".dn-bars .dn-line")).to_have_count(2)
    expect(view.locator(".dn-bars .dn-line").first).to_have_text(re.compile(r"rank \d\s*\d+/200"))
    expect(view.locator(".dn-charts polyline")).to_have_count(4)
    before = view.locator(".dn-time").inner_text()
    expect(view.locator(".dn-time")).not_to_have_text(before)
    expect(page.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(4, timeout=40_000)
    expect(badge(page)).to_contain_text("succeeded", timeout=40_000)


def test_the_rank_filter_works_while_the_kernel_is_busy(notebook: OPEN) -> None:
    lab = notebook("busy", LOAD, FOREVER.format(options="--no-wait"), "while True: pass")
    lab.run_cells(2)
    page = lab.page
    expect(view_of(page).locator(".dn-line").nth(5)).to_be_visible(timeout=20_000)
    lab.run_cell(2)
    count = view_of(page).locator(".dn-count").inner_text()
    view_of(page).get_by_role("button", name="rank 1").click()
    expect(view_of(page).get_by_role("button", name="rank 1")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.wait_for_function("document.querySelectorAll('.dn-log .dn-line').length > 2")
    assert tags(page) == {"rank 1"}
    expect(view_of(page).locator(".dn-count")).not_to_have_text(count)  # it goes on
    lab.command("notebook:interrupt-kernel")
    page.wait_for_function(lab.IDLE)
    view_of(page).get_by_role("button", name="Stop").click()
    expect(badge(page)).to_contain_text("cancelled", timeout=20_000)


BUSY = {
    "python": "while True: pass",
    "sleep": "import time; time.sleep(1000)",
    "numpy": "import numpy as np\nwhile True: np.linalg.svd(np.ones((400, 400)))",
}


@pytest.mark.parametrize("busy", BUSY)
def test_stop_answers_while_another_cell_computes(notebook: OPEN, busy: str) -> None:
    lab = notebook(f"busy-{busy}", LOAD, FOREVER.format(options="--no-wait"), BUSY[busy])
    lab.run_cells(2)
    page = lab.page
    expect(view_of(page).locator(".dn-line").nth(5)).to_be_visible(timeout=20_000)
    page.wait_for_function(lab.IDLE)
    lab.run_cell(2)
    page.wait_for_function(f"() => !({lab.IDLE})()")
    stop = view_of(page).get_by_role("button", name="Stop")
    stop.click()
    expect(stop).to_have_text("Stopping…")
    expect(badge(page)).to_contain_text("cancelled", timeout=20_000)
    assert not page.evaluate(f"({lab.IDLE})()")
    lab.command("notebook:interrupt-kernel")


def test_another_kernel_attaches_to_the_run(notebook: OPEN) -> None:
    run = FOREVER.format(options="--no-wait")
    lab = notebook("restart", LOAD, run, "%load_ext distrain_nb\n%distrain attach last")
    lab.run_cells(2)
    page = lab.page
    expect(view_of(page).locator(".dn-line").nth(5)).to_be_visible(timeout=20_000)
    lab.shut_down_kernel()
    lab.reload()
    lab.run_cell(2)
    attached = page.locator(".distrain").last
    expect(attached.locator(".dn-badge")).to_contain_text("running", timeout=20_000)
    attached.get_by_role("textbox", name="go to line").fill("1")
    attached.get_by_role("textbox", name="go to line").press("Enter")
    expect(attached.locator("[data-row='0']")).to_contain_text("line 0")
    attached.get_by_role("button", name="Stop").click()
    expect(attached.locator(".dn-badge")).to_contain_text("cancelled", timeout=20_000)


def test_stop_answers_while_the_cell_waits(notebook: OPEN) -> None:
    lab = notebook("stop", LOAD, FOREVER.format(options=""))
    lab.run_cells(2)
    page = lab.page
    expect(view_of(page).locator(".dn-line").nth(5)).to_be_visible(timeout=20_000)
    view_of(page).get_by_role("button", name="Stop").click()
    expect(badge(page)).to_contain_text("cancelled", timeout=10_000)
    page.wait_for_function(lab.IDLE)


def test_a_reload_finds_the_run_again(notebook: OPEN) -> None:
    lab = notebook("reload", LOAD, FOREVER.format(options="--no-wait"))
    lab.run_cells(2)
    page = lab.page
    expect(view_of(page).locator(".dn-line").nth(5)).to_be_visible(timeout=20_000)
    lab.save()
    lab.reload()
    expect(badge(page)).to_contain_text("running", timeout=20_000)
    expect(view_of(page).locator(".dn-line").nth(5)).to_be_visible()
    count = view_of(page).locator(".dn-count").inner_text()
    expect(view_of(page).locator(".dn-count")).not_to_have_text(count)
    view_of(page).get_by_role("button", name="Stop").click()
    expect(badge(page)).to_contain_text("cancelled", timeout=20_000)


def test_a_reload_finds_the_log_while_the_kernel_is_busy(notebook: OPEN) -> None:
    lab = notebook("reload-busy", LOAD, FOREVER.format(options="--no-wait"), BUSY["python"])
    lab.run_cells(2)
    page = lab.page
    expect(view_of(page).locator(".dn-line").nth(5)).to_be_visible(timeout=20_000)
    lab.save()
    lab.reload()
    lab.run_cell(2)
    page.wait_for_function(f"() => !({lab.IDLE})()")
    view_of(page).get_by_role("textbox", name="go to line").fill("1")
    view_of(page).get_by_role("textbox", name="go to line").press("Enter")
    expect(view_of(page).locator("[data-row='0']")).to_contain_text("line 0")
    view_of(page).get_by_role("button", name="Stop").click()
    expect(badge(page)).to_contain_text("cancelled", timeout=20_000)
    lab.command("notebook:interrupt-kernel")


def test_what_is_saved_needs_the_kernel_no_more(notebook: OPEN) -> None:
    lab = notebook("saved", LOAD, "STEPS, PAUSE, EVERY = 40, 0.01, True", TRAIN)
    lab.run_cells(3)
    expect(badge(lab.page)).to_contain_text("succeeded", timeout=30_000)
    lab.page.wait_for_function(lab.IDLE)
    saved = json.dumps(lab.save())
    assert len(saved) < 300_000
    assert "widget-view" not in saved
    lab.shut_down_kernel()
    lab.reload()
    expect(badge(lab.page)).to_contain_text("succeeded")
    view_of(lab.page).locator("label", has_text="rank 1").click()
    assert tags(lab.page) == {"rank 1"}
    chart = lab.page.locator(".jp-RenderedPlotly").locator(".plot-img, .trace").first
    expect(chart).to_be_attached(timeout=40_000)  # plotly's renderer starts with a picture


def test_a_failure_is_reported_whole(notebook: OPEN) -> None:
    lab = notebook("failure", LOAD, FAIL)
    lab.run_cells(2)
    expect(badge(lab.page)).to_contain_text("failed", timeout=20_000)
    report = view_of(lab.page).locator(".dn-error")
    expect(report.locator(".dn-cause")).to_have_text("rank 1 failed first: ValueError: <odd>")
    expect(report).to_contain_text("Cell In[2], line 4, in <module>")
