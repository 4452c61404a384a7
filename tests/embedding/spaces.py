"""JupyterLab as a Studio space starts it, behind a proxy.

The options are those of `start-jupyter-server` in aws/sagemaker-distribution: a base path, no
token, any origin; in a shared space notebooks are edited together. Who starts it is root in many a
test's container: then JupyterLab, kernels and runs have the space's user id, 1000, and of root's
rights no more than to read what is installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.browser.jupyter import (
    DATA_FOLDER,
    NOTEBOOK,
    WITHOUT,
    Lab,
    OpenNotebook,
    ended,
    server_info,
)
from tests.image.services.processes import ending_with_tests
from tests.kernels import PATIENT

BASE = "/jupyterlab/default/"
USER = 1000
READ_ALL = "-all,+dac_read_search"
SHARED = ("--collaborative",)
# As before the server's next start: nobody but the kernel tells of runs.
UNSERVED = ("--ServerApp.jpserver_extensions={'distrain_nb.server': False}",)
# The kernel of distribution 4, ipykernel 7.3, overlooks a request now and then, and all that come
# after it over the same connection (ipython/ipykernel#1554): it looks again when there is another.
# Overlooked are cells, and what a page asks first: it doesn't know the kernel's state without.
RECONNECT = f"""() => {{
    window.reconnecting ??= setInterval(() => {{
        const kernel = {NOTEBOOK}?.context.sessionContext.session?.kernel;
        const prompts = [...document.querySelectorAll(".jp-InputPrompt")];
        const waits = prompts.some((prompt) => prompt.textContent.includes("*"));
        const unanswered = ["unknown", "starting"].includes(kernel?.status);
        if (unanswered || (kernel?.status === "idle" && waits)) {{
            const other = kernel.clone();
            setTimeout(() => other.dispose(), 5_000);
        }}
    }}, 10_000);
}}"""


def as_user(words: list[str]) -> list[str]:
    """The command as the space's user, if whoever runs this may become that."""
    if os.getuid() != 0:
        return words
    become = [f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    return ["setpriv", *become, f"--inh-caps={READ_ALL}", f"--ambient-caps={READ_ALL}", *words]


@dataclass(frozen=True)
class Space(Lab):
    """A running one. What is written into it belongs to its user."""

    def write(self, name: str, *cells: str) -> str:
        file = super().write(name, *cells)
        give(self.folder)
        return file

    def trust(self, file: str) -> None:
        super().trust(file)
        give(self.folder.parent / DATA_FOLDER)


class SpaceNotebook(OpenNotebook):
    """A notebook that is open in a space: what is asked of the kernel reaches it."""

    def wait_for_kernel(self, *, busy: bool = False) -> None:
        self.page.evaluate(RECONNECT)
        super().wait_for_kernel(busy=busy)


def give(folder: Path, *, folders_only: bool = False) -> None:
    """Make it the user's own with all that it holds, if that is another."""
    if os.getuid() == 0:
        for path in (folder, *folder.rglob("*")):
            if not folders_only or (path.is_dir() and not path.is_symlink()):
                os.chown(path, USER, USER, follow_symlinks=False)


@contextlib.contextmanager
def space(root: Path, python: str, *options: str, policy: str = "") -> Iterator[Space]:
    """A space with its home below `root`, up to the end of the block.

    `python` has its packages, `options` go to JupyterLab, and `policy` is the
    Content-Security-Policy of its pages.
    """
    home, runtime = root / "home", root / "runtime"
    notebooks = home / "notebooks"
    for folder in (notebooks, runtime, home / DATA_FOLDER):
        folder.mkdir(parents=True)
    settings = home / ".jupyter/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(json.dumps({"fetchNews": "false"}))
    if policy:
        headers = {
            "ServerApp": {"tornado_settings": {"headers": {"Content-Security-Policy": policy}}}
        }
        (home / ".jupyter/jupyter_server_config.json").write_text(json.dumps(headers))
    give(root)
    process = subprocess.Popen(
        ending_with_tests(as_user([python, "-m", "jupyterlab", *_options(notebooks), *options])),
        env=_environment(home, runtime),
        cwd=notebooks,
        stdout=(root / "server.log").open("w"),
        stderr=subprocess.STDOUT,
    )
    try:
        with proxy(server_info(runtime, process)["port"]) as port:
            url = f"http://127.0.0.1:{port}{BASE}"
            yield Space(url, "", notebooks, home / ".distrain")
    except BaseException:
        print(f"exit status of the server: {process.poll()}; its log:")
        print((root / "server.log").read_text()[-10_000:])
        raise
    finally:
        ended(process)
        _end_servers(runtime)


def _end_servers(runtime: Path) -> None:
    """Of processes that start ranks quickly: they outlive their kernels on purpose."""
    for left in psutil.process_iter(["cmdline"]):
        if any(str(runtime) in word for word in left.info["cmdline"] or ()):
            left.kill()


def _options(notebooks: Path) -> list[str]:
    return [
        "--no-browser",
        "--ip=127.0.0.1",
        "--port=0",
        f"--ServerApp.base_url={BASE.rstrip('/')}",
        "--ServerApp.token=",
        "--ServerApp.allow_origin=*",
        f"--ServerApp.root_dir={notebooks}",
        "--LabApp.expose_app_in_browser=True",
    ]


def _environment(home: Path, runtime: Path) -> dict[str, str]:
    """Of this process's own only what finds programs and packages."""
    return {
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
        **PATIENT,
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(WITHOUT),
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(runtime),
        "JUPYTER_DATA_DIR": str(home / DATA_FOLDER),
        "JUPYTER_RUNTIME_DIR": str(runtime),
        "DISTRAIN_HOME": str(home / ".distrain"),
    }


@contextlib.contextmanager
def proxy(port: int) -> Iterator[int]:
    """The port of what passes connections on to a server on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=_accept, args=(listening, port), daemon=True)
        accepting.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, port: int) -> None:
    with contextlib.suppress(OSError):  # the block has ended
        while True:
            client, _ = listening.accept()
            threading.Thread(target=_serve, args=(client, port), daemon=True).start()


def _serve(client: socket.socket, port: int) -> None:
    with client, socket.create_connection(("127.0.0.1", port)) as server:
        back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
        back.start()
        _pass_on(client, server)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
