"""From a cell to the first all_reduce on two idle nodes of Slurm: ours, and submitit with torchrun.

Every sample is sent to a real kernel, the rivals in turn, on a real cluster on this machine
(Debian's `slurmctld` and four `slurmd`). `python benchmarks/clusters_slurm.py [ROUNDS]`; the last
line is one JSON object. Times are medians in seconds, until the last of 2 x 2 ranks has done it. A
sample that fails is counted in `failed`, and left out.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.machine import describe
from tests.kernels import Kernel, kernel
from tests.slurm.cluster import Cluster

PATIENCE_S = 120.0
RANK = """
import torch, torch.distributed as dist, os, time
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
open({marks!r} + "/" + os.environ["RANK"], "w").write(repr(time.time()))
dist.destroy_process_group()
"""
OURS = "%%distrain --on slurm --workers 2 -n 2 --wait\n{rank}"
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


def sample(nb: Kernel, cell: str, cluster: Cluster) -> float | None:
    """Seconds from sending the cell to the last rank's first all_reduce; None where it failed."""
    cluster.wait_idle()
    with tempfile.TemporaryDirectory() as marks:
        began = time.time()
        sent = nb.send(cell.format(rank=RANK.format(marks=marks)))
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            texts = [path.read_text() for path in Path(marks).iterdir()]
            if len(texts) == 4 and all(texts):
                nb.outcome(sent, PATIENCE_S)
                return max(map(float, texts)) - began
            time.sleep(0.01)
    return None


def slurm(rounds: int = 5) -> dict[str, object]:
    """Return `slurm_over_submitit`, with the medians that it is made of."""
    times: dict[str, list[float]] = {"distrain-nb": [], "submitit": []}
    failed = dict.fromkeys(times, 0)
    with tempfile.TemporaryDirectory(prefix="slurm-bench-") as name:
        folder = Path(name)
        cluster = Cluster(folder / "cluster")
        environment = {**os.environ, **cluster.environment, "DISTRAIN_HOME": str(folder / "home")}
        try:
            cluster.start()
            (folder / "work").mkdir()
            with kernel(folder / "work", environment) as nb:
                nb.run("%load_ext distrain_nb\nimport submitit")
                for number in range(rounds + 1):
                    for rival, cell in (("distrain-nb", OURS), ("submitit", SUBMITIT)):
                        took = sample(nb, cell, cluster)
                        print(f"{rival}: {took and round(took, 2)} s", flush=True)
                        if took is None:
                            failed[rival] += 1
                        elif number:  # the first fills caches of files
                            times[rival].append(took)
        finally:
            cluster.stop()
    ours, theirs = (statistics.median(times[rival]) for rival in ("distrain-nb", "submitit"))
    return {
        "slurm_over_submitit": round(ours / theirs, 4),
        "slurm_s": round(ours, 2),
        "submitit_s": round(theirs, 2),
        "failed": {rival: count for rival, count in failed.items() if count},
    }


if __name__ == "__main__":
    print(describe("torch", "submitit"))
    print(json.dumps(slurm(*map(int, sys.argv[1:2]))))
