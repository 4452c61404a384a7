"""A private `dockerd`: its own data, socket and network, gone when the tests are."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
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
        f"--default-address-pool=base=10.{128 + os.getpid() % 128}.0.0/16,size=24",
        "--log-level=warn",
    ]
    daemon = contextlib.ExitStack()
    try:
        with daemon:
            with _alone():
                _remove_rules()
                daemon.enter_context(
                    running(command, folder / "log", lambda: _answers(docker), None)
                )
            yield docker
            _remove_containers(docker)
    finally:
        _remove_rules()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let one daemon start at a time: two that do fail, as both make the same chain of iptables
    (Docker 20.10: "Chain already exists")."""
    with Path(tempfile.gettempdir(), "distrain-nb-dockerd.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _answers(docker: Docker) -> bool:
    if not docker.socket.exists():
        return False
    asked = subprocess.run([program("docker"), "info"], env=docker.env, capture_output=True)
    return asked.returncode == 0


def _remove_rules() -> None:
    """Remove the rules of bridges that are gone. A daemon that ends with a network leaves them, and
    they rewrite addresses on the next network that gets the same ones."""
    listed = subprocess.run(["iptables", "-t", "nat", "-S"], capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        bridge = re.search(r"! -o (br-\w+)", line)
        if bridge and not Path("/sys/class/net", bridge[1]).exists():
            delete = ["iptables", "-w", "-t", "nat", "-D", *line.split()[1:]]
            subprocess.run(delete, capture_output=True, check=False)  # another session may be first


def _remove_containers(docker: Docker) -> None:
    for kind, listing in (("rm", ("ps", "-aq")), ("network", ("network", "ls", "-q"))):
        found = docker(*listing).split()
        if kind == "rm" and found:
            docker("rm", "-f", *found)
        elif kind == "network":
            docker("network", "prune", "-f")
