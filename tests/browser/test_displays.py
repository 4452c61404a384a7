"""What ranks show, on a page: seen in both themes, and nothing of a stranger's runs or fetches."""

from __future__ import annotations

import base64
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure
from playwright.sync_api import expect

from distrain_nb.run import Store
from tests.browser.jupyter import Lab
from tests.browser.test_accessibility import violations
from tests.browser.test_log_looks import OPEN
from tests.browser.test_monitor import LOAD
from tests.run.test_displays import put
from tests.server.stored import stored_run

# Whatever runs, or is fetched, asks for this.
CODE = "fetch(`${parent.location.origin}/ran`);new Image().src='/ran'"
EVIL = (
    f'</iframe><img src="/ran" onerror="{CODE}"><script>{CODE}</script><link rel="stylesheet"'
    f' href="/ran"><style>@import "/ran";body{{background:url(/ran)}}</style><svg onload="{CODE}">'
    f'</svg><meta http-equiv="refresh" content="0;url=/ran"><iframe src="/ran"></iframe>'
    f'<form action="/ran"></form><object data="/ran"></object><b id="seen">seen</b>'
)


def picture() -> str:
    figure = Figure(figsize=(4, 2))
    figure.subplots().plot([1, 3, 2])
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return base64.b64encode(file.getvalue()).decode()


def written(folder: Path) -> None:
    frame = pd.DataFrame({"epoch": [1, 2], "loss": [0.51, 0.24]})
    evil = {"title": {"text": EVIL}, "images": [{"source": "/ran"}]}
    shown: list[dict[str, Any]] = [
        {"image/png": picture(), "text/plain": EVIL},
        {"text/html": frame._repr_html_()},  # type: ignore[operator]
        {"text/html": pd.DataFrame({EVIL: [EVIL]})._repr_html_()},  # type: ignore[operator]
        {"text/html": frame.style.highlight_max(color="#a6e3a1").to_html()},
        {"text/html": EVIL},
        {"image/svg+xml": f'<svg xmlns="http://www.w3.org/2000/svg" onload="{CODE}"></svg>'},
        {"text/markdown": f"# Title\n\n- item\n\n{EVIL}"},
        {"application/vnd.plotly.v1+json": {
            "data": [{"type": "bar", "x": ["a", "b"], "y": [2, 3], "name": EVIL}], "layout": evil}},
        {"application/vnd.plotly.v1+json": {"data": [{"type": "mesh3d"}]}},
        {"text/latex": EVIL},
    ]  # fmt: skip
    for number, data in enumerate(shown, 1):
        put(folder, json.dumps(data), number)


@pytest.mark.slow
def test_all_is_seen_and_nothing_of_it_runs(shown: OPEN, lab: Lab, axe: str) -> None:
    run = stored_run(Store(lab.home), "a line\n")
    written(run.folder)
    asked: list[str] = []
    blocked: list[str] = []
    opened = shown("displays", LOAD, f"%distrain attach {run.id}")
    page = opened.page
    # What a policy blocks is told as a request that fails; what reaches a server is answered.
    page.on("response", lambda response: asked.append(response.url))
    page.on("requestfailed", lambda request: blocked.append(f"{request.url} {request.failure}"))
    opened.run_cells(2)
    view = page.locator("section[aria-label='shown by the run']")
    parts = view.locator(".dn-display")
    expect(parts).to_have_count(10, timeout=60_000)
    for part in parts.all():
        part.scroll_into_view_if_needed()
        expect(part.locator("> *").first).to_be_attached(timeout=30_000)
    assert page.evaluate("(img) => img.naturalWidth", parts.nth(0).locator("img").element_handle())
    expect(parts.nth(1).locator("td")).to_have_text(["", "1", "0.51", "2", "0.24"], timeout=30_000)
    expect(parts.nth(2).locator("td").last).to_contain_text(EVIL[:40], timeout=30_000)
    expect(parts.nth(4).frame_locator("iframe").locator("#seen")).to_have_text(
        "seen", timeout=30_000
    )
    expect(parts.nth(6).frame_locator("iframe").locator("h1")).to_have_text("Title", timeout=30_000)
    expect(parts.nth(7).frame_locator("iframe").locator(".point")).to_have_count(2, timeout=60_000)
    expect(parts.nth(8)).to_contain_text("a chart of mesh3d isn't drawn here", timeout=30_000)
    for theme in ("Dark", "Light"):
        opened.theme(f"JupyterLab {theme}")
        assert violations(page, axe, "section[aria-label='shown by the run']") == []
        for width in (1280, 800):
            page.set_viewport_size({"width": width, "height": 2600})
            plot = parts.nth(7).frame_locator("iframe").locator(".main-svg").first
            end = time.monotonic() + 30
            room = "(part) => String(part.clientWidth - 24)"  # JupyterLab lays out anew first
            while plot.get_attribute("width") != parts.nth(7).evaluate(room):
                assert time.monotonic() < end
                page.wait_for_timeout(100)
            if folder := os.environ.get("DISPLAY_PICTURES"):
                view.screenshot(path=f"{folder}/displays-{theme}-{width}.png")
    page.set_viewport_size({"width": 1280, "height": 900})
    assert [address for address in asked if "/ran" in address] == []
    assert all(line.endswith("csp") for line in blocked if "/ran" in line)
