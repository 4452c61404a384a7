"""A link that is cut in the middle of an exchange, between network namespaces."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from benchmarks.links import Shape, switched
from tests.conftest import eventually

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CUT_S = 10.0
STILL_S = 2.0
PORT = 29_501
EXCHANGES = 10

# Two ranks that do nothing but exchange 2 MB, by links on which that takes two thirds of a second.
MEMBER = """
import sys, threading
import torch
from distrain_nb.worker.reduction.exchange import Exchange
from distrain_nb.worker.reduction.tensor_bytes import bytes_of
from distrain_nb.worker.reduction.protocol import Greeting

address, member, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
exchange = Exchange([address], Greeting("group", (0, 1), member))
for step in range(number):
    tensor = torch.full((500_000,), step + member, dtype=torch.float32)
    over, errors = threading.Event(), []
    exchange.reduce(
        bytes_of(tensor), "float32", False, 600.0, lambda e: (errors.append(e), over.set())
    )
    over.wait()
    assert errors == [None], errors
    assert bool((tensor == 2 * step + 1).all())
    print("exchange", step, flush=True)
exchange.close()
"""


def test_a_link_that_is_cut_for_a_while_is_waited_for(tmp_path: Path) -> None:
    with switched(3, Shape(50, 0)) as nodes, ExitStack() as stack:
        address = f"{nodes[2].address}:{PORT}"
        said = [tmp_path / f"member {n}" for n in (0, 1)]

        def start(node: int, *words: str, log: Path) -> subprocess.Popen[bytes]:
            command = nodes[node].command(sys.executable, *words)
            process = subprocess.Popen(
                command, stdout=stack.enter_context(log.open("wb")), stderr=subprocess.STDOUT
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        def done() -> list[int]:
            return [log.read_text().count("exchange") for log in said]

        def nothing_passes() -> bool:
            before = done()
            time.sleep(STILL_S)
            return done() == before

        serving = ("-m", "distrain_nb.worker.reduction.reducer", address)
        start(2, *serving, log=tmp_path / "reducer")
        members = [
            start(n, "-c", MEMBER, address, str(n), str(EXCHANGES), log=said[n]) for n in (0, 1)
        ]
        assert eventually(lambda: min(done()) > 2), [log.read_text() for log in said]
        link = [
            "ip",
            "-n",
            nodes[2].namespace.rpartition("-")[0] + "-switch",
            "link",
            "set",
            "port2",
        ]
        subprocess.run([*link, "down"], check=True)
        assert eventually(nothing_passes)
        time.sleep(CUT_S - STILL_S)
        assert max(done()) < EXCHANGES
        subprocess.run([*link, "up"], check=True)
        assert [process.wait(240) for process in members] == [0, 0], [x.read_text() for x in said]


WORKERS = 8
AT_ONCE = """
import sys, threading, time
from array import array
from distrain_nb.worker.reduction.exchange import Exchange
from distrain_nb.worker.reduction.protocol import Greeting

address, member, late_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
exchange = Exchange([address], Greeting("group", tuple(range(8)), member))
for wait_s in (0, late_s):
    time.sleep(wait_s)
    numbers = array("f", [member]) * 1_500_000
    over, errors = threading.Event(), []
    exchange.reduce(
        memoryview(numbers).cast("B"), "float32", False, 600.0,
        lambda e: (errors.append(e), over.set()),
    )
    over.wait()
    assert errors == [None], errors
    assert set(numbers) == {28.0}
exchange.close()
"""


def test_the_port_that_leads_to_a_reducer_loses_nothing() -> None:
    """Though workers come to an exchange one after the other, and send what they can at once."""
    with switched(WORKERS + 1, Shape(100, 0)) as nodes, ExitStack() as stack:
        address = f"{nodes[WORKERS].address}:{PORT}"

        def start(node: int, *words: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(nodes[node].command(sys.executable, *words))
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        start(WORKERS, "-m", "distrain_nb.worker.reduction.reducer", address)
        members = [start(n, "-c", AT_ONCE, address, str(n), str(n / 20)) for n in range(WORKERS)]
        assert [process.wait(240) for process in members] == [0] * WORKERS
        switch = nodes[0].namespace.rpartition("-")[0] + "-switch"
        command = ["tc", "-s", "-n", switch, "qdisc", "show", "dev", f"port{WORKERS}"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "dropped 0," in shown, shown
