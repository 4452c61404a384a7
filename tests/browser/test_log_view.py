"""The log of a run in the page: all of it can be reached, searched and filtered."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from distrain_nb.config import fingerprint
from tests.browser.jupyter import Lab, OpenNotebook
from tests.browser.test_monitor import LOAD, badge, view_of

OPEN = Callable[..., OpenNotebook]
LINES = 200_000
# Again and again: a view that has just been moved in the page has no place to keep yet.
TO_THE_TOP = """(log) => {
    log.scrollTop = 0;
    return log.querySelector("[data-row='0']");
}"""
TAKE_OUT = """(view) => {
    window.__taken = view;
    window.__parent = view.parentElement;
    view.remove();
}"""
BIG = f"""%%distrain -n 2 --name big
import os, sys, traceback
rank = int(os.environ["RANK"])
def check(value):
    raise ValueError(f"odd value {{value}}")
for n in range({LINES // 2}):
    print(f"step {{n}} of rank {{rank}}")
    if n == 50_000 and rank == 1:
        print("a needle [in] the hay", flush=True)
        try:
            check(n)
        except ValueError:
            sys.stderr.write(traceback.format_exc())  # at once, with no line of rank 0 between
"""


def log(page: Page) -> Locator:
    return view_of(page).locator(".dn-log")


def texts(page: Page) -> list[str]:
    """What the rows in sight say, from the top."""
    return list(
        page.evaluate(
            """() => {
                const log = document.querySelector(".distrain .dn-log");
                const box = log.getBoundingClientRect();
                const seen = [...log.querySelectorAll(".dn-line")].filter((row) => {
                    const at = row.getBoundingClientRect();
                    return at.top >= box.top - 1 && at.bottom <= box.bottom + 1;
                });
                return seen.map((row) => row.lastElementChild.textContent);
            }"""
        )
    )


def count(page: Page) -> Locator:
    return view_of(page).locator(".dn-count")


@pytest.fixture(scope="module")
def big_run(shared_page: Page, lab: Lab) -> OpenNotebook:
    """A page with a finished run of many lines; its last cell shows it anew."""
    opened = OpenNotebook(shared_page, lab, lab.write("big", LOAD, BIG, "%distrain show big"))
    opened.run_cells(2)
    expect(badge(shared_page)).to_contain_text("succeeded", timeout=120_000)
    opened.wait_for_cell(1, 60)
    shared_page.evaluate("() => { window.jupyterapp.commands.execute('notebook:delete-cell'); }")
    return opened


@pytest.fixture
def big(big_run: OpenNotebook) -> OpenNotebook:
    """The same as it was at first."""
    big_run.command("notebook:clear-all-cell-outputs")
    expect(view_of(big_run.page)).to_have_count(0)
    big_run.run_cell(1)
    expect(count(big_run.page)).to_have_text(re.compile(r"^200,0\d\d lines"))
    return big_run


def test_the_whole_log_can_be_reached(big: OpenNotebook) -> None:
    page = big.page
    expect(log(page)).to_contain_text(f"step {LINES // 2 - 1} of rank")
    page.wait_for_function(TO_THE_TOP, arg=log(page).element_handle())
    expect(log(page).locator("[data-row='0']")).to_contain_text("step 0 of rank")
    log(page).press("End")
    expect(log(page)).to_contain_text(f"step {LINES // 2 - 1} of rank")
    log(page).press("PageUp")
    expect(view_of(page).get_by_role("button", name="Latest")).to_be_visible()
    view_of(page).get_by_role("textbox", name="go to line").fill("60,000")
    view_of(page).get_by_role("textbox", name="go to line").press("Enter")
    expect(log(page).locator(".dn-current[data-row='59999']")).to_contain_text("step")
    view_of(page).get_by_role("button", name="Latest").click()
    expect(log(page)).to_contain_text(f"step {LINES // 2 - 1} of rank")


def test_search_looks_through_everything(big: OpenNotebook) -> None:
    page, hits = big.page, view_of(big.page).locator(".dn-hits")
    log(page).press("/")
    field = view_of(page).get_by_role("searchbox")
    expect(field).to_be_focused()
    field.fill("NEEDLE [in]")
    expect(hits).to_have_text("1 of 1")
    expect(log(page).locator(".dn-current mark")).to_have_text("needle [in]")
    view_of(page).get_by_role("button", name="Match upper and lower case").click()
    expect(hits).to_have_text("no match")
    field.fill("step 77[0-9]{3} ")
    expect(hits).to_have_text("no match")
    view_of(page).get_by_role("button", name="Regular expression").click()
    expect(hits).to_have_text(re.compile(r"[\d,]+ of 2,000"))
    field.press("Enter")
    expect(log(page).locator(".dn-current mark")).to_have_text(re.compile(r"step 77\d{3} "))
    field.fill("step (")
    expect(hits).to_have_class(re.compile("dn-bad"))


def test_filters_count_and_show_only_what_passes(big: OpenNotebook) -> None:
    page = big.page
    view_of(page).get_by_role("button", name="rank 1").click()
    expect(count(page)).to_have_text(re.compile(r"100,0\d\d of 200,0\d\d lines"))
    page.wait_for_function("document.querySelectorAll('.dn-log .dn-line').length > 5")
    assert set(log(page).locator(".dn-tag").all_inner_texts()) == {"rank 1"}
    view_of(page).get_by_role("combobox", name="stream").select_option("e")
    expect(count(page)).to_have_text(re.compile(r"^\d of 200,0\d\d lines"))
    expect(log(page).locator(".dn-line").first).to_contain_text("Traceback")
    view_of(page).get_by_role("button", name="all", exact=True).click()
    view_of(page).get_by_role("combobox", name="stream").select_option("")
    expect(count(page)).to_have_text(re.compile(r"^200,0\d\d lines"))


def test_tracebacks_are_folded_until_they_are_opened(big: OpenNotebook) -> None:
    page = big.page
    view_of(page).get_by_role("button", name="First error").click()
    head = log(page).locator(".dn-current")
    expect(head).to_contain_text("Traceback (most recent call last)")
    expect(head.locator(".dn-fold")).to_contain_text("lines")
    head.locator(".dn-fold").click()
    expect(log(page).locator(".dn-cell").first).to_contain_text("Cell In[")
    expect(log(page).locator(".dn-raised")).to_have_text("ValueError: odd value 50000")
    head.locator(".dn-fold").click()
    expect(log(page).locator(".dn-cell")).to_have_count(0)


def test_times_copy_and_download(big: OpenNotebook) -> None:
    page = big.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    view_of(page).get_by_role("button", name="Time").click()
    expect(log(page).locator("time").first).to_have_text(re.compile(r"\d\d:\d\d:\d\d\.\d{3}"))
    shown = texts(page)
    view_of(page).get_by_role("button", name="Copy").click()
    expect(view_of(page).locator(".dn-bar")).to_contain_text("copied")
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert [line.split("] ", 1)[1] for line in copied if line][-len(shown) :] == shown
    with page.expect_download() as told:
        view_of(page).get_by_role("button", name="Download").click()
    lines = told.value.path().read_text().splitlines()
    assert len(lines) > LINES
    assert sum(line.startswith("[rank 1] step ") for line in lines) == LINES // 2


def watch(lab: Lab, run: str) -> None:
    """As a page does that reads this run: the kernel sends no lines then."""
    asked = {"watching": "1", "home": fingerprint(lab.home)}
    headers = {"Authorization": f"token {lab.token}"}
    address = f"{lab.url}distrain/runs/{run}/summary"
    httpx.get(address, params=asked, headers=headers).raise_for_status()


def test_what_comes_while_the_view_is_moved_is_shown(big: OpenNotebook, lab: Lab) -> None:
    """As where a page takes cells out of sight, or an output another's place."""
    page, asked = big.page, re.compile(r"/distrain/runs/\d+/log\?")
    run = str(view_of(page).get_attribute("aria-label")).removeprefix("run ")
    held: list[Route] = []
    page.route(asked, lambda route: held.append(route))
    big.command("notebook:clear-all-cell-outputs")
    expect(view_of(page)).to_have_count(0)
    watch(lab, run)
    big.run_cell(1)
    expect(view_of(page).locator(".dn-empty")).to_have_text("reading the log…")
    big.wait_for_cell(1, 60)
    while not held:
        page.wait_for_timeout(50)
    page.wait_for_timeout(1000)  # the view comes to rest
    view_of(page).evaluate(TAKE_OUT)
    with page.expect_response(asked):
        for route in held:
            route.continue_()
    page.unroute(asked)
    page.wait_for_timeout(200)  # nothing is drawn now
    page.evaluate("() => window.__parent.append(window.__taken)")
    expect(count(page)).to_have_text(re.compile(r"^200,0\d\d lines"))
    expect(log(page)).to_contain_text(f"step {LINES // 2 - 1} of rank")
