"""The browser of these tests, beside tests that make containers and network namespaces."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser

from tests.browser.jupyter import new_page

pytestmark = pytest.mark.slow

# More at once than there are connections, again and again; gives how many failed.
LOADS = """async (until) => {
    let failed = 0, number = 0;
    const load = () => new Promise((done) => {
        const link = document.createElement("link");
        const ended = ({ type }) => { failed += type === "error"; link.remove(); done(); };
        link.onload = link.onerror = ended;
        Object.assign(link, { rel: "stylesheet", href: `/${number++}.css` });
        document.body.append(link);
    });
    while (Date.now() < until) await Promise.all(Array.from({ length: 20 }, load));
    return failed;
}"""


class SlowStyles(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(0.05)
        body = b"<html><body>"
        self.send_response(200)
        self.send_header("Content-Type", "text/css" if self.path != "/" else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def changing_interfaces() -> Iterator[None]:
    """As a container's, that comes and goes."""
    ends, name = threading.Event(), f"dnb{os.getpid()}"

    def change() -> None:
        while not ends.is_set():
            ip("link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b")
            ip("addr", "add", "10.77.0.1/24", "dev", f"{name}a")
            time.sleep(0.2)
            ip("link", "del", f"{name}a")

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def test_requests_do_not_fail_while_interfaces_change(browser: Browser) -> None:
    if os.geteuid():
        pytest.fail("needs root: it makes network interfaces")
    server = ThreadingHTTPServer(("127.0.0.1", 0), SlowStyles)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with new_page(browser) as page:
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        with changing_interfaces():
            assert page.evaluate(LOADS, int(time.time() * 1000) + 3000) == 0
    server.shutdown()
