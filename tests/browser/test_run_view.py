"""A run's view where something is late: an answer, or the end after Stop."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import distrain_nb
from distrain_nb.run import Store
from tests.browser.widget_page import serving, widget_page
from tests.server.stored import many_ranks, stored_run

NOTHING = {"home": "", "summary": {}, "batch": {}, "waiting": False, "kernel": ""}
STUBBORN = """import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("a line", flush=True)
time.sleep(600)"""
# Where head, tools and log begin, and how high they are.
PLACES = """() => [...document.querySelectorAll(".dn-head, .dn-bar, .dn-log")].map((part) => {
    const { top, height } = part.getBoundingClientRect();
    return [part.className, top, height];
})"""


def test_a_log_whose_first_answer_fails_is_read_though_the_run_has_ended(
    browser: Browser, home: Path
) -> None:
    store = Store(home)
    run = stored_run(store, "a line\n").id
    told, asked = serving(store), []

    def answer(path: str, query: dict[str, str]) -> object:
        if path.endswith("/log"):
            asked.append(path)
            if len(asked) == 1:
                return {}
        return told(path, query)

    with widget_page(browser, "run", {**NOTHING, "run": run}, answer) as page:
        expect(page.locator(".dn-badge")).to_contain_text("succeeded")
        expect(page.get_by_text("no output", exact=True)).to_be_hidden()
        expect(page.get_by_text("a line")).to_be_visible()


def test_one_of_many_ranks_is_found_by_its_number(browser: Browser, home: Path) -> None:
    run = many_ranks(Store(home), 1000)
    with widget_page(browser, "run", {**NOTHING, "run": run}, serving(Store(home))) as page:
        field = page.get_by_label("show the lines of")
        expect(field).to_have_attribute("placeholder", "all 1000")
        field.fill("777")
        field.press("Enter")
        expect(page.locator(".dn-count")).to_have_text("1 of 1,000 lines")
        expect(page.locator(".dn-line")).to_have_text("rank 777line of 777")
        field.fill("rank 1000")
        field.press("Enter")
        expect(page.get_by_text("no process is called rank 1000")).to_be_visible()
        field.fill("")
        expect(page.locator(".dn-count")).to_have_text("1,000 lines")


@pytest.mark.parametrize("width", [1280, 800, 420])
def test_nothing_moves_when_stop_is_clicked(browser: Browser, home: Path, width: int) -> None:
    run = distrain_nb.submit(STUBBORN, name="stubborn", ranks_per_replica=2)
    told = serving(Store(home))

    def answer(path: str, query: dict[str, str]) -> object:
        if not path.endswith("/cancel"):
            return told(path, query)
        run.cancel()
        return {}

    def places(page: Page) -> object:
        return page.evaluate(PLACES)

    with widget_page(browser, "run", {**NOTHING, "run": run.id}, answer) as page:
        page.set_viewport_size({"width": width, "height": 900})
        expect(page.locator(".dn-line")).to_have_count(2)
        before = places(page)
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("button", name="Stopping…")).to_be_visible()
        assert places(page) == before
        expect(page.locator(".dn-badge")).to_contain_text("stopping")
        assert places(page) == before
