"""From a cell to the first all_reduce in 2 x 2 ranks on two idle nodes, on Slurm and on Ray.

Ours against submitit with torchrun, and against Ray Train's TorchTrainer. Every sample is sent to a
real kernel, the rivals in turn, on real clusters of this machine: Debian's `slurmctld` with four
`slurmd`, and two nodes of Ray. `python benchmarks/clusters.py [ROUNDS] [slurm|ray]`; the last line
is one JSON object. Times are medians in seconds, until the last rank has done it; a first round
fills caches and doesn't count. A sample that fails ends the benchmark.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.machine import describe
from tests.kernels import Kernel, kernel
from tests.ray.conftest import HEAD, RayCluster
from tests.slurm.cluster import Cluster

PATIENCE_S, RANKS = 600.0, 4
OURS = "distrain-nb"
RANK = """
import torch, torch.distributed as dist, os, time
if not dist.is_initialized():
    dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
open({marks!r} + "/" + str(dist.get_rank()), "w").write(repr(time.time()))
"""
ON_SLURM = "%%distrain --on slurm --workers 2 -n 2 --wait\n{rank}"
# submitit has no launcher of ranks: each of its tasks starts torchrun on its node. The address is
# written out, since the names of the cluster's nodes are known to nobody here.
SUBMITIT = """
import os, subprocess, sys
from pathlib import Path
import submitit
Path("rank.py").write_text({rank!r})
def launch(script):
    import os, subprocess, sys
    import submitit
    here = submitit.JobEnvironment()
    port = 20000 + int(here.job_id) % 10000
    subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nnodes=2",
                    "--nproc-per-node=2", f"--node-rank={{here.node}}",
                    "--master-addr=127.0.0.1", f"--master-port={{port}}", script], check=True)
executor = submitit.AutoExecutor(folder="jobs", cluster="slurm")
executor.update_parameters(nodes=2, tasks_per_node=1, cpus_per_task=2, timeout_min=5)
job = executor.submit(launch, os.path.abspath("rank.py"))
job.wait()
"""
ON_RAY = (
    "%%distrain --on ray --address {address} --python {python} --workers 2 -n 2 --wait\n{{rank}}"
)
CONNECTED = """
import os, sys, tempfile
os.environ["RAY_TRAIN_V2_ENABLED"] = "1"
import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer
ray.init(address={where!r}, log_to_driver=False)
"""
NO_LOGIN = {"RAY_AUTH_MODE": "disabled"}  # as the cluster itself
RAYTRAIN = """
def train():
    exec({rank!r}, {{}})
TorchTrainer(
    train, torch_config=TorchConfig(backend="gloo"), scaling_config=ScalingConfig(
        num_workers=4, resources_per_worker={{"CPU": 1}}, placement_strategy="SPREAD"),
    run_config=RunConfig(storage_path=tempfile.mkdtemp()),
).fit()
"""


@dataclass
class Rival:
    """A kernel, and what it is sent: `cell` has places for the marks of ranks."""

    name: str
    kernel: Kernel
    cell: str

    def sample(self, wait_idle: Callable[[], None]) -> float:
        """Return the seconds from sending the cell to the last rank's all_reduce. Raises
        RuntimeError with what a cell left whose ranks didn't come so far."""
        wait_idle()
        with tempfile.TemporaryDirectory() as marks:
            began = time.time()
            rank = RANK.format(marks=marks)
            outcome = self.kernel.run(self.cell.format(rank=rank), PATIENCE_S)
            texts = [path.read_text() for path in Path(marks).iterdir()]
        if outcome.error or len(texts) < RANKS or not all(texts):
            raise RuntimeError(f"{self.name}: {outcome.error or outcome.text[-2000:]}")
        return max(map(float, texts)) - began


def compared(
    rounds: int, rivals: tuple[Rival, Rival], wait_idle: Callable[[], None], place: str
) -> dict[str, object]:
    """Return the ratio of the medians, with these."""
    times: dict[str, list[float]] = {rival.name: [] for rival in rivals}
    for number in range(rounds + 1):
        for rival in rivals:
            took = rival.sample(wait_idle)
            print(f"{place}, {rival.name}: {took:.2f} s", flush=True)
            if number:
                times[rival.name].append(took)
    ours, theirs = (statistics.median(times[rival.name]) for rival in rivals)
    return {
        f"{place}_over_{rivals[1].name}": round(ours / theirs, 4),
        f"{place}_s": round(ours, 2),
        f"{rivals[1].name}_s": round(theirs, 2),
    }


@contextmanager
def ready(folder: Path, more: Mapping[str, str], code: str) -> Iterator[Kernel]:
    """A kernel in a folder, which has run the code."""
    (folder / "work").mkdir(exist_ok=True)
    environment = {**os.environ, **more, "DISTRAIN_HOME": str(folder / "home")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled
    with kernel(folder / "work", environment) as nb:
        nb.run(code)
        yield nb


def slurm(rounds: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="slurm-bench-") as name, ExitStack() as stack:
        cluster = Cluster(Path(name) / "cluster")
        stack.callback(cluster.stop)
        cluster.start()
        more = cluster.environment
        code = "%load_ext distrain_nb\nimport submitit"
        nb = stack.enter_context(ready(Path(name), more, code))
        rivals = Rival(OURS, nb, ON_SLURM), Rival("submitit", nb, SUBMITIT)
        return compared(rounds, rivals, cluster.wait_idle, "slurm")


def ray(rounds: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="dr-", dir="/tmp") as name, ExitStack() as stack:
        # Ray Train imports pandas, which the tests' clusters leave out.
        cluster = RayCluster(Path(name), left_out=())
        stack.callback(lambda: [cluster.kill(host) for host in list(cluster.nodes)])
        cluster.begin()
        cell = ON_RAY.format(address=cluster.address, python=sys.executable)
        connected = CONNECTED.format(where=f"{HEAD}:{cluster.ports[0]}")
        nb = stack.enter_context(ready(Path(name), {}, "%load_ext distrain_nb"))
        other = stack.enter_context(ready(Path(name), NO_LOGIN, connected))
        rivals = Rival(OURS, nb, cell), Rival("raytrain", other, RAYTRAIN)
        return compared(rounds, rivals, lambda: time.sleep(1), "ray")


if __name__ == "__main__":
    print(describe("torch", "submitit", "ray"))
    rounds = int(sys.argv[1]) if sys.argv[1:] else 3
    places = sys.argv[2:] or ["slurm", "ray"]
    result: dict[str, object] = {}
    for place, measure in (("slurm", slurm), ("ray", ray)):
        if place in places:
            result.update(measure(rounds))
    print(json.dumps(result))
