"""A real Jupyter server and a real browser: for the tests here and for benchmarks.

`serve` starts JupyterLab or Notebook 7, `chromium` and `firefox` a browser; an `OpenNotebook` is a
page of it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import nbformat
from nbformat.sign import NotebookNotary

from tests.image.services.processes import ending_with_tests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page, Playwright

ROOT = Path(__file__).parents[2]
DATA_FOLDER = "data"
SHARED = "share/jupyter/"  # in a wheel, what JUPYTER_DATA_DIR is for a user
NOTEBOOK = "[...window.jupyterapp.shell.widgets('main')].find((w) => w.content?.widgets)"
KERNEL_IS_IDLE = f"""() => {{
    const session = {NOTEBOOK}?.context.sessionContext;
    return session?.isReady && session.session?.kernel?.status === "idle";
}}"""
KERNEL_IS_CONNECTED = f"""() =>
    {NOTEBOOK}?.context.sessionContext.session?.kernel?.connectionStatus === "connected"
"""
# In the page that is there already, which is three times as fast as to load it.
OPEN = """async ([path, same]) => {
    const { shell, serviceManager, commands } = window.jupyterapp;
    const last = NOTEBOOK?.context.sessionContext.session?.kernel;
    const kernel = same && last?.status === "idle" ? { id: last.id, name: last.name } : undefined;
    for (const open of [...shell.widgets("main")]) open.dispose();
    const { sessions } = serviceManager;
    // The server refuses to end one whose kernel ends by itself just then.
    const end = () => sessions.shutdownAll();
    if (!kernel) await end().catch(() => sessions.refreshRunning().then(end));
    await commands.execute("docmanager:open", { path, kernel });
}""".replace("NOTEBOOK", NOTEBOOK)
IS_CLEAR = "() => window.jupyterapp !== undefined && !document.querySelector('.jp-Dialog')"
PATIENCE_MS = 180_000  # machines that test do other work beside
ENDS_WITHIN_S = 30
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
CHROMIUM = Path(__file__).with_name("chromium.py")
WITHOUT = Path(__file__).with_name("without")  # for PYTHONPATH: what servers of tests do without
# Neither asks Node.js whether JupyterLab is to be built, which takes a second for each load of the
# page, nor loads what no test uses. Spaces of `tests/embedding` have JupyterLab whole.
PAGE_CONFIG = {"buildAvailable": False, "buildCheck": False}
UNUSED = (
    "celltags", "console", "csvviewer", "debugger", "extensionmanager", "help", "htmlviewer", "hub",
    "imageviewer", "inspector", "logconsole", "lsp", "markdownviewer", "metadataform",
    "pluginmanager", "property-inspector", "terminal", "toc", "workspaces",
)  # fmt: skip
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Frontend:
    """A program that serves notebooks: its module, its options' class, and where a notebook is."""

    module: str
    options: str
    notebooks: str


JUPYTERLAB = Frontend("jupyterlab", "LabApp", "lab/tree")
NOTEBOOK_7 = Frontend("notebook", "JupyterNotebookApp", "notebooks")


@dataclass(frozen=True)
class Lab:
    """A running server: `folder` is its root, `home` the DISTRAIN_HOME of its kernels."""

    url: str
    token: str
    folder: Path
    home: Path
    frontend: Frontend = JUPYTERLAB

    def write(self, name: str, *cells: str) -> str:
        """Write a notebook with these cells; the name of its file."""
        sources = [nbformat.v4.new_code_cell(source) for source in cells]
        written = nbformat.v4.new_notebook(cells=sources, metadata={"kernelspec": KERNEL})
        nbformat.write(written, self.folder / f"{name}.ipynb")
        return f"{name}.ipynb"

    def trust(self, file: str) -> None:
        """Take a notebook's outputs for the user's own, as those of a new one are."""
        notary = NotebookNotary(data_dir=str(self.folder.parent / DATA_FOLDER))
        notary.sign(nbformat.read(self.folder / file, as_version=4))


@contextlib.contextmanager
def serve(
    root: Path,
    frontend: Frontend = JUPYTERLAB,
    *,
    bare: bool = False,
    extension: bool = False,
    python: str = sys.executable,
) -> Iterator[Lab]:
    """A server with everything of its own below `root`, up to the end of the block.

    A `bare` one tells nothing of runs, and its pages ask a kernel nothing while it computes. It
    and its kernels have the packages of `python`. Pages have our `extension` only where it says so.
    """
    for name in ("notebooks", "settings", "runtime", DATA_FOLDER):
        (root / name).mkdir()
    settings = root / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(json.dumps({"fetchNews": "false"}))
    if bare:
        own = json.dumps({"commsOverSubshells": "disabled"})
        (settings / "kernels-settings.jupyterlab-settings").write_text(own)
    enabled = root / "config" / "jupyter_server_config.d"
    enabled.mkdir(parents=True)
    _put_extension(root, shown=extension)
    shipped = json.loads((ROOT / "jupyter-config" / "distrain_nb.json").read_text())
    shipped["ServerApp"]["jpserver_extensions"]["distrain_nb.server"] = not bare
    (enabled / "distrain_nb.json").write_text(json.dumps(shipped))
    process = subprocess.Popen(
        ending_with_tests([python, "-m", frontend.module, *_options(root, frontend)]),
        env=_environment(root),
        stdout=(root / "server.log").open("w"),
        stderr=subprocess.STDOUT,
    )
    try:
        server = server_info(root / "runtime", process)
        url, token = server["url"], server["token"]
        yield Lab(url, token, root / "notebooks", root / "home", frontend)
    finally:
        ended(process)


def ended(process: subprocess.Popen[bytes]) -> None:
    """Have a server shut down its kernels and end, or at last end.

    One that is told so while a thread of anyio's reads a file for a page waits for that thread for
    good.
    """
    process.terminate()
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _put_extension(root: Path, *, shown: bool) -> None:
    """JupyterLab's extension, where a wheel that the user installs puts it."""
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    described = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = described["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, target in wheel["shared-data"].items():
        if target.startswith(SHARED):
            place = root / DATA_FOLDER / target.removeprefix(SHARED)
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            place.parent.mkdir(parents=True, exist_ok=True)
            copy(ROOT / source, place)
    settings = root / "config" / "labconfig"
    settings.mkdir(parents=True)
    disabled = {f"@jupyterlab/{name}-extension": True for name in UNUSED}
    own = {"disabledExtensions": {**disabled, "distrain-nb": not shown}}
    (settings / "page_config.json").write_text(json.dumps({**PAGE_CONFIG, **own}))


def _options(root: Path, frontend: Frontend) -> list[str]:
    return [
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        "--port=0",
        f"--ServerApp.root_dir={root / 'notebooks'}",
        f"--{frontend.options}.user_settings_dir={root / 'settings'}",
        f"--{frontend.options}.workspaces_dir={root / 'workspaces'}",
        f"--{frontend.options}.expose_app_in_browser=True",
    ]


def _environment(root: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": f"{WITHOUT}{os.pathsep}{ROOT}",
        "DISTRAIN_HOME": str(root / "home"),
        "JUPYTER_DATA_DIR": str(root / DATA_FOLDER),
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_PREFER_ENV_PATH": "0",  # the package's own settings stand in the environment's
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "IPYTHONDIR": str(root / "ipython"),
    }


def server_info(runtime: Path, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What a Jupyter server writes of itself, once it answers."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < end and process.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            try:
                info: dict[str, Any] = json.loads(file.read_text())
                httpx.get(f"{info['url']}api", timeout=5).raise_for_status()
            except (json.JSONDecodeError, httpx.HTTPError):  # half written, or not up yet
                continue
            return info
        time.sleep(0.1)
    raise RuntimeError((runtime.parent / "server.log").read_text())


def chromium(playwright: Playwright) -> contextlib.closing[Browser]:
    """Debian's Chromium, without a screen, and without ears for what other tests do."""
    started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    return contextlib.closing(started)


def firefox(playwright: Playwright) -> contextlib.closing[Browser]:
    """Debian's Firefox, without a screen. It is not Playwright's own: WebDriver BiDi drives it."""
    started = playwright.firefox.launch(
        channel="moz-firefox", executable_path="/usr/bin/firefox-esr", timeout=PATIENCE_MS
    )
    return contextlib.closing(started)


@contextlib.contextmanager
def new_page(browser: Browser) -> Iterator[Page]:
    """A page with nothing remembered from others."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


class OpenNotebook:
    """A notebook that is open in the browser; `IDLE` is true in the page when its kernel is.

    Whatever was open in the page is closed, and its kernels are shut down; with `same_kernel`, that
    of the last notebook goes on if it is idle.
    """

    IDLE = KERNEL_IS_IDLE
    CONNECTED = KERNEL_IS_CONNECTED

    def __init__(self, page: Page, lab: Lab, name: str, *, same_kernel: bool = False) -> None:
        self.page = page
        self.path = lab.folder / name
        self._url = f"{lab.url}{lab.frontend.notebooks}/{name}?token={lab.token}&reset"
        if page.url.startswith(f"{lab.url}lab") and page.evaluate(IS_CLEAR):
            page.evaluate(OPEN, [name, same_kernel])
            page.wait_for_selector(".jp-Notebook .jp-Cell")
            self.wait_for_kernel()
        else:
            self.reload()

    def reload(self, *, busy: bool = False) -> None:
        """Load the page anew, until the kernel is idle, or, if it is `busy`, until it is there."""
        self.page.goto("about:blank")
        self.page.goto(self._url)
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.page.wait_for_function("window.jupyterapp !== undefined")
        self.wait_for_kernel(busy=busy)

    def wait_for_kernel(self, *, busy: bool = False) -> None:
        """Until it is idle, or, if it is `busy`, until it is there."""
        self.page.wait_for_function(self.CONNECTED if busy else self.IDLE)

    def kernel_id(self) -> str:
        """By which the server knows the kernel."""
        session = f"{NOTEBOOK}.context.sessionContext.session"
        return str(self.page.evaluate(f"() => {session}.kernel.id"))

    def shut_down_kernel(self) -> None:
        """What it knew is gone; a page that is loaded anew starts another."""
        self.page.evaluate(f"() => {NOTEBOOK}.context.sessionContext.shutdown()")

    def restart_kernel(self) -> None:
        """What it knew is gone, and the page stays."""
        self.page.evaluate(f"() => {NOTEBOOK}.context.sessionContext.restartKernel()")

    def command(self, name: str, **arguments: Any) -> None:
        """Start a command of JupyterLab; don't wait for it to be done."""
        self.page.evaluate(
            "([name, args]) => { window.jupyterapp.commands.execute(name, args); }",
            [name, arguments],
        )

    def run_cells(self, count: int) -> None:
        """Start the first cells, one after the other."""
        for number in range(count):
            self.run_cell(number)

    def run_cell(self, number: int) -> None:
        """Start the cell with that number, from 0."""
        self.page.evaluate(
            """(n) => {
                const notebook = {NOTEBOOK};
                window.jupyterapp.shell.activateById(notebook.id);
                notebook.content.activeCellIndex = n;
                window.jupyterapp.commands.execute("notebook:run-cell");
            }""".replace("{NOTEBOOK}", NOTEBOOK),
            number,
        )

    def wait_for_cell(self, number: int, timeout_s: float) -> None:
        """Until that cell, which has been started, is done: it has its number then.

        Raises playwright's TimeoutError. The kernel's own state tells nothing of a cell: it is
        idle also after each message that a widget sent while the cell runs.
        """
        self.page.wait_for_function(
            """(n) => {
                const cell = {NOTEBOOK}.content.widgets[n];
                return /[0-9]/.test(cell.node.querySelector(".jp-InputPrompt").textContent);
            }""".replace("{NOTEBOOK}", NOTEBOOK),
            arg=number,
            timeout=timeout_s * 1000,
        )

    def theme(self, name: str) -> None:
        """`JupyterLab Light` or `JupyterLab Dark`."""
        self.command("apputils:change-theme", theme=name)
        light = "false" if "Dark" in name else "true"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")

    def save(self) -> dict[str, Any]:
        """The notebook as it is saved."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        return json.loads(self.path.read_text(encoding="utf-8"))
