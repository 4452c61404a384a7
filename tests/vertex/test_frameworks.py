"""Cells of a notebook on several replicas of PyTorch and TensorFlow, rehearsed."""

from __future__ import annotations

import ast
import re

import pytest

from tests.kernels import Kernel
from tests.tensorflow_cells import COORDINATE
from tests.vertex.packages import base_with

NOTEBOOK = """\
import torch
rate = 0.1
def examples():
    x = torch.randn(160, 4, generator=torch.Generator().manual_seed(0))
    return torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
"""
DDP = """\
%%distrain --on vertex --rehearse --wait --base {base} --primary n1-standard-4 \
--workers n1-standard-4 --result weights,addresses
import socket
import torch
import torch.distributed as dist
from distrain_nb import log_metrics

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
for step, (x, y) in enumerate(torch.utils.data.DataLoader(examples(), batch_size=8)):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log_metrics(step=step, loss=loss.item())
weights = model.module.weight.detach()
print("rank", rank, "has", weights.tolist())
addresses = [None] * dist.get_world_size()
dist.all_gather_object(addresses, socket.gethostbyname(socket.gethostname()))
"""


def run_there(notebook: Kernel, cell: str) -> None:
    """Run a cell to its end, and define its results in the notebook."""
    outcome = notebook.run(cell, 800)
    notebook.run("import distrain_nb; run = distrain_nb.attach()\n%distrain result --into")
    assert not outcome.error, notebook.run("print(run.logs())").text


def evaluated(notebook: Kernel, text: str) -> object:
    """The value of an expression in the notebook."""
    outcome = notebook.run(f"print(repr(({text})))")
    assert not outcome.error, outcome.traceback
    return ast.literal_eval(outcome.text)


@pytest.mark.timeout(900)
def test_two_pools_of_pytorch(notebook: Kernel, pytorch: str) -> None:
    notebook.run(NOTEBOOK)
    run_there(notebook, DDP.format(base=pytorch))
    weights = evaluated(notebook, "weights.tolist()")
    assert [evaluated(notebook, f"run.logs({n})") for n in (0, 1)] == [
        f"[rank {rank}] rank {rank} has {weights}" for rank in (0, 1)
    ]
    assert evaluated(notebook, "addresses") == ["127.0.1.1", "127.0.1.2"]
    assert evaluated(notebook, "list(run.metrics().columns), len(run.metrics())") == (
        ["step", "loss"],
        20,
    )
    # Its ranks have no shares of the data.
    (found,) = evaluated(notebook, "[(f.code, f.where) for f in run.findings]")  # type: ignore[misc]
    assert found[0] == "data.same" and found[1].endswith(", line 12")


REDUCED = """\
%%distrain --on vertex --rehearse --wait --base {base} --primary n1-standard-16+2*T4 \
--workers 2*n1-standard-16+2*T4 --reducers 2*n1-highcpu-16 -n 1 --result cluster,weights
import json
import os
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.manual_seed(dist.get_rank())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512))
for step in range(5):
    model(torch.randn(8, 512)).square().mean().backward()
weights = [None] * dist.get_world_size()
dist.all_gather_object(weights, model.module.weight.grad.sum().item())
told = ("CLUSTER_SPEC", "TF_CONFIG")
cluster = {{name: json.loads(os.environ[name])["cluster"] for name in told}}
"""


@pytest.mark.timeout(900)
def test_reducers_in_the_place_of_google_s_image(notebook: Kernel, pytorch: str) -> None:
    """Three workers, two reducers; the same cell then runs on this machine."""
    cell = REDUCED.format(base=pytorch)
    run_there(notebook, cell)
    reduced_by_two(notebook)
    assert evaluated(notebook, "[len(at) for at in cluster['CLUSTER_SPEC'].values()]") == [1, 2, 2]
    assert evaluated(notebook, "list(cluster['TF_CONFIG'])") == ["chief", "ps", "worker"]
    log = str(evaluated(notebook, "run.logs()"))
    assert "Worker pool 2 runs reducers of distrain-nb for gloo in place of" in log
    _, _, code = cell.partition("\n")
    run_there(
        notebook, "%%distrain --workers 2 --reducers 2 --result cluster,weights --wait\n" + code
    )
    reduced_by_two(notebook)


def reduced_by_two(notebook: Kernel) -> None:
    """Every rank has the same gradients, which two reducers have added up."""
    assert evaluated(notebook, "len(weights), len(set(weights))") == (3, 1)
    log = str(evaluated(notebook, "run.logs()"))
    for number in (0, 1):
        assert re.search(rf"\[reducer {number}\] reducer {number}: [1-9][\d,]* sums; ", log)
    assert re.search(r"reduction: [1-9][\d,]* all-reduces \(.*\) by 2 reducers", log)
    assert "no GPUs here, so gloo is used instead of nccl" in log


SERVERS = (
    """\
%%distrain --on vertex --rehearse --wait --base {base} --primary n1-standard-4 \
--workers n1-standard-4 --servers n1-highmem-2 --evaluators n1-standard-4 --result total
import os
import time
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
print(resolver.task_type, resolver.task_id, flush=True)
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
        protocol=resolver.rpc_layer or "grpc", start=True).join()
elif resolver.task_type == "evaluator":
    trained = os.path.join(os.environ["AIP_CHECKPOINT_DIR"], "trained")
    while not os.path.exists(trained):
        time.sleep(0.2)
    with open(os.path.join(os.environ["AIP_CHECKPOINT_DIR"], "evaluated"), "w") as file:
        file.write("yes")
    time.sleep(600)
else:
"""
    + COORDINATE
    + """\
    open(os.path.join(os.environ["AIP_CHECKPOINT_DIR"], "trained"), "w").close()
    while not os.path.exists(os.path.join(os.environ["AIP_CHECKPOINT_DIR"], "evaluated")):
        time.sleep(0.2)
"""
)


@pytest.fixture(scope="session")
def tensorflow(images: str) -> str:
    name = f"{images}/bases/tensorflow:2"
    base_with("tensorflow-cpu").push(name)
    return name


@pytest.mark.timeout(900)
def test_two_pools_with_servers_and_an_evaluator_of_tensorflow(
    notebook: Kernel, tensorflow: str
) -> None:
    run_there(notebook, SERVERS.format(base=tensorflow))
    assert evaluated(notebook, "total") == 20.0
    said = evaluated(notebook, "run.logs()")
    assert isinstance(said, str)
    for line in (
        "[rank 0] chief 0",
        "[rank 1] worker 0",
        "[ps 0] ps 0",
        "[evaluator 0] evaluator 0",
    ):
        assert line in said.splitlines()
    cut_off = [line for line in said.splitlines() if "was still running" in line]
    assert len(cut_off) == 1
    assert cut_off[0].startswith("[service] Replica evaluator 0 was still running when")
