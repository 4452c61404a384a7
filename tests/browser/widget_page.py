"""A page with one of our widgets and a server that answers it, without Jupyter: for what is the
widget's own matter, at many rows and at any width."""

from __future__ import annotations

import contextlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from distrain_nb.run.annotation import annotate
from distrain_nb.run.pages.answers import answer
from distrain_nb.server import table
from distrain_nb.server.access import open_run
from distrain_nb.ui.widgets import STATIC
from tests.browser.jupyter import new_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from playwright.sync_api import Browser, Page, Route

    from distrain_nb.run import Store

PLOTLY = "plotly-basic.min.js"
ADDRESS = "http://widget.test"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>widget</title>
<script id="jupyter-config-data" type="application/json">{{"baseUrl": "/", "token": ""}}</script>
<link rel="stylesheet" href="/static/{styles}.css"></head>
<body>{around}<main><div><i hidden data-distrain-live="key"></i></div></main>
<script type="module">
import widget from "/static/{widget}.js";
const state = {state};
widget.initialize({{ model: {{
  get: (name) => state[name], set: () => {{}}, save_changes: () => {{}},
  on: () => {{}}, off: () => {{}},
  send: () => {{ throw new Error("Cannot send"); }},
}} }});
</script></body></html>"""

DARK = """:root { --jp-layout-color1: #111; --jp-layout-color2: #222; --jp-ui-font-color1: #eee;
    --jp-ui-font-color2: #bbb; --jp-border-color2: #444; } body { background: #111; }"""


@lru_cache
def plotly_code() -> bytes:
    return (STATIC / "plotly" / PLOTLY).read_bytes()


@contextlib.contextmanager
def widget_page(
    browser: Browser,
    widget: str,
    state: Mapping[str, object],
    answer: Callable[[str, dict[str, str]], object],
    around: str = "",
    prepare: Callable[[Page], object] = lambda _: None,
    styles: str = "",
) -> Iterator[Page]:
    """Open a page with this widget, whose kernel has gone; `answer` gives the server's JSON for a
    path below `distrain/` and its query. `around` is more of the page, in HTML; `prepare` has the
    page before it is loaded; `styles` names the style sheet, if it isn't called as the widget."""

    def respond(route: Route) -> None:
        asked = urlsplit(route.request.url)
        path = asked.path
        if path == "/":
            text = PAGE.format(
                widget=widget,
                styles=styles or widget,
                around=around,
                state=json.dumps({"key": "key", **state}),
            )
            route.fulfill(content_type="text/html", body=text)
        elif path.startswith("/static/"):
            route.fulfill(path=STATIC / path.removeprefix("/static/"))
        elif path.startswith("/distrain/"):
            told: Any = answer(path.removeprefix("/distrain/"), dict(parse_qsl(asked.query)))
            route.fulfill(json=told)
        elif path.endswith(PLOTLY):
            route.fulfill(body=plotly_code(), content_type="text/javascript")
        else:
            route.fulfill(status=404)

    with new_page(browser) as page:
        prepare(page)
        page.route("**/*", respond)
        page.goto(ADDRESS)
        yield page


def serving(store: Store) -> Callable[[str, dict[str, str]], object]:
    """What the server says of the runs in this store."""

    def told(path: str, query: dict[str, str]) -> object:
        if path in table.LISTS:
            return table.LISTS[path](store, query)
        _, number, asked = path.split("/")
        run = open_run(store, number)
        return (
            annotate(run.folder, query).as_json()
            if asked == "annotate"
            else answer(run, asked, query)
        )

    return told


def darken(page: Page) -> None:
    page.add_style_tag(content=DARK)
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
