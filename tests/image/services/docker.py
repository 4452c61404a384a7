"""A private `dockerd`: its own data, socket and network, gone when the tests are."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .processes import program, running

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Docker:
    """A daemon; `env` makes any Docker client talk to it."""

    socket: Path
    folder: Path

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "DOCKER_HOST": f"unix://{self.socket}"}

    def __call__(self, *arguments: str, allowed: tuple[int, ...] = (0,), **env: str) -> str:
        """Run `docker ARGUMENTS`; its output, both streams."""
        done = subprocess.run(
            [program("docker"), *arguments],
            env={**self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode not in allowed:
            raise RuntimeError(f"docker {' '.join(arguments)}: {done.returncode}\n{done.stdout}")
        return done.stdout


@contextlib.contextmanager
def docker_daemon() -> Iterator[Docker]:
    """A daemon that knows no images and shares nothing with the machine's own, if it has one."""
    folder = Path(tempfile.mkdtemp(prefix="dd-"))  # short: a socket's path has at most 107 bytes
    docker = Docker(folder / "s", folder)
    command = [
        "dockerd",
        f"--data-root={folder / 'data'}",
        f"--exec-root={folder / 'exec'}",
        f"--pidfile={folder / 'pid'}",
        f"--host=unix://{docker.socket}",
        "--bridge=none",
        "--log-level=warn",
    ]
    try:
        with running(command, folder / "log", lambda: _answers(docker), None):
            yield docker
            _remove_containers(docker)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(docker: Docker) -> bool:
    if not docker.socket.exists():
        return False
    asked = subprocess.run([program("docker"), "info"], env=docker.env, capture_output=True)
    return asked.returncode == 0


def _remove_containers(docker: Docker) -> None:
    for kind, listing in (("rm", ("ps", "-aq")), ("network", ("network", "ls", "-q"))):
        found = docker(*listing).split()
        if kind == "rm" and found:
            docker("rm", "-f", *found)
        elif kind == "network":
            docker("network", "prune", "-f")
