"""Two hosts of a training job, each in a network of its own, with real mpirun and TensorFlow."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.rank import values
from distrain_nb.worker.replica import contracts
from tests.conftest import eventually
from tests.sagemaker.cells import PARAMETER_SERVERS
from tests.worker.hosts import NAMES, Hosts, finish, network, terminate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

MPI = {"DISTRAIN_LAUNCHER": "mpi", "DISTRAIN_RANKS": "2"}

SUM = """
from mpi4py import MPI
import os
world = MPI.COMM_WORLD
host, channel = os.environ["SM_CURRENT_HOST"], os.environ["SM_CHANNEL_TRAIN"]
print("sum", world.allreduce(1), "on", host, MPI.Get_processor_name(), channel)
assert os.environ["RANK"] == str(world.rank)
print("debug", os.environ["NCCL_DEBUG"], os.environ["SEEN"])
answer = world.size
"""

FAIL = """
from mpi4py import MPI
import time
MPI.COMM_WORLD.barrier()
if MPI.COMM_WORLD.rank == 2:
    raise ValueError("no good")
time.sleep(600)
"""

STOP = """
from mpi4py import MPI
import signal, sys, time
def stop(*_):
    print("told to stop", flush=True)
    MPI.COMM_WORLD.barrier()
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
MPI.COMM_WORLD.barrier()
print("ready", flush=True)
while True:
    time.sleep(1)
"""


@pytest.fixture(scope="module")
def cable() -> Iterator[tuple[str, ...]]:
    with network() as namespaces:
        yield namespaces


@pytest.fixture
def hosts(cable: tuple[str, ...], tmp_path: Path) -> Hosts:
    return Hosts(tmp_path / "job", cable)


def test_mpirun_reaches_the_other_host(hosts: Hosts) -> None:
    hosts.job(SUM, channels={"train": {"TrainingInputMode": "File"}})
    options = (
        "-verbose --NCCL_DEBUG=INFO -x SEEN=1 -x OMPI_MCA_btl_vader_single_copy_mechanism=none"
    )
    told = {"DISTRAIN_RESULTS": "answer", "DISTRAIN_OUTPUT": "/opt/ml/output/data"}
    first, second = hosts.run(**MPI, DISTRAIN_MPI_OPTIONS=options, **told)
    for number, (name, ended) in enumerate(zip(NAMES, (first, second), strict=True)):
        assert ended.status == 0, ended
        ranks = (2 * number, 2 * number + 1)
        assert sorted(line for line in ended.lines if "sum" in line) == [
            f"[rank {rank}] sum 4 on {name} {name} /opt/ml/input/data/train" for rank in ranks
        ]
        assert {f"[rank {rank}] debug INFO 1" for rank in ranks} <= set(ended.lines)
    saved = hosts.ml("algo-1") / "output/data/results"
    assert values.load(saved)["answer"] == 4
    assert not (hosts.ml("algo-2") / "output/data/results").exists()


def test_a_rank_that_fails_ends_all_hosts(hosts: Hosts) -> None:
    hosts.job(FAIL)
    first, second = hosts.run(**MPI)
    assert (first.status, second.status) == (1, 1), (first, second)
    assert "[rank 2] ValueError: no good" in second.error.splitlines()
    failure = (hosts.ml("algo-2") / "output/failure").read_text()
    assert failure.startswith("rank 2 failed first: ValueError: no good\n")
    failure = (hosts.ml("algo-1") / "output/failure").read_text()
    assert failure.startswith("rank 2 on algo-2 failed first: ValueError: no good\nTraceback")
    assert failure.endswith("rank 0: stopped\nrank 1: stopped")


def test_a_stop_reaches_every_rank_and_gives_it_time(hosts: Hosts) -> None:
    hosts.job(STOP)
    started = [hosts.start(name, **MPI) for name in NAMES]
    for process in started:
        assert process.stdout is not None
        assert all("ready" in process.stdout.readline() for _ in range(2))
    for process in started:
        terminate(process)
    for number, ended in enumerate(finish(started)):
        assert ended.status == 143, ended
        ranks = (2 * number, 2 * number + 1)
        for text in ("told to stop", "saved"):
            assert {f"[rank {rank}] {text}" for rank in ranks} <= set(ended.lines)


AGENT = [sys.executable, "-m", "distrain_nb.worker.replica.remote_start"]


@dataclass(frozen=True)
class Waiting:
    """A host that waits for a command; `told` are the variables of its run."""

    process: subprocess.Popen[bytes]
    port: int
    told: dict[str, str]

    def connect(self) -> socket.socket:
        """A connection on which the challenge has come."""
        assert eventually(self._is_up)
        connection = socket.create_connection(("127.0.0.1", self.port), 60)
        assert len(connection.recv(100)) == 65
        return connection

    def _is_up(self) -> bool:
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", self.port)) == 0

    def ask(self, command: str, **told: str) -> subprocess.CompletedProcess[str]:
        """As `mpirun` on the primary does."""
        return subprocess.run(
            [*AGENT, "127.0.0.1", command],
            env={**self.told, **told},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Waiting]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    (tmp_path / "main.py").write_text("print('the program')\n")
    Launch((), "/", awaits=address).write(tmp_path)
    spec = {"cluster": {"workerpool0": [address]}, "task": {"type": "workerpool0", "index": 0}}
    told = {"DISTRAIN_RUN": "run-1", "DISTRAIN_PROGRAM": str(tmp_path)}
    told["CLUSTER_SPEC"] = json.dumps(spec)
    with subprocess.Popen([*AGENT, "--wait", str(tmp_path)], env=told) as process:
        yield Waiting(process, port, told)
        process.kill()


def test_a_stranger_starts_nothing(waiting: Waiting, tmp_path: Path) -> None:
    """Whoever can't prove that it knows the run is turned away, and the host goes on waiting."""
    mark = tmp_path / "started"
    command = f"touch {mark}; exit 7"
    stranger = waiting.ask(command, DISTRAIN_RUN="run-2")
    assert stranger.returncode == 1
    assert "127.0.0.1 did not start a process for mpirun" in stranger.stderr
    assert not mark.exists()
    assert waiting.ask(command).returncode == 7
    assert waiting.process.wait(60) == 7
    assert mark.exists()


MALFORMED = (
    b"\n",
    b"\0\xff\xfe\n",
    b"[" * 100_000 + b"\n",
    b'{"command": "true", "proof": "\xc3\xa4"}\n',
    b'{"command": "\\ud800", "proof": "\\ud800"}\n',
    "\N{LATIN SMALL LETTER A WITH DIAERESIS} true\n".encode(),
    b"0" * 64 + b" " + b'"true"\n',
    b"x" * (2 << 20),
)


def test_nothing_that_is_sent_ends_the_wait(waiting: Waiting) -> None:
    for message in MALFORMED:
        with waiting.connect() as connection, suppress(ConnectionError):
            connection.sendall(message)
            assert connection.recv(1) == b"", message[:40]
    assert waiting.ask("exit 7").returncode == 7


def test_idle_connections_keep_nobody_out(waiting: Waiting) -> None:
    idle = [waiting.connect() for _ in range(80)]
    assert idle[0].recv(1) == b"", "the oldest make room"
    assert waiting.ask("exit 7").returncode == 7
    for connection in idle:
        connection.close()


def test_an_idle_connection_is_closed_soon(waiting: Waiting) -> None:
    with waiting.connect() as connection:
        assert connection.recv(1) == b""
    assert waiting.process.poll() is None


def test_each_host_has_a_worker_and_a_parameter_server(hosts: Hosts) -> None:
    hosts.job(PARAMETER_SERVERS)
    told = {"DISTRAIN_LAUNCHER": "parameter-server", "DISTRAIN_PRELOAD": "tensorflow.compat.v1"}
    for number, ended in enumerate(hosts.run(**told)):
        assert ended.status == 0, ended
        config = json.dumps(contracts.parameter_servers(NAMES, number, "chief"))
        assert f"[rank {number}] TF_CONFIG {config}" in ended.lines
        assert f"[rank {number}] learned True in 200 steps of all" in ended.lines
        assert f"[ps {number}]" in ended.error


def test_tf_config_is_what_the_containers_write() -> None:
    hosts = ("algo-1", "algo-2", "algo-3")
    cluster = {
        "master": ["algo-1:2222"],
        "ps": ["algo-1:2223", "algo-2:2223", "algo-3:2223"],
        "worker": ["algo-2:2222", "algo-3:2222"],
    }
    first = contracts.parameter_servers(hosts, 0, "master")
    assert first["cluster"] == cluster
    assert first["task"] == {"index": 0, "type": "master"}
    last = contracts.parameter_servers(hosts, 2, "master")
    assert last["task"] == {"index": 1, "type": "worker"}
    server = contracts.parameter_servers(hosts, 2, "master", serves=True)
    assert server["task"] == {"index": 2, "type": "ps"}
    assert contracts.parameter_servers(hosts[:1], 0, "chief")["cluster"] == {
        "chief": ["algo-1:2222"]
    }
    assert contracts.mirrored(hosts, 1) == {
        "cluster": {"worker": ["algo-1:8890", "algo-2:8890", "algo-3:8890"]},
        "environment": "cloud",
        "task": {"index": 1, "type": "worker"},
    }
