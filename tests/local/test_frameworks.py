"""The frameworks' own tutorials run unchanged in the processes that the local backend starts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.config import Config
from distrain_nb.run import Run
from distrain_nb.worker.files.status import State
from tests.conftest import eventually
from tests.frameworks_cells import MIRRORED
from tests.kernels import Kernel
from tests.tensorflow_cells import COORDINATE

WHO = """
import json, os, time
from pathlib import Path
met = Path({met!r})
spec = json.loads(os.environ["CLUSTER_SPEC"])
tf = json.loads(os.environ.get("TF_CONFIG", "null"))
print(json.dumps([spec, tf, os.environ.get("RANK")]), flush=True)
(met / "{type} {index}".format(**spec["task"])).touch()
while spec["task"]["type"] == "workerpool0" and len(list(met.iterdir())) < 5:
    time.sleep(0.1)  # the others are stopped when the primary ends
"""

MULTI_WORKER = f"%%distrain --workers 1 --result total{MIRRORED}"

PARAMETER_SERVER = (
    """%%distrain --workers 2 --servers 1 --evaluators 1 --result total
import os
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
        protocol=resolver.rpc_layer or "grpc", start=True)
    server.join()
elif resolver.task_type == "evaluator":
    print("evaluating", flush=True)
    import time; time.sleep(600)
else:
"""
    + COORDINATE
)

MPI = """%%distrain -n 3 --result total --launcher mpi --mpi-options "-x GREETING=hello"
import os
from mpi4py import MPI
total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1)
print(os.environ["GREETING"], "of", MPI.COMM_WORLD.size)
"""


def test_each_replica_is_told_its_role(home: Path, tmp_path: Path) -> None:
    met = tmp_path / "met"
    met.mkdir()
    options = {"workers": "2", "servers": "1", "evaluators": "1"}
    run = api.submit(WHO.replace("{met!r}", repr(str(met))), wait=True, **options)
    told = {line.process: json.loads(line.text) for line in run.lines()}
    tasks = [
        (t[0]["task"]["type"], t[0]["task"]["index"], t[1]["task"]["type"])
        for _, t in sorted(told.items())
    ]
    assert tasks == [
        ("workerpool0", 0, "chief"),
        ("workerpool1", 0, "worker"),
        ("workerpool1", 1, "worker"),
        ("workerpool2", 0, "ps"),
        ("workerpool3", 0, "evaluator"),
    ]
    assert [t[2] for _, t in sorted(told.items())] == ["0", "1", "2", None, None]
    addresses = [a for pool in told[0][0]["cluster"].values() for a in pool]
    assert len(set(addresses)) == 5
    assert all(address.startswith("127.0.0.1:") for address in addresses)
    assert all(t[0]["cluster"] == told[0][0]["cluster"] for t in told.values())
    assert told[0][1]["cluster"].keys() == {"chief", "ps", "worker"}


@pytest.mark.stands_for("TensorFlow, its launcher")
def test_multi_worker_mirrored_strategy(nb: Kernel) -> None:
    assert not nb.run(MULTI_WORKER, 240).error
    run = api.attach()
    assert run.results["total"] == 2.0
    assert not run.status.note  # its ranks did not work alone


EVALUATE = """
import json, os, time
evaluates = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "evaluator"
if evaluates:
    print("evaluating", flush=True)
while not os.path.exists(os.environ["AIP_MODEL_DIR"] + ("/evaluated" if evaluates else "/trained")):
    time.sleep(0.05)
if evaluates:
    print("evaluated", flush=True)
"""


def primary_ends_first(grace: float) -> Run:
    """A run whose evaluator is at work when its primary ends."""
    Config(grace=grace).save()
    run = api.submit(EVALUATE, workers=1, evaluators=1)
    assert eventually(lambda: "evaluating" in run.logs())
    (run.folder / "model" / "trained").touch()
    return run


def test_an_evaluator_may_finish_when_the_primary_has_ended(home: Path) -> None:
    run = primary_ends_first(grace=60.0)
    assert eventually(lambda: run.state is State.STOPPING)
    (run.folder / "model" / "evaluated").touch()
    run.wait(60)
    assert run.logs().splitlines() == ["[evaluator 0] evaluating", "[evaluator 0] evaluated"]
    assert [p.outcome for p in run.status.processes] == ["succeeded"] * 3


def test_an_evaluator_that_is_cut_off_is_in_the_log(home: Path) -> None:
    run = primary_ends_first(grace=0.2).wait(60)
    begun, said = run.logs().splitlines()
    assert begun == "[evaluator 0] evaluating"
    assert said.startswith("[service] evaluator 0 was still running 0.2 s after the primary")


@pytest.mark.stands_for("parameter servers")
def test_parameter_server_strategy(nb: Kernel) -> None:
    outcome = nb.run(PARAMETER_SERVER, 240)
    assert not outcome.error, outcome.traceback
    run = api.attach()
    assert run.results["total"] == 20.0
    assert not run.status.note
    assert {p.label: p.outcome for p in run.status.processes} == {
        "rank 0": "succeeded", "rank 1": "stopped", "rank 2": "stopped", "ps 0": "stopped",
        "evaluator 0": "stopped", "service": "",
    }  # fmt: skip


@pytest.mark.stands_for("mpirun")
def test_mpirun(nb: Kernel) -> None:
    outcome = nb.run(MPI)
    assert not outcome.error, outcome.traceback
    run = api.attach()
    assert run.results["total"] == 6
    assert not run.status.note
    assert sorted(line.process for line in run.lines() if line.text == "hello of 3") == [0, 1, 2]


def test_processes_that_mpi_spawns_have_the_program(home: Path) -> None:
    code = """
from mpi4py.futures import MPIPoolExecutor
LIMIT = 10 * 2
def small(n): return n < LIMIT
if __name__ == "__main__":
    with MPIPoolExecutor(max_workers=2) as pool:
        print("small:", list(pool.map(small, [3, 23])))
"""
    assert api.submit(code, wait=True, launcher="mpi").logs() == "[rank 0] small: [True, False]"


def test_a_failing_mpi_rank_is_named(nb: Kernel) -> None:
    cell = MPI + "if MPI.COMM_WORLD.rank == 2: raise ValueError('boom')\nMPI.COMM_WORLD.barrier()"
    outcome = nb.run(cell)
    assert "rank 2 failed first: ValueError: boom" in outcome.traceback
    assert api.attach().state is State.FAILED


@pytest.mark.stands_for("replicas of PyTorch")
def test_a_cluster_of_pytorch_replicas(home: Path) -> None:
    code = "import torch, torch.distributed as dist, os\ndist.init_process_group('gloo')\n" \
           "t = torch.ones(1); dist.all_reduce(t); total = t.item()\n"  # fmt: skip
    run = api.submit(code, wait=True, workers="1", ranks_per_replica=2, result="total")
    assert run.results["total"] == 4.0
    assert os.environ.get("RANK") is None


def test_mpi_keeps_off_bridges_of_containers(home: Path) -> None:
    """With two at these addresses ranks of Open MPI 4.1.4 stood still in a collective."""
    if os.geteuid():
        pytest.fail("needs root: it makes bridges")
    bridges = {"dn-bridge-1": "172.17.0.1/16", "dn-bridge-2": "172.27.0.1/16"}
    code = "from mpi4py import MPI\nfor _ in range(200): n = MPI.COMM_WORLD.allreduce(1)\nprint(n)"
    try:
        for name, address in bridges.items():
            for words in (("link", "add", name, "type", "bridge"), ("link", "set", name, "up")):
                subprocess.run(["ip", *words], check=True)
            subprocess.run(["ip", "addr", "add", address, "dev", name], check=True)
        # The shared memory of one machine would do without the network.
        run = api.submit(
            code, ranks_per_replica=2, launcher="mpi", mpi_options="--mca btl ^vader", timeout="60"
        )
        assert sorted(run.wait().logs().splitlines()) == ["[rank 0] 2", "[rank 1] 2"]
    finally:
        for name in bridges:
            subprocess.run(["ip", "link", "del", name], check=False)
