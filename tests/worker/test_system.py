"""What the operating system is asked for."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb.worker.machine import ports, process_table
from distrain_nb.worker.machine.ports import HeldPort
from distrain_nb.worker.machine.system import until_one_ends

DESCRIPTORS = Path("/proc/self/fd")
LONGER_THAN_A_TEST_MAY_S = 10_000


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "infinity"])
    yield process
    process.kill()
    process.wait()


def test_one_of_two_processes_is_waited_for(sleeper: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen(["sleep", "0.2"]) as brief:
        until_one_ends([sleeper.pid, brief.pid], LONGER_THAN_A_TEST_MAY_S)
        assert brief.poll() is not None
        until_one_ends([sleeper.pid, brief.pid], LONGER_THAN_A_TEST_MAY_S)  # it is gone by now
    assert sleeper.poll() is None


def test_nobody_waits_for_ever_and_no_descriptor_is_left(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_before = len([*DESCRIPTORS.iterdir()])
    until_one_ends([sleeper.pid], 0.01)
    assert len([*DESCRIPTORS.iterdir()]) == open_before
    monkeypatch.delattr(os, "pidfd_open")  # as on macOS
    until_one_ends([sleeper.pid], 0.01)


def test_descendants_are_found_but_for_those_that_are_left_out(
    sleeper: subprocess.Popen[bytes],
) -> None:
    found = process_table.descendants(os.getpid())
    assert sleeper.pid in found
    assert not process_table.descendants(os.getpid(), without=found)
    with subprocess.Popen(["sleep", "infinity"]) as other:
        assert process_table.descendants(os.getpid(), without=found) == [other.pid]
        other.kill()


def test_a_held_port_is_none_that_the_system_gave_to_someone_before() -> None:
    highest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[1])
    assert HeldPort().number > highest


def test_no_port_is_held_twice_though_many_are() -> None:
    held = [HeldPort() for _ in range(500)]
    assert len({port.number for port in held}) == len(held)


@pytest.mark.parametrize(
    "ranges", ("1024\t65535", "", "none"), ids=("all are chosen from", "empty", "no numbers")
)
def test_a_port_is_held_where_no_number_is_set_apart(
    ranges: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = tmp_path / "ip_local_port_range"
    chosen.write_text(ranges)
    monkeypatch.setattr(ports, "_CHOSEN_PORTS", chosen)
    held = [HeldPort() for _ in range(50)]
    assert len({port.number for port in held}) == len(held)


@pytest.mark.parametrize(
    ("family", "host"),
    (
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET, "0.0.0.0"),
        (socket.AF_INET6, "::"),
    ),
)
def test_a_server_can_listen_on_a_held_port_once(family: socket.AddressFamily, host: str) -> None:
    held = HeldPort()
    with socket.socket(family) as server, socket.socket(family) as second:
        for each in (server, second):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, held.number))
        server.listen()
        socket.create_connection(("127.0.0.1", held.number), timeout=10).close()
        with pytest.raises(OSError, match="in use"):
            second.bind((host, held.number))


def test_an_address_that_cannot_be_had_is_named() -> None:
    with ports.listen("127.0.0.1:0") as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match=f"in use: '{address}'"):
            ports.listen(address)


# In a process of its own, whose libraries nobody has used: the exit status of its fork.
LIMITED = """
import os, sys
import numpy
from distrain_nb.worker.machine import threads

def number():
    return len(os.listdir("/proc/self/task"))

if os.fork() == 0:
    threads.limit(2)
    before = number()
    numpy.ones((500, 500)) @ numpy.ones((500, 500))
    os._exit(10 * before + number())
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_fork_that_is_limited_starts_threads_only_where_they_are_used() -> None:
    pytest.importorskip("numpy")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "4"}
    ended = subprocess.run([sys.executable, "-c", LIMITED], env=environment, check=False)
    assert ended.returncode in (11, 12)  # one of two; or one, of a build without threads
