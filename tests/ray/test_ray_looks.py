"""How the driver of a job on Ray hears its replicas: those that write much, and one that hangs."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

import distrain_nb as d
from distrain_nb.run import Run

from .conftest import RayCluster, wait_for

pytestmark = pytest.mark.slow  # it starts a cluster

PRINTS = """
import time
begun = time.time()
while time.time() < begun + {seconds}:
    print("a line", flush=True)
    time.sleep(0.005)
"""


@pytest.fixture(autouse=True)
def own_home(home: Path) -> None:
    """No test sees the runs of another."""


def lines_of(run: Run, rank: int) -> int:
    return str(run.logs()).count(f"[rank {rank}] a line")


def test_much_that_is_written_makes_no_more_parcels_than_are_fetched(cluster: RayCluster) -> None:
    options = cluster.options(cpus="1", workers=2)
    run = d.submit(PRINTS.format(seconds=8), **options, name="chatty", wait=True)
    (folder,) = cluster.folder.glob("session_2*/logs/distrain/chatty-*")
    written = sorted(path.stat().st_mtime for path in folder.iterdir())
    assert len(written) < 6 * (written[-1] - written[0]) + 5
    assert lines_of(run, 0) > 100 and lines_of(run, 1) > 100


def test_a_replica_that_hangs_keeps_no_lines_of_others(cluster: RayCluster) -> None:
    run = d.submit(
        PRINTS.format(seconds=600), **cluster.options(cpus="1", workers=2), name="hangs"
    )  # fmt: skip
    wait_for(lambda: lines_of(run, 0) and lines_of(run, 1))
    actors = [p for p in psutil.process_iter(["cmdline"]) if "ReplicaActor" in _words(p)]
    before = lines_of(run, 0), lines_of(run, 1)
    hung, *_ = actors
    hung.suspend()
    try:
        wait_for(lambda: max(lines_of(run, n) - before[n] for n in range(2)) > 2000, 60)
    finally:
        hung.resume()
    held = min(range(2), key=lambda rank: lines_of(run, rank))
    came = lines_of(run, held)
    wait_for(lambda: lines_of(run, held) > came + 1000, 60)
    run.cancel()
    wait_for(lambda: run.state.final)


def _words(process: psutil.Process) -> str:
    return " ".join(process.info["cmdline"] or [])
