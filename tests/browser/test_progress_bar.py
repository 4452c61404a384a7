"""The bar of a run: below its state and in the list, in both themes, wide and narrow."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.test_accessibility import violations
from tests.browser.test_many_rows import NO_LINES, SUMMARY, listed
from tests.browser.widget_page import widget_page

PROGRESS = {
    "phase": "", "done": 300, "total": 1000, "since": 0.0,
    "unit": "steps", "left": "4 to 9 min left", "source": "tqdm",
}  # fmt: skip
WORDS = "300 of 1,000 steps, 4 to 9 min left"
# As JupyterLab Dark has them.
DARK = """() => {
    document.body.setAttribute("data-jp-theme-light", "false");
    const { style } = document.documentElement;
    style.background = "#212121";
    for (const [name, color] of Object.entries({
        "layout-color1": "#212121", "layout-color2": "#424242", "border-color2": "#616161",
        "ui-font-color1": "#ffffff", "ui-font-color2": "rgba(255, 255, 255, .7)",
    })) style.setProperty(`--jp-${name}`, color);
}"""
NO_OVERFLOW = "() => document.documentElement.scrollWidth <= window.innerWidth"


@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_bar_below_the_state(
    browser: Browser, axe: str, theme: str, width: int, tmp_path: Path
) -> None:
    def told(path: str, _: dict[str, str]) -> object:
        now = time.time()
        summary = {**SUMMARY, "begin": now - 125, "progress": PROGRESS, "now": now}
        return NO_LINES if path.endswith("/log") else summary

    summary = {**SUMMARY, "begin": time.time() - 125, "progress": PROGRESS, "now": time.time()}
    state = {"run": 1, "home": "", "summary": summary, "batch": {}, "waiting": False, "kernel": ""}
    with widget_page(browser, "run", state, told) as page:
        page.set_viewport_size({"width": width, "height": 500})
        if theme == "dark":
            page.evaluate(DARK)
        line = page.locator(".dn-progress:not([hidden])")
        expect(line).to_have_text(WORDS)
        expect(line.get_by_role("progressbar")).to_have_attribute("value", "300")
        assert violations(page, axe, ".distrain") == []
        assert page.evaluate(NO_OVERFLOW)
        page.screenshot(path=tmp_path / f"run-{theme}-{width}.png")


@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_bar_in_the_list(
    browser: Browser, axe: str, theme: str, width: int, tmp_path: Path
) -> None:
    now = time.time()
    live = {"state": "running", "final": False, "end": None}
    waits = {"phase": "waiting", "done": 0, "total": 0, "since": now - 725}
    runs = [
        {**listed(4, now), **live, "progress": PROGRESS},
        {**listed(3, now), **live, "state": "queued", "progress": waits},
        {**listed(2, now), **live, "progress": {**PROGRESS, "total": 0, "done": 3, "left": ""}},
        listed(1, now),
    ]
    with widget_page(browser, "runs", {"home": ""}, lambda *_: {"runs": runs}) as page:
        page.set_viewport_size({"width": width, "height": 500})
        if theme == "dark":
            page.evaluate(DARK)
        row = page.locator("tr[data-state='running']").first
        expect(row.locator(".dn-state")).to_contain_text(f"● running{WORDS}")
        expect(row.get_by_role("progressbar")).to_be_visible()
        expect(page.locator("tr[data-state='queued'] .dn-state")).to_contain_text(
            re.compile(r"for 1\d min")
        )
        assert violations(page, axe, ".distrain") == []
        page.screenshot(path=tmp_path / f"list-{theme}-{width}.png")
