"""From a cell to the first all_reduce in 2 × 2 ranks on an idle Ray cluster: ours, TorchTrainer.

A cluster of two nodes on this machine, started before; the rivals in turns, in the same run:
`python -m benchmarks.clusters_ray [ROUNDS]`. TorchTrainer is called where `ray.init` has been, ours
where the package has been imported. A first round doesn't count: it starts what a cluster starts
with its first job. The last line is one JSON object; times are medians in seconds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.machine import describe
from tests.ray.conftest import HEAD, RayCluster

RANKS, GIVEN_UP_AFTER_S = 4, 400.0
WORK = """
import os, time
import torch, torch.distributed as dist
if not dist.is_initialized():
    dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
open({marks!r} + "/" + str(dist.get_rank()), "w").write(repr(time.time()))
"""
OURS = """
import sys, distrain_nb as d
print("ready", flush=True)
sys.stdin.readline()
d.submit({work!r}, on="ray", workers=2, ranks_per_replica=2, address={where!r},
         python=sys.executable, wait=True)
"""
RIVAL = """
import os, sys, tempfile
os.environ["RAY_TRAIN_V2_ENABLED"] = "1"
import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer
ray.init(address={where!r}, log_to_driver=False)
def train():
    exec({work!r}, {{}})
print("ready", flush=True)
sys.stdin.readline()
TorchTrainer(
    train, torch_config=TorchConfig(backend="gloo"), scaling_config=ScalingConfig(
        num_workers=4, resources_per_worker={{"CPU": 1}}, placement_strategy="SPREAD"),
    run_config=RunConfig(storage_path=tempfile.mkdtemp()),
).fit()
"""


def sample(script: str, folder: Path, where: str) -> float:
    """Return the seconds from the call to the last rank's all_reduce."""
    marks = Path(tempfile.mkdtemp(dir=folder))
    environment = {**os.environ, "DISTRAIN_HOME": str(marks / "home")}
    filled = script.format(work=WORK.format(marks=str(marks)), where=where)
    with subprocess.Popen(
        [sys.executable, "-c", filled], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout
        while "ready" not in process.stdout.readline():
            assert process.poll() is None
        begun = time.time()
        process.stdin.write("go\n")
        process.stdin.flush()
        done: list[Path] = []
        while len(done) < RANKS and time.time() < begun + GIVEN_UP_AFTER_S:
            assert process.poll() in (None, 0)
            time.sleep(0.1)
            done = [path for path in marks.iterdir() if path.name.isdigit() and path.read_text()]
        times = [float(path.read_text()) for path in done]
        process.communicate(timeout=GIVEN_UP_AFTER_S)
    assert len(times) == RANKS, f"{len(times)} of {RANKS} ranks came to their all_reduce"
    return max(times) - begun


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else 3
    print(describe())
    taken: dict[str, list[float]] = {"ours": [], "raytrain": []}
    with tempfile.TemporaryDirectory(prefix="dr-", dir="/tmp") as folder:
        cluster = RayCluster(Path(folder))
        try:
            cluster.begin()
            for number in range(rounds + 1):
                for name, script, where in (
                    ("ours", OURS, cluster.address),
                    ("raytrain", RIVAL, f"{HEAD}:{cluster.ports[0]}"),
                ):
                    seconds = sample(script, Path(folder), where)
                    print(f"round {number}, {name}: {seconds:.1f} s", flush=True)
                    if number:
                        taken[name].append(seconds)
        finally:
            for host in list(cluster.nodes):
                cluster.kill(host)
    medians = {name: round(statistics.median(values), 2) for name, values in taken.items()}
    ratio = medians["ours"] / medians["raytrain"]
    print(json.dumps({**medians, "ray_over_raytrain": round(ratio, 3)}))


if __name__ == "__main__":
    main()
