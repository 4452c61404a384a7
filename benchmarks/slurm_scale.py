"""What runs of ours cost Slurm's controller: 100 at once in the list, and one on all nodes.

A real controller with NODES `slurmd` on this machine, whose load the times include:
`python benchmarks/slurm_scale.py [NODES] [RUNS]`. The runs are held in the queue, each followed by
a process of its own. The last line is one JSON object; `looks` are the controller's answers to our
`squeue` in a second, `look_ms` the time that one takes it. `files` are those of the replicas in the
folder that all nodes share, `code_files` all others there.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))
import distrain_nb as d
from benchmarks.machine import describe
from distrain_nb.backends.remote.sharing import CARRIER
from distrain_nb.config import home
from distrain_nb.places.slurm.plan import SCRIPT
from distrain_nb.run import Run
from tests.slurm.cluster import Cluster

WINDOW_S, PATIENCE_S = 20.0, 900.0
_RPC = re.compile(r"(\w+)\s+\(\s*\d+\) count:(\d+)\s+ave_time:(\d+)")


def wait_for(condition: object, what: str) -> float:
    """Seconds until something is so."""
    began = time.monotonic()
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < began + PATIENCE_S, what
        time.sleep(0.2)
    return time.monotonic() - began


def questions(cluster: Cluster) -> dict[str, tuple[int, float]]:
    """What the controller was asked since the last reset: how often, and milliseconds each."""
    text = cluster.run("sdiag").stdout.partition("Remote Procedure Call statistics by user")[0]
    return {name: (int(count), int(ave) / 1000) for name, count, ave in _RPC.findall(text)}


def carriers() -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if CARRIER in (p.info["cmdline"] or [])]


def cpu(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def in_the_list(cluster: Cluster, count: int) -> dict[str, object]:
    """So many held runs, each with a process that follows it."""
    began = time.monotonic()
    runs = [d.submit("1", on="slurm", sbatch="--hold", name=f"held{n}") for n in range(count)]
    submitted = time.monotonic() - began
    wait_for(lambda: all("held" in run.status.note for run in runs), "all runs say that they wait")
    shown = time.monotonic() - began
    mine = [process for process in carriers() if process.is_running()]
    controller = psutil.Process(cluster.pid("slurmctld"))
    cluster.run("sdiag", "--reset")
    begun, used, by_controller = time.monotonic(), cpu(mine), cpu([controller])
    time.sleep(WINDOW_S)
    passed = time.monotonic() - begun
    looks, took = questions(cluster).get("REQUEST_JOB_INFO", (0, 0.0))
    used, by_controller = cpu(mine) - used, cpu([controller]) - by_controller
    start = time.monotonic()
    assert len(list(d.runs())) >= count
    listed = time.monotonic() - start
    memory = sum(process.memory_info().rss for process in mine) / len(mine)
    for run in runs:
        run.cancel()
    wait_for(lambda: all(run.status.state.final for run in runs), "all runs have ended")
    return {
        "runs": count,
        "submitted_s": round(submitted, 1),
        "all_shown_s": round(shown, 1),
        "looks": round(looks / passed, 2),
        "look_ms": round(took, 2),
        "controller_cpu": round(by_controller / passed, 4),
        "carrier_cpu": round(used / passed / len(mine), 4),
        "carrier_mb": round(memory / 1e6, 1),
        "list_ms": round(1000 * listed, 1),
    }


def on_all_nodes(cluster: Cluster) -> dict[str, object]:
    """One run with a rank on each node: all that it asks of the controller."""
    cluster.wait_idle()
    cluster.run("sdiag", "--reset")
    began = time.monotonic()
    run: Run = d.submit("1", on="slurm", workers=cluster.count, cpus=1, name="all")
    run.wait(PATIENCE_S)
    took = time.monotonic() - began
    asked = questions(cluster)
    own = {n: c for n, c in asked.items() if not n.startswith(("MESSAGE_NODE", "REQUEST_STATS"))}
    (job,) = (home() / "slurm").iterdir()
    left = [path for path in job.rglob("*") if path.is_file()]
    of_replicas = [path for path in left if "replicas" in path.relative_to(job).parts]
    return {
        "nodes": cluster.count,
        "run_s": round(took, 1),
        "requests": {name: count for name, (count, _) in own.items()},
        "controller_ms": round(sum(count * ms for count, ms in own.values()), 1),
        "files": len(of_replicas),
        "files_kb": round(sum(path.stat().st_size for path in of_replicas) / 1e3, 1),
        "code_files": len(left) - len(of_replicas),
        "script_kb": round((job / SCRIPT).stat().st_size / 1e3, 2),
    }


def main(nodes: int = 64, runs: int = 100) -> None:
    print(describe())
    with tempfile.TemporaryDirectory(prefix="slurm-scale-") as name, ExitStack() as stack:
        cluster = Cluster(Path(name) / "cluster", count=nodes)
        os.environ.update(cluster.environment, DISTRAIN_HOME=f"{name}/home")
        stack.callback(cluster.stop)
        began = time.monotonic()
        cluster.start()
        print(f"{nodes} nodes idle after {time.monotonic() - began:.1f} s", flush=True)
        whole = on_all_nodes(cluster)
        print(json.dumps(whole), flush=True)
        print(json.dumps({"all_nodes": whole, "list": in_the_list(cluster, runs)}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
