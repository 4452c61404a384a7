"""Finds out what shows the output of this process: by who started it and how its cell was sent."""

from __future__ import annotations

import os
import re
import site
import sys
from enum import Enum
from pathlib import Path
from typing import Any

SESSION_VARIABLE = "JPY_SESSION_NAME"  # jupyter_server gives it to the kernels of its sessions
STARTER_VARIABLE = "JPY_PARENT_PID"  # jupyter_client gives it to every kernel


class Frontend(Enum):
    """A kind of program that shows the output of this process.

    SERVER is a page whose server sends the cells to the kernel, or what can't be told from one:
    widgets are live, but the document takes nothing after the cell's end, and adds what should
    have replaced another output (jupyter-server-documents 0.3 does so).
    """

    TERMINAL = "terminal"
    DOCUMENT = "document"
    PAGE = "page"
    SERVER = "server"

    @property
    def has_widgets(self) -> bool:
        return self in (Frontend.PAGE, Frontend.SERVER)


def frontend() -> Frontend:
    """Tell what shows the output of the cell that is running.

    Whoever can answer `input()` is a page. Who can't is a page's server or executes a whole
    document; the latter is certain only where every sign of a server is missing.
    """
    shell = _shell()
    if shell is None or not hasattr(shell, "kernel") or _is_jupyter_console():
        return Frontend.TERMINAL
    if running_cell().get("content", {}).get("allow_stdin", True):
        return Frontend.PAGE
    return Frontend.SERVER if _has_session() or kernel_id() else Frontend.DOCUMENT


def can_answer() -> bool:
    """Return whether somebody can answer `input()` in the cell that is running."""
    shell = _shell()
    if shell is None or not hasattr(shell, "kernel"):
        return shell is not None and sys.stdin is not None and sys.stdin.isatty()
    return bool(running_cell().get("content", {}).get("allow_stdin", True))


def running_cell() -> dict[str, Any]:
    """Return the message that asked for what the kernel does now; empty outside a kernel."""
    shell = _shell()
    return (shell.get_parent() if hasattr(shell, "get_parent") else None) or {}


def answers_while_busy() -> bool:
    """Return whether the kernel gets a page's messages while a cell runs.

    Pages that send them so have asked the kernel for a thread that reads them, a subshell.
    """
    reader = getattr(getattr(_shell(), "kernel", None), "shell_channel_thread", None)
    return bool(reader and reader.manager.list_subshell())


def kernel_id() -> str:
    """Return the id by which a Jupyter server knows this kernel; empty where no server started it.

    nbclient, and with it nbconvert and papermill, starts kernels with a nameless connection file.
    """
    from ipykernel.connect import get_connection_file

    try:
        file = get_connection_file()
    except RuntimeError:  # not ipykernel's application
        return ""
    name = re.fullmatch(r"kernel-(.+)\.json", Path(file).name)
    return name[1] if name else ""


def page_lacks_widgets() -> bool:
    """Return whether anywidget's half for pages came after this kernel was started, by `%pip
    install`.

    A page that was there before lacks it until it is loaded anew.
    """
    from ipykernel.connect import get_connection_file

    below = Path("share", "jupyter", "labextensions", "anywidget")
    halves = [Path(base, below) for base in (sys.prefix, site.getuserbase())]
    try:
        started = Path(get_connection_file()).stat().st_mtime
    except (OSError, RuntimeError):  # not ipykernel's application
        return False
    changed = [half.stat().st_ctime for half in halves if half.exists()]
    return bool(changed) and min(changed) > started


def _has_session() -> bool:
    """Return whether the kernel belongs to a session of a Jupyter server.

    What a notebook starts inherits the notebook's own session, and so does a kernel below it.
    """
    session = os.environ.get(SESSION_VARIABLE, "")
    starter = os.environ.get(STARTER_VARIABLE, "") or str(os.getppid())
    return bool(session) and _variable_of(starter, SESSION_VARIABLE) != session


def _variable_of(process: str, name: str) -> str:
    """Return a variable that the process was started with; empty where that can't be read."""
    try:
        pairs = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    values = [pair[len(name) + 1 :] for pair in pairs if pair.startswith(f"{name}=".encode())]
    return os.fsdecode(values[0]) if values else ""


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _is_jupyter_console() -> bool:
    """Return whether the kernel was started by `jupyter console`, which shows text only."""
    try:
        words = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word.endswith((b"jupyter-console", b"jupyter_console")) for word in words[:3])
