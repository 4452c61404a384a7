"""Ends a fork server, a supervisor or a rank at the n-th thing that it asks of the system.

Python imports this by its name where it is found on the path. The file named by `CRASH` says who
and at which step, `supervisor 17`, and is removed when that comes.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

PLAN = Path(os.environ["CRASH"])
# What changes something that others can see, or may fail.
STEPS = frozenset(
    ["bind", "closerange", "dup2", "flock", "fork", "kill", "killpg", "mkfifo", "nice", "open",
     "pipe", "recvmsg", "rename", "replace", "sendmsg", "setsid", "unlink", "write", "_exit"]
)  # fmt: skip


class Counter:
    """Counts the steps of one process."""

    def __init__(self, who: str) -> None:
        self.who = who
        words = PLAN.read_text().split() if PLAN.exists() else []
        self.last = int(words[1]) if words[:1] == [who] else -1
        self.count = 0

    def __call__(self, frame: Any, event: str, function: Any) -> None:
        if event != "c_call" or function.__name__ not in STEPS or not _is_ours(frame):
            return
        if self.count == self.last:
            PLAN.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


def _is_ours(frame: Any) -> bool:
    """Called by the worker itself, or by `pathlib` for it; looking at processes changes nothing."""
    while frame is not None and frame.f_code.co_filename.endswith(("pathlib.py", "contextlib.py")):
        frame = frame.f_back
    if frame is None or frame.f_code.co_name in ("process_stat", "out_of_memory_kills"):
        return False
    return "distrain_nb/worker/" in frame.f_code.co_filename


def count(who: str) -> None:
    sys.setprofile(Counter(who))


def wait_for_server(frame: Any, event: str, _: Any) -> None:
    code = frame.f_code
    if event == "call" and code.co_name == "main" and code.co_filename.endswith("forkserver.py"):
        count("server")
        os.register_at_fork(after_in_child=in_child)


def in_child() -> None:
    """The server's children are supervisors, and theirs are ranks."""
    running = sys.getprofile()
    upcoming = {"server": "supervisor", "supervisor": "rank"}
    who = upcoming.get(running.who) if isinstance(running, Counter) else None
    if who:
        count(who)
    else:
        sys.setprofile(None)


if any(word.endswith("distrain_nb.worker.supervisor.forkserver") for word in sys.orig_argv):
    sys.setprofile(wait_for_server)
