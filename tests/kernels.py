"""A real Jupyter kernel to run cells in, as a notebook would."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

# ipykernel 7.0 to 7.3 overlooks a request now and then, until there is another connection; see
# tests/embedding/test_overlooked.py.
SILENCE_S = 10
# Variables by which threads that wait leave the cores to others.
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_THREAD_TIMEOUT": "4"}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def execute(notebook: NotebookNode, folder: Path, timeout: int = 120) -> None:
    """Execute all cells in a kernel of their own, as papermill and nbconvert do it.

    None may say that a rank may have something else than the notebook.
    """
    with _own_sockets() as config:
        client = NotebookClient(notebook, timeout=timeout, kernel_name="python3", config=config)
        client.execute(cwd=str(folder))
    doubts = doubts_in(notebook)
    assert not doubts, doubts


def doubts_in(notebook: NotebookNode) -> set[str]:
    """Return the codes of the findings about captures that an executed notebook shows."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    codes = set(re.findall(r"\bcapture\.[a-z-]+", str(outputs)))
    return codes - {"capture.unknown-module"}  # of packages that only the image has


# A cell that prints in what the ranks of any run have trained otherwise than as one.
DEVIATING = """\
import distrain_nb
from distrain_nb.worker.facts.deviations import CODES
seen = [finding.code for run in distrain_nb.runs() for finding in run.findings]
print("ranks deviate:", [code for code in seen if code in CODES])
"""


@dataclass
class Outcome:
    """What a cell left: its printed text, its displays, and its error if it raised.

    `opened` has the state of each widget as a page first hears of it; `cleared` counts how often
    the outputs so far were to be taken away.
    """

    text: str = ""
    displays: list[dict[str, Any]] = field(default_factory=list)
    opened: list[dict[str, Any]] = field(default_factory=list)
    cleared: int = 0
    error: str = ""
    traceback: str = ""


class Kernel:
    """One kernel, started in `folder` with the given environment."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        self._sockets = ExitStack()
        config = self._sockets.enter_context(_own_sockets())
        self.manager = KernelManager(kernel_name="python3", config=config)
        self.start()

    def start(self) -> None:
        self.manager.start_kernel(cwd=str(self.folder), env=self._environment)
        self._connect()

    def restart(self) -> None:
        self._client.stop_channels()
        self.manager.restart_kernel(now=False)
        self._connect()

    def kill(self) -> None:
        """As `kill -9` does, and nothing else: the kernel has no say in it."""
        self.manager.provisioner.process.kill()  # type: ignore[union-attr]
        self.manager.provisioner.process.wait()  # type: ignore[union-attr]
        self._client.stop_channels()

    def stop(self) -> None:
        self._client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self._sockets.close()

    @property
    def pid(self) -> int:
        return int(self.manager.provisioner.pid)  # type: ignore[union-attr]

    def run(self, code: str, timeout: float = 120) -> Outcome:
        """Run a cell to its end."""
        return self.outcome(self.send(code), timeout)

    def send(self, code: str, on_a_page: bool = False) -> str:
        """Start a cell and don't wait for it; a page could answer questions and show widgets."""
        return str(self._client.execute(code, allow_stdin=on_a_page))

    def question(self, within: float = 90) -> str:
        """Wait until a cell asks, as a page would show it."""
        try:
            message = self._client.get_stdin_msg(timeout=within)
        except Empty:
            raise TimeoutError(f"nothing was asked within {within} s") from None
        assert message["msg_type"] == "input_request"
        return str(message["content"]["prompt"]) + ("*" if message["content"]["password"] else "")

    def answer(self, text: str) -> None:
        """Answer what was asked last."""
        self._client.input(text)

    def interrupt(self) -> None:
        self.manager.interrupt_kernel()

    def outcome(self, sent: str, timeout: float = 120) -> Outcome:
        """What the cell of that message left, once it has ended."""
        outcome, end = Outcome(), time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            try:
                message = self._client.get_iopub_msg(timeout=min(left, SILENCE_S))
            except Empty:
                self._sockets.enter_context(self.manager.connect_shell())
                continue
            if message["parent_header"].get("msg_id") == sent and _take(message, outcome):
                return outcome
        raise TimeoutError(f"cell not done in {timeout} s; so far:\n{outcome}")

    def offered(self, code: str, position: int | None = None) -> dict[str, str]:
        """What Tab offers at a position, in order, and what a front end shows beside each."""
        content = self._client.complete(code, position, reply=True, timeout=120)["content"]
        return {
            each["text"]: each["type"]
            for each in content["metadata"]["_jupyter_types_experimental"]
        }

    def completed(self, code: str) -> list[str]:
        """`code` with each of what Tab offers at its end."""
        content = self._client.complete(code, reply=True, timeout=120)["content"]
        return [code[: content["cursor_start"]] + match for match in content["matches"]]

    def open_subshell(self) -> str:
        """Ask for a thread that reads messages, as JupyterLab does for widgets."""
        return str(self._control("create_subshell_request", {})["subshell_id"])

    def close_subshell(self, subshell: str) -> None:
        self._control("delete_subshell_request", {"subshell_id": subshell})

    def tell_widget(self, model: str, content: dict[str, Any], subshell: str) -> None:
        """Send a widget what a page would."""
        data = {"method": "custom", "content": content}
        message = self._client.session.msg("comm_msg", {"comm_id": model, "data": data})
        message["header"]["subshell_id"] = subshell
        self._client.shell_channel.send(message)

    def _control(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        message = self._client.session.msg(kind, content)
        self._client.control_channel.send(message)
        while True:
            reply = self._client.get_control_msg(timeout=120)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return dict(reply["content"])

    def _connect(self) -> None:
        self._client: BlockingKernelClient = self.manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)


@contextmanager
def _own_sockets() -> Iterator[Config]:
    """Sockets in a folder: a port that is free now may be another's when the kernel binds it."""
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        yield Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})


def _take(message: dict[str, Any], outcome: Outcome) -> bool:
    """Add a message to the outcome; say whether it was the last."""
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        outcome.text += content["text"]
    elif kind in ("display_data", "execute_result", "update_display_data"):
        if "distrain-words" in content["data"].get("text/html", ""):  # as if it were printed
            outcome.text += content["data"]["text/plain"] + "\n"
        outcome.displays.append(content["data"])
    elif kind == "comm_open" and content["target_name"] == "jupyter.widget":
        outcome.opened.append(content["data"]["state"])
    elif kind == "clear_output":
        outcome.cleared += 1
    elif kind == "error":
        outcome.error = f"{content['ename']}: {content['evalue']}"
        outcome.traceback = _ANSI.sub("", "\n".join(content["traceback"]))
    return bool(kind == "status" and content["execution_state"] == "idle")


@contextmanager
def kernel(folder: Path, environment: dict[str, str]) -> Iterator[Kernel]:
    """A kernel that is gone afterwards."""
    started = Kernel(folder, environment)
    try:
        yield started
    finally:
        started.stop()
