"""A notebook that an attacker has made, opened by somebody who doesn't trust it.

Nothing in it runs, and our part of the page asks for nothing but our own addresses, with whole
numbers. What outputs show where they are no runs of the reader is JupyterLab's and nbconvert's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import Page, Request, expect

from distrain_nb.run import Store
from distrain_nb.saved.document import RUN_TYPE, STUDY_TYPE
from tests.browser.jupyter import KERNEL, NOTEBOOK_7, Lab
from tests.server.stored import stored_run

FILE = "attack.ipynb"
# Whatever runs asks for this.
CODE = "fetch(`${location.origin}/ran`)"
MARKUP = f'<img src="data:," onerror="{CODE}"><script>{CODE}</script>'
ODD = f'<i style="left:1px;background:url(/ran)" onclick="{CODE}" class="jp-Dialog dn-odd"></i>'
SHEET = (
    f'<div class="dn-sheet" id="main" style="background:url(/ran);--dn-left:44px">{MARKUP}{ODD}'
    '<div class="dn-chart" data-tag="t" data-commandlinker-command="x"><div class="dn-title">'
    f'<b>seen</b></div><div class="dn-area"><svg viewBox="0 0 9 9"><path d="M0 0h9" '
    f'stroke="url(/ran)"/><a href="javascript:{CODE}"><text>a</text></a><foreignObject>{MARKUP}'
    f'</foreignObject><style>@import "/ran"</style></svg></div></div></div>'
)
BUILT = (
    '<div class="dn-sheet" style="--dn-left: 44px;"><i class="dn-odd" style="left: 1px;"></i>'
    '<div class="dn-chart" data-tag="t"><div class="dn-title"><b>seen</b>'
    '<button type="button" data-lm-suppress-shortcuts="true" class="dn-pin" aria-pressed="false"'
    ' aria-label="pin t" title="Show first, in all runs"></button></div>'
    '<div class="dn-area"><svg viewBox="0 0 9 9"><path d="M0 0h9"></path></svg></div></div></div>'
)
TRACE = {
    "type": "scatter", "name": MARKUP, "xaxis": "x", "yaxis": "y",
    "line": {"color": "#123456", "width": 2}, "marker": {"size": 5, "colorbar": MARKUP},
}  # fmt: skip
SHAPE = {
    "keys": [["", "t"]],
    "traces": [TRACE],
    "newest": {"t": MARKUP},
    "dots": 9,
    "thinned": False,
}
LINE = {"step": "AAAAAA==", "wide": False, "value": "AAAAAA==", "seconds": "AAAAAA==", "began": 0,
        "low": "", "high": ""}  # fmt: skip
DRAWN = {"sheet": SHEET, "shape": SHAPE, "lines": [LINE]}
SUMMARY = {
    "id": 1, "name": MARKUP, "state": "running", "phase": MARKUP, "final": False,
    "where": MARKUP, "size": "", "begin": 0, "end": None, "now": 9e9, "steps": [], "labels": {},
    "pools": {}, "progress": None, "note": MARKUP, "error": MARKUP,
}  # fmt: skip
# What the page would take for answers, had it the notebook for a run or a study.
ANSWERS = {
    **{name: value for name, value in SUMMARY.items() if name != "begin"},
    "metrics": DRAWN, "times": None,
    "resources": None, "media": None, "seen": "1", "lines": [], "bars": [], "rows": 0,
    "first": 0, "total": 0,
    "summary": {**SUMMARY, "trials": [], "names": [], "goals": [], "front": []},
    "charts": {"sheet": SHEET, "axes": [], "shares": {}},
}  # fmt: skip
LEADS_HERE = f"../../files/{FILE}?"
OWN = re.compile(
    r"/distrain/(runs|studies|sessions)(/[1-9][0-9]{0,15}/[a-z-]+)?\?([a-z]+=-?[0-9a-z]*&)*home=[0-9a-f]*"
)


def references(own: dict[str, Any]) -> list[dict[str, Any]]:
    """Outputs that name a run or study, by which the page's addresses are made."""
    numbers = (
        LEADS_HERE,
        [LEADS_HERE],
        f"1/../../../files/{FILE}?",
        f"%2e%2e/%2E%2e/files/{FILE}?",
        f"..\\..\\files\\{FILE}?",
        "..//evil.invalid/?",
        "1/cancel?",
        "1",
        {"run": 1},
        True,
        1.5,
        -1,
        0,
        1e300,
        None,
    )
    runs = [{"run": number, "home": "", "part": "run"} for number in numbers]
    runs += [{**own, "home": home} for home in (MARKUP, ["a"], {"a": 1}, "ab&run=2", None)]
    runs += [{**own, "created": at} for at in (MARKUP, None, str(own["created"]))]
    runs += [{**own, "part": MARKUP}, {**own, "key": MARKUP, "summary": SUMMARY}]
    studies = [{"study": number, "home": ""} for number in numbers]
    return [
        *({RUN_TYPE: each} for each in runs),
        *({STUDY_TYPE: each} for each in studies),
        *({RUN_TYPE: each} for each in (LEADS_HERE, [1], None, 1)),
    ]


def beside() -> list[dict[str, Any]]:
    """What an output may have besides, which is shown where it is no run of the reader."""
    live = f'<div data-distrain-live="x" class="distrain">{MARKUP}</div>'
    return [
        {RUN_TYPE: {"run": LEADS_HERE, "home": ""}, "text/html": live},
        {RUN_TYPE: {"run": 7, "home": "", "created": 7}, "text/html": MARKUP},
        {STUDY_TYPE: {"study": 1}, "application/javascript": CODE, "text/plain": "a study"},
        {STUDY_TYPE: {"study": 1}, "image/svg+xml": f"<svg onload='{CODE}'/>"},
    ]


def write(lab: Lab) -> None:
    """Write the notebook below the server's folder, as it came by mail."""
    run = stored_run(Store(lab.home), "printed\n").record
    own = {"run": run.id, "home": "", "created": run.created, "part": "run"}
    outputs = [
        nbformat.v4.new_output("display_data", data=data) for data in (*references(own), *beside())
    ]
    cell = nbformat.v4.new_code_cell("the_cell", outputs=outputs)
    made = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": KERNEL})
    (lab.folder / FILE).write_text(json.dumps({**made, **ANSWERS}), encoding="utf-8")


@pytest.fixture
def visitor(shared_extended_page: Page) -> Iterator[Page]:
    yield shared_extended_page
    shared_extended_page.unroute_all()


@pytest.fixture
def asked(visitor: Page) -> Iterator[list[Request]]:
    """All that the page asks for."""
    found: list[Request] = []

    def note(request: Request) -> None:
        found.append(request)

    visitor.on("request", note)
    yield found
    visitor.remove_listener("request", note)


def strange(asked: list[Request], lab: Lab) -> list[str]:
    """Of what was asked for, what no innocent notebook asks for."""
    host, found = urlsplit(lab.url).netloc, []
    for request in asked:
        address = urlsplit(request.url)
        if address.scheme in ("data", "blob", "about"):
            continue
        where = f"{address.path}?{address.query}"
        is_odd = address.netloc != host or address.path.startswith(("/files", "/ran"))
        if "/distrain/" in where:
            is_odd = is_odd or request.method != "GET" or not OWN.fullmatch(where)
        if is_odd:
            found.append(f"{request.method} {request.url}")
    return found


@pytest.mark.parametrize("notebooks", ["lab/tree", NOTEBOOK_7.notebooks])
def test_nothing_runs_and_only_our_own_addresses_are_asked(
    extended: Lab, visitor: Page, asked: list[Request], notebooks: str
) -> None:
    """What the server tells of the reader's run is hostile too: a drawing is built anew of it."""
    write(extended)
    told = {
        "seen": "1",
        "end": True,
        "metrics": DRAWN,
        "times": None,
        "resources": None,
        "media": None,
    }
    visitor.route("**/distrain/runs/*/charts?*", lambda route: route.fulfill(json=told))
    visitor.goto(f"{extended.url}{notebooks}/{FILE}?token={extended.token}&reset")
    area = visitor.locator(".jp-OutputArea")
    own = area.locator("section.distrain")
    expect(own.locator(".dn-badge")).to_have_text("✓succeeded")
    expect(own.locator(".dn-line")).to_contain_text("printed")
    sheet = area.locator(".dn-figure > .dn-sheet")
    expect(sheet.locator("b")).to_have_text("seen")
    expect(area.get_by_text("a study")).to_be_attached()
    assert sheet.evaluate("(sheet) => sheet.outerHTML") == BUILT
    assert strange(asked, extended) == []


@pytest.mark.filterwarnings("ignore:Your element with mimetype")
def test_nothing_runs_in_the_html_of_nbconvert(
    extended: Lab, visitor: Page, asked: list[Request]
) -> None:
    write(extended)
    written, _ = HTMLExporter(sanitize_html=True).from_filename(str(extended.folder / FILE))
    place = f"{extended.url}converted"
    visitor.goto("about:blank")
    asked.clear()
    visitor.route(place, lambda route: route.fulfill(body=written, content_type="text/html"))
    visitor.goto(place)
    expect(visitor.get_by_text("the_cell")).to_be_visible()
    own = [request.url for request in asked if request.url.startswith(extended.url)]
    assert own == [place]
