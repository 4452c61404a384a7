"""What a run of ours costs a Ray cluster, by its nodes: `python benchmarks/ray_scale.py [NODES…]`.

A real cluster with so many raylets on this machine (4, 16), whose load the times include, and one
run with an actor and a rank on each node; `8*8` has eight actors on each of eight nodes. The ranks
print a line, are silent, then print LINES lines a second each (10). The last line is one JSON
object by the nodes:

- `request_kb`, `package_kb`: the job's request, and the code that it uploads;
- `first_s`: from submission to the first line of the last rank;
- `silent`, `busy`: a second's `requests` to the dashboard with their `kb`; the CPU of the `driver`,
  the `carrier`, an `actor`, and the `head`'s own processes (GCS, dashboard, raylet, agents);
- `looks`, `look_cpu_ms`: the driver's looks a second at all actors that brought something, and the
  CPU that one takes; `behind`: parcels that are written and not fetched;
- `driver_mb`, `carrier_mb`, `node_mb` (PSS); `files`, `gcs_files`: open files of driver and GCS;
- `ended_s`: from the request to cancel to the end of the run.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))
import distrain_nb as d
from benchmarks.counting import Counting
from benchmarks.machine import describe
from distrain_nb.backends.remote.sharing import CARRIER
from distrain_nb.places.ray.service import NEXT
from distrain_nb.run import Run
from distrain_nb.worker.files.folder import LOG_FILE
from tests.ray.conftest import HEAD, RayCluster, wait_for

SETTLES_S, WINDOW_S, PATIENCE_S = 5.0, 20.0, 900.0
LINES = int(os.environ.get("LINES", "10"))
CPUS = 4  # of a node
PROGRAM = """
import time
from pathlib import Path
print("begun", flush=True)
go = Path({go!r})
while not go.exists():
    time.sleep(0.2)
number = 0
while True:
    print("a line of a rank that trains,", number, flush=True)
    number += 1
    time.sleep(1 / {lines})
"""


def of(word: str) -> list[psutil.Process]:
    """All processes with that word in their command."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(word in part for part in process.info["cmdline"] or [])
    ]


def cpu(processes: list[psutil.Process]) -> float:
    """CPU seconds of processes that are there yet."""
    total = 0.0
    for process in processes:
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:2])
    return total


def pss(processes: list[psutil.Process]) -> float:
    """Their share of the memory, in MB."""
    return sum(process.memory_full_info().pss for process in processes) / 1e6


@dataclass
class Parts:
    """The processes of a job and of its cluster."""

    cluster: RayCluster
    folder: Path  # of the parcels

    def __post_init__(self) -> None:
        (self.driver,) = (p for p in of("ray.driver") if "python" in p.name())
        (self.carrier,) = of(CARRIER)
        head = psutil.Process(self.cluster.nodes[HEAD].pid)
        workers = {p.pid for p in of("ray::")} | {self.driver.pid}
        self.head = [p for p in head.children(recursive=True) if p.pid not in workers]
        last = psutil.Process(self.cluster.nodes[list(self.cluster.nodes)[-1]].pid)
        self.node = [last, *last.children(recursive=True)]
        self.actors = of("ray::ReplicaActor")
        (self.gcs,) = of("gcs_server")

    @property
    def parcels(self) -> int:
        """How many parcels the driver has written."""
        return sum(1 for _ in self.folder.glob("[0-9]*[0-9]"))

    def all(self) -> dict[str, list[psutil.Process]]:
        """The processes whose CPU is told apart."""
        return {
            "driver": [self.driver], "carrier": [self.carrier], "head": self.head,
            "actor": self.actors,
        }  # fmt: skip


def watched(parts: Parts, proxy: Counting) -> dict[str, float]:
    """What a second costs, in a window."""
    requests, kb, parcels = proxy.requests, proxy.answered, parts.parcels
    before = {name: cpu(processes) for name, processes in parts.all().items()}
    begun = time.monotonic()
    time.sleep(WINDOW_S)
    took = time.monotonic() - begun
    used = {name: cpu(processes) - before[name] for name, processes in parts.all().items()}
    used["actor"] /= len(parts.actors)
    looks = parts.parcels - parcels
    return {
        "requests": round((proxy.requests - requests) / took, 2),
        "kb": round((proxy.answered - kb) / took / 1e3, 1),
        **{name: round(seconds / took, 4) for name, seconds in used.items()},
        "looks": round(looks / took, 2),
        **({"look_cpu_ms": round(1000 * used["driver"] / looks, 2)} if looks else {}),
    }


def begun(run: Run) -> int:
    """How many ranks have said a first line."""
    try:
        return (run.folder / LOG_FILE).read_bytes().count(b"begun")
    except FileNotFoundError:
        return 0


def one_run(cluster: RayCluster, nodes: int, each: int, go: Path) -> dict[str, object]:
    """A run with so many ranks on each node: what it takes at each step."""
    ranks, cpus = nodes * each, f"{min(1, CPUS / each):g}"
    with Counting(cluster.ports[1]) as proxy:
        options = {**cluster.options(), "address": proxy.address, "placement": "SPREAD"}
        start = time.monotonic()
        run = d.submit(
            PROGRAM.format(go=str(go), lines=LINES),
            **options, workers=ranks, cpus=cpus, name=f"scale{ranks}",
        )  # fmt: skip
        wait_for(lambda: begun(run) >= ranks or run.state.final, PATIENCE_S)
        assert not run.state.final, run.status.note
        first = time.monotonic() - start
        (folder,) = cluster.folder.glob(f"session_2*/logs/distrain/scale{ranks}-*")
        parts = Parts(cluster, folder)
        time.sleep(SETTLES_S)
        silent = watched(parts, proxy)
        go.touch()
        time.sleep(SETTLES_S)
        busy = watched(parts, proxy)
        fetched = int((run.folder / "ray" / NEXT).read_text()) - 1
        row = {
            "ranks": ranks, "nodes": len(cluster.nodes), "first_s": round(first, 1),
            "request_kb": round(proxy.posted / 1e3, 2), "package_kb": round(proxy.put / 1e3, 1),
            "silent": silent, "busy": busy, "behind": parts.parcels - fetched,
            "driver_mb": round(pss([parts.driver]), 1),
            "carrier_mb": round(pss([parts.carrier]), 1),
            "node_mb": round(pss(parts.node), 1),
            "files": parts.driver.num_fds(), "gcs_files": parts.gcs.num_fds(),
        }  # fmt: skip
        start = time.monotonic()
        run.cancel()
        wait_for(lambda: run.state.final, PATIENCE_S)
        return {**row, "ended_s": round(time.monotonic() - start, 1)}


def main(*sizes: str) -> None:
    print(describe("ray"))
    rows: dict[str, object] = {}
    for size in sizes or ("4", "16"):
        nodes, _, each = size.partition("*")
        folder = Path(tempfile.mkdtemp(prefix="dr-", dir="/tmp"))  # paths of sockets are short
        os.environ["DISTRAIN_HOME"] = str(folder / "home")
        cluster = RayCluster(folder)
        try:
            start = time.monotonic()
            cluster.begin_alone()
            cluster.more(int(nodes) - 1)
            print(f"{nodes} nodes after {time.monotonic() - start:.0f} s", flush=True)
            row = one_run(cluster, int(nodes), int(each or 1), folder / "go")
            print(json.dumps(row), flush=True)
            rows[size] = row
        finally:
            for host in list(cluster.nodes):
                cluster.kill(host)
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
