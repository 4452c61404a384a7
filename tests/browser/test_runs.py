"""The live table of runs in JupyterLab, while the kernel is busy and where no server answers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace

from playwright.sync_api import Locator, Page, expect

from distrain_nb.run import Run, Store
from distrain_nb.worker.files.status import Owner, Progress, State, Status
from distrain_nb.worker.metrics import event_format, writer
from tests.browser.jupyter import Lab, OpenNotebook
from tests.browser.test_monitor import BUSY, FOREVER, LOAD, badge, view_of
from tests.browser.waits import becomes
from tests.server.stored import stored_run

OPEN = Callable[..., OpenNotebook]
ENDLESS = FOREVER.format(options="--no-wait")
WIDTHS = (1280, 800, 400)
CUT_OFF = """() => [...document.querySelectorAll(
        ".dn-row-actions button, .dn-bar button, .dn-head *")]
    .filter((it) => it.offsetParent && !it.matches(".dn-unseen"))
    .filter((it) => {
        const box = it.getBoundingClientRect();
        const frame = it.closest("section.distrain").getBoundingClientRect();
        return box.right > frame.right + 1 || box.left < frame.left - 1;
    })
    .map((it) => it.outerHTML)"""
NAMELESS = """() => [...document.querySelectorAll("section.distrain :is(button, input, select)")]
    .filter((it) => !(it.ariaLabel || it.title || it.textContent.trim() || it.labels?.length))
    .map((it) => it.outerHTML)"""


CAUSE = "rank 1 failed first: ValueError: odd"
SIZES = """() => ["table", "tr[data-state]"].map((it) => {
    const box = document.querySelector(`.dn-runs ${it}`).getBoundingClientRect();
    return [box.width, box.height];
})"""
FITS = """() => {
    const frame = document.querySelector(".dn-runs");
    return frame.scrollWidth <= frame.clientWidth;
}"""


def with_runs(lab: Lab) -> list[int]:
    """Have three runs that have ended, each with a metric of its own, and no other; their ids."""
    store, ids = Store(lab.home), []
    for left in map(Run, store.all()):
        if not left.may_be_deleted:
            left.cancel()
        store.delete(left.record)
    for number, state in enumerate((State.SUCCEEDED, State.FAILED, State.SUCCEEDED), start=1):
        run = stored_run(store, "".join(f"line {n}\n" for n in range(number * 10)), state)
        if state is State.FAILED:
            replace(run.status, error=f"{CAUSE}\nmore of it").write(run.folder)
        events = writer._EventFile(run.folder / "tensorboard")
        events.write(event_format.event(1.0, 1, {"loss": 1 / number}))
        ids.append(run.id)
    return ids


def sending(lab: Lab) -> Run:
    """A run whose image is on its way; this process answers for it."""
    progress = Progress("sending the image", 12 << 20, 40 << 20, since=time.time() - 61)
    run = stored_run(Store(lab.home))
    status = Status(State.QUEUED, supervisor=Owner.of(os.getpid()))
    status.enter(State.STARTING, progress=progress).write(run.folder)
    return run


def row(page: Page, number: int) -> Locator:
    return page.locator(f"tr[aria-label^='run {number},']")


def numbers(page: Page) -> list[int]:
    return [int(text) for text in page.locator(".dn-runs td.dn-run").all_inner_texts()]


def test_the_table_answers_while_the_kernel_is_busy(notebook: OPEN, lab: Lab, page: Page) -> None:
    first, second, third = with_runs(lab)
    opened = notebook("table", LOAD, ENDLESS, "%distrain", BUSY["sleep"])
    opened.run_cells(2)
    opened.wait_for_cell(1, 60)
    endless = Store(lab.home).get("last").id
    opened.run_cell(2)
    expect(row(page, endless)).to_contain_text("● running")
    expect(row(page, second)).to_contain_text("✕ failedValueError: odd (rank 1)")
    becomes(page, FITS, True)  # beside JupyterLab's own panel
    expect(row(page, second)).to_contain_text("loss 0.5")
    assert numbers(page) == [endless, third, second, first]
    opened.run_cell(3)
    page.wait_for_function(f"() => !({opened.IDLE})()")

    heading = page.locator(".dn-runs th", has_text="best metric")
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert numbers(page) == [third, second, first, endless]
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert numbers(page) == [first, second, third, endless]

    row(page, first).focus()
    page.keyboard.press("ArrowDown")
    expect(row(page, second)).to_be_focused()
    for number in (second, third):
        page.keyboard.press(" ")
        expect(row(page, number).get_by_role("checkbox")).to_be_checked()
        page.keyboard.press("ArrowDown")
    page.get_by_role("button", name="Compare 2").click()
    compared = page.locator(".dn-panel", has_text="what differs")
    expect(compared.locator("tr", has_text="state")).to_contain_text("✕ failed")
    expect(compared.locator("tr", has_text="cause")).to_contain_text(CAUSE)
    expect(compared.locator(".dn-figure").first).to_be_attached()  # by the server

    field = page.get_by_role("searchbox", name="filter runs by text")
    field.fill("odd valueerror")
    expect(page.locator(".dn-bar", has_text="1 of 4 runs")).to_be_visible()
    assert numbers(page) == [second]
    field.press("Escape")
    page.get_by_role("combobox", name="state").select_option("succeeded")
    expect(page.locator(".dn-bar", has_text="2 of 4 runs")).to_be_visible()
    assert numbers(page) == [first, third]
    page.get_by_role("combobox", name="state").select_option("")

    row(page, endless).get_by_role("button", name="Open").click()
    log = page.locator(".dn-panel", has_text=f"run {endless}: log and charts")
    expect(log.locator(".dn-line").nth(5)).to_be_visible()
    row(page, endless).get_by_role("button", name="Stop").click()
    expect(row(page, endless)).to_contain_text("■ cancelled")
    expect(log.locator(".dn-badge")).to_contain_text("cancelled")

    row(page, third).focus()
    sizes = page.evaluate(SIZES)
    page.keyboard.press("Delete")
    expect(
        page.get_by_role("alertdialog", name=f"Delete run {third} and its files?")
    ).to_be_visible()
    becomes(page, SIZES, sizes)
    page.keyboard.press("Escape")
    expect(row(page, third)).to_be_focused()
    page.keyboard.press("Delete")
    expect(row(page, third).get_by_role("button", name="Keep")).to_be_focused()
    page.get_by_role("button", name=f"Yes, delete run {third}").click()
    expect(row(page, third)).to_have_count(0)
    assert [record.id for record in Store(lab.home).all()] == [endless, second, first]
    # Not by the kernel's status: that is of its subshell, which has answered the page, too.
    expect(page.locator(".jp-InputPrompt").nth(3)).to_have_text("[*]:")

    sent = sending(lab)
    expect(row(page, sent.id)).to_contain_text("◐ starting: sending the image")
    row(page, sent.id).get_by_role("button", name="Open").click()
    progress = page.locator(".dn-panel", has_text=f"run {sent.id}: log and charts").locator(
        ".dn-progress"
    )
    expect(progress).to_contain_text("sending the image: 12 MiB of 40 MiB, 1 min")

    page.evaluate("window.jupyterapp.shell.collapseLeft()")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        becomes(page, CUT_OFF, [])
    becomes(page, NAMELESS, [])
    opened.command("notebook:interrupt-kernel")
    saved = json.dumps(opened.save()["cells"][2], ensure_ascii=False)
    assert "widget-view" not in saved
    assert "✕ failed" in saved
    Status(State.SUCCEEDED).write(sent.folder)


def test_a_table_whose_kernel_has_restarted_opens_compares_and_deletes(
    notebook: OPEN, lab: Lab, page: Page
) -> None:
    first, second, third = with_runs(lab)
    opened = notebook("restarted", LOAD, "%distrain")
    opened.run_cells(2)
    expect(row(page, third)).to_be_visible()
    opened.restart_kernel()
    opened.wait_for_kernel()
    row(page, third).get_by_role("button", name="Open").click()
    panel = page.locator(".dn-panel", has_text=f"run {third}: log and charts")
    expect(panel).to_contain_text("30 lines")
    expect(panel.locator(".dn-figure").first).to_be_attached()
    expect(panel.get_by_role("note")).to_be_hidden()
    panel.get_by_role("button", name="Close").click()
    for number in (second, third):
        row(page, number).get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare 2").click()
    compared = page.locator(".dn-panel", has_text="what differs")
    expect(compared.locator("tr", has_text="cause")).to_contain_text(CAUSE)
    expect(compared.locator(".dn-figure").first).to_be_attached()
    row(page, first).get_by_role("button", name="Delete").click()
    page.get_by_role("button", name=f"Yes, delete run {first}").click()
    expect(row(page, first)).to_have_count(0)

    page.route("**/distrain/**", lambda route: route.abort())
    row(page, second).get_by_role("button", name="Delete").click()
    page.get_by_role("button", name=f"Yes, delete run {second}").click()
    status = page.locator(".dn-bar [role='status']").first
    expect(status).to_contain_text("has ended or restarted")
    page.unroute("**/distrain/**")
    assert second in [record.id for record in Store(lab.home).all()]


def test_without_the_server_the_kernel_answers_when_it_is_free(bare: Lab, bare_page: Page) -> None:
    first, second, third = with_runs(bare)
    page = bare_page
    cells = (LOAD, ENDLESS, BUSY["sleep"], "%distrain")
    opened = OpenNotebook(page, bare, bare.write("bare", *cells))
    opened.run_cells(2)
    opened.wait_for_cell(1, 60)
    endless = Store(bare.home).get("last").id
    expect(view_of(page).locator(".dn-line").nth(5)).to_be_visible()
    page.wait_for_function(opened.IDLE)
    opened.run_cell(2)
    page.wait_for_function(f"() => !({opened.IDLE})()")
    view_of(page).get_by_role("button", name="Stop").click()
    note = view_of(page).locator(".dn-note", has_text="stops this run when that is done")
    expect(note).to_contain_text("jupyter server extension enable")
    expect(note).to_be_visible()
    opened.command("notebook:interrupt-kernel")
    expect(badge(page)).to_contain_text("cancelled")
    expect(note).to_be_hidden()
    view_of(page).get_by_role("searchbox").fill("LINE 3")
    expect(view_of(page).locator(".dn-hits")).to_contain_text("of ")

    opened.run_cell(3)
    expect(row(page, endless)).to_contain_text("■ cancelled")
    row(page, third).get_by_role("button", name="Open").click()
    attached = page.locator(".dn-panel", has_text=f"run {third}: log and charts")
    expect(attached).to_contain_text("30 lines")
    expect(attached.locator(".dn-figure").first).to_be_attached()
    for number in (second, third):
        row(page, number).get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare 2").click()
    compared = page.locator(".dn-panel", has_text="what differs")
    charts = compared.frame_locator("iframe").locator(".scatterlayer .trace")
    expect(charts).to_have_count(2)
    row(page, first).get_by_role("button", name="Delete").click()
    page.get_by_role("button", name=f"Yes, delete run {first}").click()
    expect(row(page, first)).to_have_count(0)
    assert [record.id for record in Store(bare.home).all()] == [endless, third, second]
