"""The report of a failure leads to the cell that it names."""

from __future__ import annotations

import time

from playwright.sync_api import Browser, expect

from tests.browser.waits import becomes
from tests.browser.widget_page import widget_page

CELL = """<div class="jp-Notebook"><div class="jp-Cell"><div class="jp-InputPrompt">[{count}]:</div>
<div class="cm-content" contenteditable="true"><div class="cm-line">x = 1</div>
<div class="cm-line">raise ValueError</div></div></div></div>"""
ERROR = """rank 1 failed first: ValueError: odd
Cell In[3], line 2
    raise ValueError
Cell In[9], line 1
    x = 1
ValueError: odd"""
LINE = """() => {
    const { anchorNode } = window.getSelection();
    return anchorNode?.textContent;
}"""


def failed(path: str, _: object) -> object:
    now = time.time()
    summary = {
        "id": 1, "name": "odd", "state": "failed", "phase": "", "final": True,
        "where": "this machine", "size": "2 ranks", "begin": now - 9, "end": now, "now": now,
        "steps": [], "labels": {}, "pools": {}, "progress": None, "note": "", "error": ERROR,
    }  # fmt: skip
    log = {"lines": [], "bars": [], "first": 0, "rows": 0, "total": 0, "end": True}
    return summary if path.endswith("summary") else log


def test_a_place_in_a_cell_leads_there(browser: Browser) -> None:
    state = {"run": 1, "home": "", "summary": {}, "batch": {}, "waiting": False, "kernel": ""}
    with widget_page(browser, "run", state, failed, CELL.format(count=3)) as page:
        page.get_by_role("button", name="Cell In[3], line 2").click()
        becomes(page, LINE, "raise ValueError")
        assert page.evaluate("() => document.activeElement.className") == "cm-content"
        gone = page.get_by_role("button", name="Cell In[9], line 1")
        gone.click()
        expect(gone).to_have_attribute("title", "This notebook no longer has this cell")
