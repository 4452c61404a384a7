"""The monitor in JupyterLab, with real runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.jupyter import OpenNotebook
from tests.browser.test_chart_looks import COUNT_FIGURES, FIGURES_SEEN

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
BUSY = {
    "python": "while True: pass",
    "sleep": "import time; time.sleep(1000)",
    "numpy": "import numpy as np\nwhile True: np.linalg.svd(np.ones((400, 400)))",
}
SAME_COUNTS = """() => {
    const [, one, other] = [...document.querySelectorAll(".dn-count")].map((it) => it.textContent);
    return one === other && one.endsWith(" lines");
}"""
# Each time right after lines were drawn, when the page has yet to hear where the scroll bar is.
MOVE = """() => {
    const view = document.querySelector("section.distrain");
    const make = () => view.parentNode.appendChild(document.createElement("div"));
    const places = [make(), make()];
    window.__moves = 0;
    const drawn = new MutationObserver(() => {
        places[window.__moves % 2].append(view);
        if (++window.__moves === 6) drawn.disconnect();
    });
    drawn.observe(view.querySelector(".dn-rows"), { childList: true });
}"""
# What the button says then, and from the click until the page shows another state than `running`.
TIME_THE_ANSWER = """(view) => {
    let clicked = 0;
    view.addEventListener("click", () => { clicked = performance.now(); }, { capture: true });
    view.addEventListener("click", (event) => { window.__said = event.target.textContent; });
    new MutationObserver((_, observer) => {
        if (!clicked || view.querySelector(".dn-badge").textContent.includes("running")) return;
        window.__answered = performance.now() - clicked;
        observer.disconnect();
    }).observe(view, { subtree: true, childList: true, characterData: true });
}"""
# A page that asks as often as at first has sent 32.
COUNT_QUESTIONS = """async () => {
    performance.clearResourceTimings();
    await new Promise((resolve) => setTimeout(resolve, 5000));
    const asked = performance.getEntriesByType("resource").map(({ name }) => name);
    return asked.filter((name) => name.includes("/distrain/runs/")).length;
}"""
# ipywidgets looks for a model for two seconds, and later draws it when the kernel has told of it.
# What the kernel tells in the last moment of those two is not seen: "model not found".
WIDGETS_ARE_AWAITED = "() => new Promise((resolve) => setTimeout(resolve, 5000))"
OPEN = Callable[..., OpenNotebook]


def view_of(page: Page) -> Locator:
    return page.locator("section.distrain")


def badge(page: Page) -> Locator:
    return view_of(page).locator(".dn-badge")


def count_of(view: Locator) -> Locator:
    return view.locator(".dn-count")


def go_to_line(view: Locator, number: int) -> None:
    view.get_by_role("textbox", name="go to line").fill(str(number))
    view.get_by_role("textbox", name="go to line").press("Enter")


def tags(page: Page) -> set[str]:
    return set(view_of(page).locator(".dn-log .dn-tag:visible").all_inner_texts())


def test_a_run_is_shown_while_it_runs_and_saved_for_good(notebook: OPEN) -> None:
    opened = notebook("live", LOAD, "STEPS, PAUSE, EVERY = 200, 0.05, True", TRAIN)
    opened.run_cells(3)
    page, view = opened.page, view_of(opened.page)
    expect(badge(page)).to_contain_text("running")
    expect(view.locator(".dn-head")).to_contain_text("this machine · 2 ranks")
    expect(view.locator(".dn-line .ansi-green").first).to_have_text("ready")
    expect(view.locator(".dn-bars .dn-line")).to_have_count(2)
    expect(view.locator(".dn-bars .dn-line").first).to_have_text(re.compile(r"rank \d\s*\d+/200"))
    expect(page.locator(".dn-figure").first.locator("path.dn-line")).to_have_count(4)
    expect(page.locator(".dn-figure").filter(visible=True)).to_have_count(1)
    before = view.locator(".dn-time").inner_text()
    expect(view.locator(".dn-time")).not_to_have_text(before)
    page.locator(".dn-figure").first.scroll_into_view_if_needed()
    charts = page.frame_locator("iframe.dn-plot").first
    expect(charts.locator(".scatterlayer .trace")).to_have_count(4)
    page.evaluate(COUNT_FIGURES)
    expect(badge(page)).to_contain_text("succeeded")

    opened.wait_for_cell(2, 60)
    page.wait_for_function(opened.IDLE)
    saved = json.dumps(opened.save())
    assert len(saved) < 300_000
    assert "widget-view" not in saved
    assert page.evaluate(FIGURES_SEEN) == [1], "the document's is seen instead of the live one"
    opened.shut_down_kernel()
    opened.reload()
    expect(badge(page)).to_contain_text("succeeded")
    view.locator("label", has_text="rank 1").click()
    assert tags(page) == {"rank 1"}
    line = view.locator(".dn-log .dn-line").last
    expect(line).to_have_css("white-space", "pre")
    view.locator("label", has_text="Wrap").click()
    expect(line).to_have_css("white-space", "pre-wrap")
    expect(page.locator(".dn-figure").first.locator("path.dn-line")).to_have_count(4)


@pytest.mark.stands_for("a run in the page")
def test_filter_and_stop_answer_while_another_cell_computes(notebook: OPEN) -> None:
    opened = notebook("busy", LOAD, FOREVER.format(options="--no-wait"), *BUSY.values())
    page, view = opened.page, view_of(opened.page)
    opened.run_cell(0)
    for cell, _ in enumerate(BUSY, start=2):
        opened.run_cell(1)
        expect(badge(page)).to_contain_text("running")
        expect(view.locator(".dn-line").nth(5)).to_be_visible()
        page.wait_for_function(opened.IDLE)
        opened.run_cell(cell)
        page.wait_for_function(f"() => !({opened.IDLE})()")
        count = count_of(view).inner_text()
        view.get_by_role("button", name="rank 1").click()
        page.wait_for_function("document.querySelectorAll('.dn-log .dn-line').length > 2")
        assert tags(page) == {"rank 1"}
        expect(count_of(view)).not_to_have_text(count)  # it goes on
        stop = view.get_by_role("button", name="Stop")
        view.evaluate(TIME_THE_ANSWER)
        stop.click()
        expect(badge(page)).to_contain_text("cancelled")
        assert page.evaluate("() => window.__said") == "Stopping…"
        print(f"\nStop was answered after {page.evaluate('() => window.__answered'):.0f} ms")
        assert not page.evaluate(f"({opened.IDLE})()")
        opened.command("notebook:interrupt-kernel")
        page.wait_for_function(opened.IDLE)


def test_a_run_is_found_again_by_reloads_and_by_another_kernel(notebook: OPEN) -> None:
    run = FOREVER.format(options="--no-wait")
    opened = notebook("reload", LOAD, run, BUSY["python"], f"{LOAD}\n%distrain attach last")
    page, view = opened.page, view_of(opened.page)
    opened.run_cells(2)
    expect(view.locator(".dn-line").nth(5)).to_be_visible()
    opened.save()
    opened.reload()
    expect(badge(page)).to_contain_text("running")
    expect(view.locator(".dn-line").nth(5)).to_be_visible()
    count = count_of(view).inner_text()
    expect(count_of(view)).not_to_have_text(count)

    opened.run_cell(2)
    page.wait_for_function(f"() => !({opened.IDLE})()")
    go_to_line(view, 1)
    expect(view.locator("[data-row='0']")).to_contain_text("line 0")
    opened.reload(busy=True)
    expect(page.locator(".jp-OutputArea")).to_contain_text(["Loading widget"])
    page.evaluate(WIDGETS_ARE_AWAITED)
    opened.command("notebook:interrupt-kernel")  # the kernel tells the page of its widgets
    expect(badge(page)).to_contain_text("running")

    opened.shut_down_kernel()
    opened.reload()
    opened.run_cell(3)
    attached = view.last
    expect(attached.locator(".dn-badge")).to_contain_text("running")
    go_to_line(attached, 1)
    expect(attached.locator("[data-row='0']")).to_contain_text("line 0")
    attached.get_by_role("button", name="Stop").click()
    expect(attached.locator(".dn-badge")).to_contain_text("cancelled")


SAVES = """%%distrain --no-wait
import os, time
from distrain_nb import on_stop
path = os.environ["AIP_CHECKPOINT_DIR"] + "/step"
print("saved before:", os.path.exists(path), flush=True)
on_stop(lambda: open(path, "w").close())
while True:
    time.sleep(0.1)"""


def test_a_run_that_has_saved_is_resumed_by_its_button(notebook: OPEN) -> None:
    opened = notebook("resume", LOAD, SAVES, "%distrain attach last")
    page, view = opened.page, view_of(opened.page)
    opened.run_cells(2)
    expect(view.locator(".dn-line")).to_contain_text(["saved before: False"])
    resume = view.get_by_role("button", name="Resume")
    expect(resume).to_be_hidden()
    page.wait_for_timeout(3000)  # until its page has seen that nothing comes
    assert page.evaluate(COUNT_QUESTIONS) <= 15
    view.get_by_role("button", name="Stop").click()
    expect(badge(page)).to_contain_text("cancelled")
    resume.click()
    goes_on = re.compile(r"Run \d+ \(run-\d+\) goes on from what this run has saved")
    expect(view).to_contain_text(goes_on)
    expect(view).to_contain_text("stopped after saving")
    opened.run_cell(2)
    expect(view.nth(1).locator(".dn-line")).to_contain_text(["saved before: True"])
    view.nth(1).get_by_role("button", name="Stop").click()
    expect(view.nth(1).locator(".dn-badge")).to_contain_text("cancelled")


def test_an_interrupt_two_monitors_of_one_run_and_a_failure(notebook: OPEN) -> None:
    waiting, other = FOREVER.format(options=""), FOREVER.format(options="--no-wait")
    opened = notebook("two", LOAD, waiting, other, "%distrain attach last", FAIL)
    page, views = opened.page, view_of(opened.page)
    opened.run_cells(2)
    expect(views.locator(".dn-line").nth(5)).to_be_visible()
    page.evaluate(MOVE)  # as when an output takes another's place
    page.wait_for_function("window.__moves === 6")
    expect(views.get_by_role("button", name="Latest")).to_be_hidden()
    views.get_by_role("searchbox").focus()
    opened.command("notebook:interrupt-kernel")  # which cancels what the cell waits for
    expect(badge(page)).to_contain_text("cancelled")
    opened.wait_for_cell(1, 60)
    expect(views.get_by_role("searchbox")).to_be_focused()  # though the output has been replaced

    opened.run_cell(2)
    opened.run_cell(3)
    for view in (views.nth(1), views.nth(2)):
        expect(view.locator(".dn-line").nth(5)).to_be_visible()
    views.nth(2).get_by_role("button", name="Stop").click()
    for view in (views.nth(1), views.nth(2)):
        expect(view.locator(".dn-badge")).to_contain_text("cancelled")
    page.wait_for_function(SAME_COUNTS)

    opened.run_cell(4)
    expect(views.last.locator(".dn-badge")).to_contain_text("failed")
    report = views.last.locator(".dn-error")
    expect(report.locator(".dn-cause")).to_have_text("rank 1 failed first: ValueError: <odd>")
    expect(report).to_contain_text("line 4, in <module>")
