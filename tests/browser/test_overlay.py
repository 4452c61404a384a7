"""Notes, tags and overlaid charts in the list of runs, and a run's file, at three widths."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, Request, expect

from distrain_nb.run import Run, Store
from distrain_nb.ui.export import export
from distrain_nb.worker.metrics import event_format, writer
from tests.browser.jupyter import firefox, new_page
from tests.browser.test_accessibility import violations
from tests.browser.waits import becomes
from tests.browser.widget_page import darken, serving, widget_page
from tests.server.stored import stored_run
from tests.ui.test_export import MARKUP, hostile_run

WIDTHS = (1280, 800, 420)
CUT = "(parts) => parts.filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.innerText)"
OVERFLOW = "(it) => it.scrollWidth - it.clientWidth"


def reporting(store: Store, **rates: float) -> Run:
    run = stored_run(store, "a line\n")
    events = writer._EventFile(run.folder / "tensorboard")
    for step in range(40):
        events.write(
            event_format.event(time.time(), step, {n: r / (step + 1) for n, r in rates.items()})
        )
    return run


def test_ticked_runs_are_overlaid_below_the_table(browser: Browser, home: Path, axe: str) -> None:
    store = Store(home)
    one, other = reporting(store, loss=1.0), reporting(store, loss=2.0, rate=3.0)
    with widget_page(browser, "runs", {"home": ""}, serving(store)) as page:
        overlaid = page.get_by_role("region", name="charts of the ticked runs")
        page.get_by_label(f"compare run {one.id}", exact=True).check()
        expect(overlaid).to_be_hidden()
        page.get_by_label(f"compare run {other.id}", exact=True).check()
        expect(overlaid.get_by_text(f"Metrics of runs {one.id}, {other.id}")).to_be_visible()
        figure = overlaid.locator(".dn-figure")
        expect(figure).to_have_attribute("data-drawn", "")
        names = overlaid.locator(".dn-legend").get_by_role("button")
        expect(names).to_have_text([f"stored #{one.id}", f"stored #{other.id}"])
        expect(overlaid.locator(".dn-chart")).to_have_count(2)
        plot = next(frame for frame in page.frames if frame != page.main_frame)
        traces = plot.evaluate("plot.data.map(({ name, x }) => [name, x.length])")
        assert sorted(traces) == sorted(
            [[f"stored #{one.id}", 40], *[[f"stored #{other.id}", 40]] * 2]
        )
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            becomes(figure, OVERFLOW, 0)
            assert violations(page, axe, "main") == []
        darken(page)
        assert violations(page, axe, "main") == []
        with page.expect_download() as download:
            overlaid.get_by_role("button", name="CSV").click()
        assert len(download.value.path().read_text().splitlines()) == 1 + 3 * 40
        overlaid.get_by_role("button", name="Close").click()
        expect(overlaid).to_be_hidden()
        expect(page.get_by_label(f"compare run {one.id}", exact=True)).not_to_be_checked()


def test_a_comparison_has_charts_and_the_codes_difference_without_a_kernel(
    browser: Browser, home: Path, axe: str
) -> None:
    store = Store(home)
    metrics = ("loss", "validation/accuracy")
    runs = [reporting(store, **dict.fromkeys(metrics, rate)) for rate in (1.0, 2.0)]
    for run, rate in zip(runs, (0.1, 0.2), strict=True):
        (run.folder / "program").mkdir()
        code = f'lr = {rate}\ntext = "{MARKUP}"\n'
        (run.folder / "program" / "main.py").write_text(code, encoding="utf-8")
    with widget_page(browser, "runs", {"home": ""}, serving(store)) as page:
        for run in runs:
            page.get_by_label(f"compare run {run.id}", exact=True).check()
        page.get_by_role("button", name="Compare 2").click()
        panel = page.locator(".dn-panel", has_text="what differs")
        expect(page.get_by_role("region", name="charts of the ticked runs")).to_be_hidden()
        panel.get_by_text("How the code differs").click()
        expect(panel.locator(".dn-removed").last).to_have_text("-lr = 0.1\n")
        expect(panel.locator(".dn-added").last).to_have_text("+lr = 0.2\n")
        expect(panel.locator(".dn-figure")).to_have_attribute("data-drawn", "")
        expect(page.locator("main img, main script")).to_have_count(0)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert panel.locator("th[scope=row]").evaluate_all(CUT) == []
            assert violations(page, axe, "main") == []


def test_note_and_tags_are_edited_in_the_list_and_in_the_head(
    browser: Browser, home: Path, axe: str
) -> None:
    store = Store(home)
    run, other = stored_run(store, "a line\n"), stored_run(store)
    with widget_page(browser, "runs", {"home": ""}, serving(store)) as page:
        page.get_by_role("button", name=f"Note and tags of run {run.id}").click()
        form = page.get_by_role("group", name=f"note and tags of run {run.id}")
        expect(form.get_by_label("Tags")).to_be_focused()
        form.get_by_role("textbox", name="Note").fill(MARKUP)
        form.get_by_label("Tags").fill("good, baseline")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            becomes(form, OVERFLOW, 0)
            assert violations(page, axe, "main") == []
        page.keyboard.press("Enter")
        expect(form).to_have_count(0)
        row = page.locator(f"tr[aria-label^='run {run.id},']")
        expect(row).to_contain_text(f"#good #baseline {MARKUP}")
        expect(row).to_be_focused()
        page.get_by_role("searchbox").fill("baseline")
        expect(page.locator("tr[data-state]")).to_have_count(1)

        page.set_viewport_size({"width": 1280, "height": 900})
        row.get_by_role("button", name="Open").click()
        view = page.get_by_role("region", name=f"run {run.id}", exact=True)
        expect(view.locator(".dn-label")).to_have_text(["good", "baseline"])
        view.get_by_role("button", name="Note and tags").click()
        view.get_by_role("textbox", name="Note").fill("the one")
        page.keyboard.press("Control+Enter")
        expect(view.locator(".dn-about")).to_contain_text("the one")
        expect(row).to_contain_text("#good #baseline the one")
        expect(page.locator("main img, main script")).to_have_count(0)
        darken(page)
        assert violations(page, axe, ".dn-head, .dn-about") == []
    assert (run.note, run.tags, other.note) == ("the one", ("good", "baseline"), "")


def silent(page: Page, file: Path) -> list[str]:
    """Open the file from disk; everything that the page then asks for, and what it complains of."""
    said: list[str] = []

    def note(request: Request) -> None:
        if request.url != file.as_uri():
            said.append(request.url)

    page.on("request", note)
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("console", lambda message: said.append(message.text))
    page.goto(file.as_uri())
    return said


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_runs_file_opens_from_disk(
    browser: Browser, home: Path, tmp_path: Path, axe: str, scheme: str
) -> None:
    file = export(hostile_run(home, 40), tmp_path / "run.html")
    with new_page(browser) as page:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        said = silent(page, file)
        expect(page.locator(".dn-log .dn-line")).to_have_count(42)
        expect(page.locator(".dn-area svg")).to_have_count(3)
        for summary in page.locator("details:not([open]) > summary").all():
            summary.click()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            becomes(page, "() => document.documentElement.scrollWidth - innerWidth <= 0", True)
            assert violations(page, axe, "html") == []
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]
        assert said == []


def test_a_runs_file_opens_in_firefox(playwright: Playwright, home: Path, tmp_path: Path) -> None:
    file = export(hostile_run(home, 40), tmp_path / "run.html")
    with firefox(playwright) as browser, new_page(browser) as page:
        said = silent(page, file)
        expect(page.locator(".dn-log .dn-line")).to_have_count(42)
        expect(page.locator(".dn-area svg")).to_have_count(3)
        expect(page.locator("h1")).to_have_text(re.compile("stored #"))
        assert said == []
