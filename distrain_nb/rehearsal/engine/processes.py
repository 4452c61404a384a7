"""Programs of this machine that a rehearsal starts, and that end with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from distrain_nb.errors import DistrainError

_START_S = 120.0

# Run by a Python of its own between here and the command. Nothing of ours may run in a forked
# copy of this process, whose gRPC would wake up there: without `preexec_fn` none is made. Python
# ignores SIGPIPE, which the command would inherit: `yes | head -1` would print an error.
_END_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def start(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    folder: Path | None = None,
    inherited: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Return a process in a group of its own that is asked to end when the thread that started it
    ends.

    It has the `inherited` descriptors too.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _END_WITH_PARENT, *command],
        env=environment,
        cwd=folder,
        pass_fds=inherited,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def stop(process: subprocess.Popen[bytes], grace: float) -> None:
    """Send SIGTERM to the process, then SIGKILL to its whole group."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    # Also if it has ended by SIGTERM: what it has started may go on in its group.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def service(
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    is_there: Callable[[], bool],
    grace: float,
) -> Iterator[None]:
    """Run a service of the rehearsal, once it is there. Raises DistrainError if it doesn't start,
    with the end of its log."""
    with log.open("wb") as out:
        process = start(command, environment, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + _START_S
        while not is_there():
            if process.poll() is not None or time.monotonic() > deadline:
                output = log.read_text(encoding="utf-8", errors="replace")[-1000:]
                raise DistrainError(f"The rehearsal's {name} doesn't start: {output}")
            time.sleep(0.02)
        yield
    finally:
        stop(process, grace)


@dataclass(frozen=True)
class Started:
    """A replica that is a process of this machine."""

    process: subprocess.Popen[bytes]

    def lines(self) -> Iterator[tuple[str, str]]:
        """Stream and text of each line until the process ends."""
        return lines(self.process)

    def status(self) -> int | None:
        """Return its exit status as a shell gives it; None while it runs."""
        code = self.process.poll()
        return 128 - code if code is not None and code < 0 else code


def lines(process: subprocess.Popen[bytes]) -> Iterator[tuple[str, str]]:
    """Stream (`o` or `e`) and text of each line, until both streams end."""
    lines: SimpleQueue[tuple[str, str] | None] = SimpleQueue()
    streams = (("o", process.stdout), ("e", process.stderr))
    for kind, stream in streams:
        threading.Thread(target=_read, args=(kind, stream, lines), daemon=True).start()
    open_streams = len(streams)
    while open_streams:
        line = lines.get()
        if line is None:
            open_streams -= 1
        else:
            yield line


def _read(kind: str, stream: IO[bytes], lines: SimpleQueue[tuple[str, str] | None]) -> None:
    with stream:
        for line in stream:
            lines.put((kind, line.decode("utf-8", "replace").rstrip("\r\n")))
    lines.put(None)
