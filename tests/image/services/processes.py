"""Starting programs of the system, and saying what to install when one is missing."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

# The Debian package of each program that these tests need.
PACKAGES = {
    "docker-registry": "docker-registry",
    "dockerd": "docker.io",
    "docker": "docker.io",
    "skopeo": "skopeo",
    "mmdebstrap": "mmdebstrap",
    "buildah": "buildah",
}


def program(name: str) -> str:
    """The path of a program; Debian's own before any other of the same name."""
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") or shutil.which(name)
    if found is None:
        raise RuntimeError(
            f"These tests need {name}: install it with `apt-get install -y {PACKAGES[name]}`."
        )
    return found


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def run(*command: str, env: Mapping[str, str] | None = None) -> str:
    """The output of a program; its errors in the exception if it fails."""
    done = subprocess.run(
        [program(command[0]), *command[1:]], capture_output=True, text=True, env=env, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def running(
    command: Sequence[str], log: Path, ready: Callable[[], bool], env: Mapping[str, str] | None
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs until the block ends; it ends with these tests whatever happens."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            ending_with_tests([program(command[0]), *command[1:]], "TERM"),
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
        )
    try:
        _wait(process, ready, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def ending_with_tests(command: Sequence[str], number: str = "KILL") -> list[str]:
    """Return a command that gets a signal when the thread that started it ends.

    A `preexec_fn` would do it too, but has Python fork: the copy of a process that has used gRPC
    crashes at times, before the program begins ("encountered epoll_wait error").
    """
    return ["setpriv", "--pdeathsig", number, *command]


def _wait(process: subprocess.Popen[bytes], ready: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + 60
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} doesn't start:\n{log.read_text()[-3000:]}")
        time.sleep(0.02)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
