"""A real Jupyter server with the extension, found as an installed wheel's would be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from tests.browser.jupyter import WITHOUT
from tests.conftest import eventually

TOKEN = "only-the-user-knows"
SHIPPED = Path(__file__).parents[2] / "jupyter-config" / "distrain_nb.json"


@dataclass(frozen=True)
class Server:
    """Where it listens: `url` ends with the base URL; `log` is what it prints."""

    url: str
    pid: int
    log: Path

    def client(self, token: str = TOKEN) -> httpx.Client:
        """A client that sends the token with each request."""
        headers = {"Authorization": f"token {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    @contextmanager
    def browser(self, url: str = "") -> Iterator[httpx.Client]:
        """A client that has logged in: it has cookies, as a page does."""
        with httpx.Client(base_url=url or self.url, timeout=60) as client:
            client.get("login")  # the page gives the cookie against forged requests
            client.get("login", params={"token": TOKEN})
            yield client


@contextmanager
def jupyter_server(folder: Path, base_url: str = "/", enabled: bool = True) -> Iterator[Server]:
    """Started with settings of its own, and ended with the block."""
    settings, runtime = folder / "config", folder / "runtime"
    (settings / "jupyter_server_config.d").mkdir(parents=True)
    shutil.copy(SHIPPED, settings / "jupyter_server_config.d")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(WITHOUT), os.environ.get("PYTHONPATH")))),
        "JUPYTER_CONFIG_DIR": str(settings),
        "JUPYTER_RUNTIME_DIR": str(runtime),
        "JUPYTER_DATA_DIR": str(folder / "data"),
    }
    options = ["--no-browser", "--allow-root", "--port=0", f"--IdentityProvider.token={TOKEN}"]
    options += [f"--ServerApp.base_url={base_url}", f"--ServerApp.root_dir={folder}"]
    options += [] if enabled else ["--ServerApp.jpserver_extensions=distrain_nb.server=False"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *options],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            about = runtime / f"jpserver-{process.pid}.json"
            said = (folder / "server.log").read_text
            assert eventually(lambda: about.exists() and _answers(about), within=60), said()
            yield Server(json.loads(about.read_text())["url"], process.pid, folder / "server.log")
        finally:
            process.terminate()
            process.wait(60)


def _answers(about: Path) -> bool:
    try:
        return httpx.get(json.loads(about.read_text())["url"] + "api").status_code == 200
    except (httpx.HTTPError, ValueError):
        return False


@contextmanager
def stripping_proxy(server: Server, prefix: str) -> Iterator[str]:
    """A reverse proxy that takes a prefix away; gives the URL that a page would know."""

    class Proxy(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            if not self.path.startswith(prefix):
                self.send_error(404)
                return
            target = server.url + self.path.removeprefix(prefix)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = httpx.request(
                self.command, target, headers=dict(self.headers), content=body, timeout=60
            )
            self.send_response(answer.status_code)
            for name, value in answer.headers.multi_items():
                if name not in ("transfer-encoding", "content-length", "content-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = do_DELETE = _pass_on  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Not on the screen."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_port}{prefix}"
        proxy.shutdown()
