"""What a process waits for, as Linux shows it: real processes, calls and connections."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from distrain_nb.worker.machine import waits
from distrain_nb.worker.machine.connections import ITSELF, OUTSIDE, RANK, Connections
from distrain_nb.worker.machine.waits import Look
from tests.conftest import eventually

ASKS = "import socket, sys; client = socket.create_connection((sys.argv[1], int(sys.argv[2])));"


@contextmanager
def process(code: str, *arguments: object) -> Iterator[int]:
    """A process that runs until the block ends."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command) as child:
        try:
            yield child.pid
        finally:
            child.kill()


def waits_in(pid: int, call: str, *ranks: int) -> Look:
    """Look at a process as soon as it waits in a call, beside other ranks."""
    looks: list[Look] = []

    def seen() -> bool:
        looks.append(waits.look([pid, *ranks], {})[pid])
        return looks[-1].call == call

    assert eventually(seen, 60)
    return looks[-1]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize(("how", "call"), [("", "recv"), ("client.settimeout(99);", "poll")])
def test_who_can_answer_on_a_connection(host: str, how: str, call: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        with process(f"{ASKS}{how}client.recv(1)", host, port) as pid:
            # Not accepted yet, and then: who looks holds the other end, as the store of the ranks.
            assert waits_in(pid, call).answerer == RANK
            with server.accept()[0]:
                seen = waits_in(pid, call)
                assert (seen.answerer, seen.is_limited) == (RANK, call == "poll")
                peer = Connections(pid).peer(seen.target)
                assert peer.rpartition(":")[2] == str(port)
                assert socket.inet_pton(family, peer.rpartition(":")[0].strip("[]"))


def test_a_server_that_is_no_rank_is_outside() -> None:
    serves = "import socket, time; s = socket.create_server(('127.0.0.1', 0));"
    serves += "print(s.getsockname()[1], flush=True); time.sleep(99)"
    with subprocess.Popen([sys.executable, "-c", serves], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        with process(f"{ASKS}client.recv(1)", "127.0.0.1", port) as pid:
            assert waits_in(pid, "recv").answerer == OUTSIDE
            assert waits_in(pid, "recv", server.pid).answerer == RANK
            parent = waits.look([os.getpid()], {})[os.getpid()]
            assert [c.is_outside for c in parent.children if c.pid == pid] == [True]
        threads = f"import threading; {ASKS}threading.Thread(target=client.recv, args=[1]).start();"
        with process(f"{threads}threading.Lock().acquire(); input()", "127.0.0.1", port) as pid:
            assert eventually(lambda: waits.look([pid], {})[pid].threads_outside, 60)
        server.kill()


def test_a_process_that_nobody_can_answer_but_itself() -> None:
    code = "import socket; s = socket.create_server(('127.0.0.1', 0));"
    code += "socket.create_connection(s.getsockname()).recv(1)"
    with process(code) as pid:
        assert waits_in(pid, "recv").answerer == ITSELF


@pytest.mark.parametrize(
    ("code", "call", "limited"),
    [
        ("import threading; threading.Event().wait(99)", "futex", True),
        ("import threading; threading.Event().wait()", "futex", False),
        ("import asyncio; asyncio.run(asyncio.sleep(99))", "epoll", True),
        ("import select, os; select.select(os.pipe()[:1], [], [], 99)", "select", True),
        ("import select, os; select.select(os.pipe()[:1], [], [])", "select", False),
    ],
)
def test_a_call_that_ends_by_itself(code: str, call: str, limited: bool) -> None:
    with process(code) as pid:
        seen = waits_in(pid, call)
    assert (seen.is_limited, seen.answerer, seen.target) == (limited, "", "")
