"""A Ray cluster of two nodes on this machine, once a session: `RayCluster` for its tests."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from distrain_nb.worker.files.disk import replace_file
from tests.browser.jupyter import WITHOUT
from tests.image.services.processes import ending_with_tests
from tests.tensorflow_cells import BESIDE_JAX, leave_out

HEAD, SECOND = "127.0.0.3", "127.0.0.2"  # 127.0.0.1 is replaced by the machine's own address
UP_WITHIN_S, TRIES, TOGETHER = 900.0, 3, 4
# A busy machine takes long to start processes: Ray would end them before they are up, and again.
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",  # where this user has a token, Ray would ask for it
    "RAY_prestart_worker_first_driver": "0",
    "RAY_agent_register_timeout_ms": "200000",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_raylet_start_wait_time_s": "600",
}
# A killed node is noticed sooner; one that is only slow has as long as by default, and longer.
SOON = {"RAY_health_check_period_ms": "300", "RAY_health_check_timeout_ms": "30000"}
# Ray 2.60 ends a node whose agents haven't written their ports within 15 seconds, as on a busy
# machine: so these files, by the options that say a port, are written for them.
AGENTS = {
    "dashboard-agent-listen": "dashboard_agent_listen_port",
    "dashboard-agent-grpc": "metrics_agent_port",
    "metrics-export": "metrics_export_port",
    "runtime-env-agent": "runtime_env_agent_port",
}
# Jobs come by the dashboard, which reads log files by itself, and ours start what they need.
LEFT_OUT = ("--include-log-monitor=false",)
GROUP = "small"
TOKEN = "t0ken-" + "4" * 30


@dataclass
class RayCluster:
    """Two nodes with four CPUs each; the second is of the worker group `small`."""

    folder: Path
    ports: list[int] = field(default_factory=list)
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    login: dict[str, str] = field(default_factory=dict)  # headers of requests
    left_out: tuple[str, ...] = BESIDE_JAX  # modules that no process of it can import
    # Where nodes that were started have their sessions, with the files that are written for them.
    files: list[tuple[Path, dict[str, int]]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.ports[1]}"

    @property
    def without(self) -> Path:
        """What TensorFlow's ranks do without."""
        return self.folder / "without"

    def options(self, **more: Any) -> dict[str, Any]:
        return {"on": "ray", "address": self.address, "python": sys.executable, **more}

    def start(self, host: str, *more: str) -> None:
        """Start a node, without waiting for it."""
        ports = {name: free_port() for name in AGENTS}
        identity = secrets.token_hex(28)
        command: list[str | Path] = [
            str(Path(sys.executable).with_name("ray")), "start", "--block", "--disable-usage-stats",
            f"--node-ip-address={host}", "--num-cpus=4", "--object-store-memory=80000000",
            "--min-worker-port=0", "--max-worker-port=0",
            *(f"--{name}-port={port}" for name, port in ports.items()),
            *LEFT_OUT,
            *more,
        ]  # fmt: skip
        environment = {
            **QUIET, **SOON, **os.environ, "RAY_OVERRIDE_NODE_ID_FOR_TESTING": identity,
            # Ray imports jsonschema in each process: 2.1 s of CPU for it, 0.7 s without.
            "PYTHONPATH": os.pathsep.join(
                filter(None, (str(WITHOUT), str(self.without), os.environ.get("PYTHONPATH")))
            ),
        }  # fmt: skip
        place = self.folder
        if "--head" not in more:  # as on another machine, it unpacks code into a folder of its own
            place = self.folder / f"of-{host}"
            place.mkdir(exist_ok=True)
            bound = 'mount --bind "$0" "$1" && shift && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", bound, place, self.folder, *command]
        files = {f"{AGENTS[name]}_{identity}": port for name, port in ports.items()}
        self.files.append((place, files))
        with (self.folder / f"{host}.log").open("wb") as log:
            self.nodes[host] = subprocess.Popen(
                ending_with_tests(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, env=environment,
            )  # fmt: skip

    def begin(self) -> None:
        """Start both nodes and wait for them."""
        self.begin_alone()
        self.join()

    def join(self) -> None:
        """Start the second node, which a test may have killed, and wait for it."""
        second = f"--address={HEAD}:{self.ports[0]}"
        self.up(SECOND, 2, second, f"--labels=ray.io/node-group={GROUP}")

    def begin_alone(self) -> None:
        """Start the head alone and wait for it."""
        self.ports = [free_port(), free_port()]
        self.without.mkdir()
        leave_out(self.without, self.left_out)
        port, dashboard = self.ports
        self.up(
            HEAD, 1, "--head", f"--port={port}", "--dashboard-host=127.0.0.1",
            f"--dashboard-port={dashboard}", f"--temp-dir={self.folder}",
            f"--ray-client-server-port={free_port()}", "--no-monitor",
        )  # fmt: skip

    def up(self, host: str, count: int, *more: str) -> None:
        """Start a node, again if it ends, until there are so many."""
        for _ in range(TRIES):
            self.start(host, *more)
            node = self.nodes[host]
            is_up = partial(self._has, count, node)
            wait_for(is_up, UP_WITHIN_S)
            if node.poll() is None:
                return
            self.kill(host)
        raise AssertionError((self.folder / f"{host}.log").read_text()[-3000:])

    def more(self, count: int) -> None:
        """Start so many more nodes, a few side by side, and those again that end."""
        hosts = [f"127.0.1.{number + 1}" for number in range(count)]
        for first in range(0, count, TOGETHER):
            together = hosts[first : first + TOGETHER]
            for host in together:
                self.start(host, f"--address={HEAD}:{self.ports[0]}")
            wait_for(partial(self._have_come, together), UP_WITHIN_S)

    def _have_come(self, hosts: list[str]) -> bool:
        for host in hosts:
            if self.nodes[host].poll() is not None:
                self.start(host, f"--address={HEAD}:{self.ports[0]}")
        return self._has(len(self.nodes), self.nodes[HEAD])

    def _has(self, count: int, node: subprocess.Popen[bytes]) -> bool:
        for place, files in self.files:
            latest = place / "session_latest"
            # The link's own target is below the folder of the head, as only the node sees it.
            session = place / latest.readlink().name if latest.is_symlink() else latest
            for name, port in files.items() if session.is_dir() else ():
                if not (session / name).exists():
                    replace_file(session / name, str(port).encode())
        return len(self.rows("nodes")) == count or node.poll() is not None

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """What the cluster says of its nodes or actors that are alive."""
        try:
            answer = httpx.get(
                f"{self.address}/api/v0/{kind}",
                params={"limit": 1000}, headers=self.login, timeout=60,
            )  # fmt: skip
        except httpx.HTTPError:
            return []
        rows = answer.json()["data"]["result"]["result"] if answer.is_success else []
        return [row for row in rows if row["state"] == "ALIVE"]

    def replicas(self) -> int:
        """How many replicas' actors are alive."""
        return sum("ReplicaActor" in row["class_name"] for row in self.rows("actors"))

    def ranks(self) -> list[psutil.Process]:
        """The processes that started ranks on any node."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if any(word.endswith("/start.py") and "distrain-" in word for word in words):
                found.append(process)
        return found

    def kill(self, host: str) -> None:
        """End a node with all its processes, at once."""
        node, processes = self.nodes.pop(host), list[psutil.Process]()
        with contextlib.suppress(psutil.NoSuchProcess):
            processes = psutil.Process(node.pid).children(recursive=True)
        for process in processes:
            if process.is_running():
                process.kill()
        node.kill()
        node.wait()
        psutil.wait_procs(processes, timeout=10)


def wait_for(condition: Callable[[], Any], within_s: float = 300.0) -> None:
    """Look until something is so."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f"not so within {within_s:g} s"
        time.sleep(0.2)


def free_port() -> int:
    """Return a port that no connection gets by itself before the node's process has it."""
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    """A cluster of one node that asks for the token in the user's home, as Ray does by itself."""
    folder = Path(tempfile.mkdtemp(prefix="dt-", dir="/tmp"))
    token = tmp_path / "user" / ".ray" / "auth_token"
    token.parent.mkdir(parents=True)
    token.write_text(TOKEN)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    started = RayCluster(folder, login={"Authorization": f"Bearer {TOKEN}"})
    try:
        monkeypatch.setenv("RAY_AUTH_MODE", "token")
        started.begin_alone()
        monkeypatch.delenv("RAY_AUTH_MODE")
        yield started
    finally:
        for host in list(started.nodes):
            started.kill(host)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster() -> Iterator[RayCluster]:
    folder = Path(tempfile.mkdtemp(prefix="dr-", dir="/tmp"))  # paths of sockets are short
    started = RayCluster(folder)
    try:
        started.begin()
        yield started
    finally:
        for host in list(started.nodes):
            started.kill(host)
        shutil.rmtree(folder, ignore_errors=True)
