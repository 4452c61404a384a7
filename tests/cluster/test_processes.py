"""The launcher that a program wants, and how many processes a replica runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb.api import program
from distrain_nb.backends.job import AnyJob, Job
from distrain_nb.backends.options import read_options
from distrain_nb.backends.plugins import find
from distrain_nb.cluster import choose
from distrain_nb.findings import Severity
from distrain_nb.layout import Layout
from distrain_nb.places.local.plan import LocalPlan
from distrain_nb.worker.files.launch import Launch

FOUR_GPUS = {
    "local": Layout(),
    "vertex": Layout.of("vertex", primary="n1-standard-16+4*T4", region="us-central1"),
    "sagemaker": Layout.of("sagemaker", workers="ml.p3.8xlarge", region="us-west-2"),
}
WRAPPED = """\
import torch
model = torch.nn.Linear(4, 2)
model = {}
torch.save(model.state_dict(), "model.pt")
"""
ONE_PROCESS = [
    "torch.nn.DataParallel(model)",
    "torch.nn.DataParallel(model) if torch.cuda.device_count() > 1 else model",
    "AutoModel.from_pretrained('gpt2', device_map='auto')",
    "torch.nn.Sequential(model.to('cuda:0'), torch.nn.Linear(2, 1).to('cuda:1'))",
]
MANY_PROCESSES = [
    "model.cuda()",
    "torch.nn.parallel.DistributedDataParallel(model)",
    "(torch.nn.parallel.DistributedDataParallel if ranks > 1 else torch.nn.DataParallel)(model)",
    "AutoModel.from_pretrained('gpt2', device_map={'': local_rank})",
]


@pytest.fixture(autouse=True)
def _gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")


def job(layout: Layout, code: str, **more: object) -> AnyJob:
    backend = find(layout.on)
    asked = Job(
        program(code), layout, Path(), read_options(backend.options, {"bucket": "b", **more})
    )
    return replace(asked, machine=backend.machine(asked))


@pytest.mark.parametrize(
    ("code", "launcher", "why"),
    [
        ("import torch, numpy", "torchrun", "the program imports torch"),
        ("import tensorflow", "tensorflow", "the program imports tensorflow"),
        ("import mpi4py, numpy", "mpi", "the program imports mpi4py"),
        ("import horovod, torch", "mpi", "the program imports horovod"),
        ("import json", "python", "the program imports no distributed framework"),
        (
            WRAPPED.format(ONE_PROCESS[0]),
            "python",
            "the program uses all GPUs of a machine from one process",
        ),
    ],
)
def test_the_launcher_is_what_the_program_wants(code: str, launcher: str, why: str) -> None:
    assert choose(program(code)) == (launcher, why)


@pytest.mark.parametrize("place", FOUR_GPUS)
@pytest.mark.parametrize("line", ONE_PROCESS)
def test_a_program_that_uses_all_gpus_is_started_once(place: str, line: str) -> None:
    plan = find(place).plan(job(FOUR_GPUS[place], WRAPPED.format(line)))
    assert plan.ranks_per_replica == 1
    (found,) = (each for each in plan.findings if each.code == "advice.one-process")
    assert (found.severity, found.where) == (Severity.INFO, "submit(), line 3")
    assert ("DistributedDataParallel" in found.message) == ("DataParallel" in line)


@pytest.mark.parametrize("place", FOUR_GPUS)
@pytest.mark.parametrize("line", MANY_PROCESSES)
def test_other_programs_are_started_for_each_gpu(place: str, line: str) -> None:
    plan = find(place).plan(job(FOUR_GPUS[place], WRAPPED.format(line)))
    assert plan.ranks_per_replica == 4
    assert not [each for each in plan.findings if "one-process" in each.code]


def test_aws_containers_start_it_once_too() -> None:
    """Their torchrun starts a process for each GPU whatever it is told."""
    script = job(FOUR_GPUS["sagemaker"], WRAPPED.format(ONE_PROCESS[0]), python_package=True)
    request = find("sagemaker").plan(script).request
    assert "sagemaker_program" in request["HyperParameters"]
    assert "sagemaker_torch_distributed_enabled" not in request["HyperParameters"]


@pytest.mark.parametrize(
    ("layout", "where"),
    [
        (Layout.of("local", ranks_per_replica=4), "ranks_per_replica"),
        (Layout.of("local", workers=3), "workers"),
    ],
)
def test_several_processes_that_share_nothing_are_warned_of(layout: Layout, where: str) -> None:
    plan = find("local").plan(job(layout, WRAPPED.format(ONE_PROCESS[0])))
    assert isinstance(plan.launch, Launch)
    assert len(plan.launch.processes) == 4
    (found,) = (each for each in plan.findings if each.code == "launcher.one-process")
    assert (found.severity, found.where) == (Severity.WARNING, where)
    assert found.message.startswith("4 processes each train the whole model")


def test_ranks_that_nobody_asked_for_get_advice_too() -> None:
    """Four GPUs mean four ranks, which need what ranks need."""
    from distrain_nb.api import check

    code = WRAPPED.format("torch.nn.parallel.DistributedDataParallel(model.cuda())")
    code = f"{code}\ntorch.save(model, 'model.pt')"
    found = check(code, on="vertex", primary="n1-standard-16+4*T4", region="us-central1")
    assert "advice.ddp.checkpoint" in [each.code for each in found]


def test_gpus_of_this_machine_are_split_among_replicas() -> None:
    """A replica stands for a machine, whose ranks count its GPUs from 0."""
    plan = planned("import torch", Layout.of("local", workers=1))
    given = [p.environment for p in plan.launch.processes]
    assert [(g["LOCAL_RANK"], g["CUDA_VISIBLE_DEVICES"]) for g in given] == [
        ("0", "0,1"),
        ("1", "0,1"),
        ("0", "2,3"),
        ("1", "2,3"),
    ]
    for more, one in ({"ranks_per_replica": 3}, 3), ({"workers": 4, "ranks_per_replica": 1}, 1):
        plan = planned("import torch", Layout.of("local", **{"workers": 1, **more}))
        assert plan.ranks_per_replica == one
        assert not any("CUDA_VISIBLE_DEVICES" in p.environment for p in plan.launch.processes)


def test_ranks_that_share_a_gpu_share_its_memory() -> None:
    plan = planned("import jax", Layout.of("local", ranks_per_replica=8))
    given = plan.launch.processes[0].environment
    assert given["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.38"
    assert given["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    own = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "false"}
    plan = planned("import jax", Layout.of("local", ranks_per_replica=8), **own)
    assert not {"XLA_PYTHON_CLIENT_MEM_FRACTION", *own} & {*plan.launch.processes[0].environment}
    alone = planned("import jax", Layout.of("local", ranks_per_replica=4))
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in alone.launch.processes[0].environment


@pytest.mark.parametrize(
    ("code", "ranks", "said"),
    [
        ("import torch.distributed as d\nd.init_process_group('nccl')", 5, True),
        ("import torch.distributed as d\nd.init_process_group('nccl')", 4, False),
        ("import torch.distributed as d\nd.init_process_group('gloo')", 5, False),
        ("import os, torch\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']))", 5, True),
        ("import lightning", 5, True),
        ("import jax\njax.distributed.initialize()", 5, True),
    ],
)
def test_more_ranks_than_gpus_are_warned_of(code: str, ranks: int, said: bool) -> None:
    findings = planned(code, Layout.of("local", ranks_per_replica=ranks)).findings
    about = [f for f in findings if f.code == "local.ranks-per-gpu"]
    assert bool(about) == said
    if said:
        assert "5 ranks share 4 GPUs" in about[0].message
        end = "" if "jax" in code else ", or the backend gloo with LOCAL_RANK % 4"
        assert about[0].message.endswith(f"choose -n 4{end}")


def test_memory_that_the_kernel_has_of_a_gpu_is_named() -> None:
    asked = job(Layout(), "import torch")
    assert asked.machine["held"] == "", "this process uses no GPU"
    held = replace(asked, machine={**asked.machine, "held": "64 of 86 GB of GPU 0"})
    (about,) = [f for f in find("local").plan(held).findings if f.code == "local.gpu-memory"]
    assert "the notebook's kernel has 64 of 86 GB of GPU 0, which ranks then lack" in about.message


def test_what_the_optimizer_imports_is_there_for_ranks_with_gpus_too() -> None:
    """It doesn't initialize CUDA, as seen beside an H100: 4 s of a run that is warm otherwise."""
    plan = planned("import torch\ntorch.optim.SGD", Layout())
    assert plan.launch.preload == ("torch", "torch._dynamo")


def test_what_a_model_of_transformers_imports_is_there_for_ranks() -> None:
    plan = planned("import torch\nfrom transformers import Trainer\nTrainer()", Layout())
    assert plan.launch.preload == ("torch", "scipy.optimize", "torch._dynamo")


def planned(code: str, layout: Layout, **environ: str) -> LocalPlan:
    asked = job(layout, code)
    plan = find("local").plan(replace(asked, environ={**asked.environ, **environ}))
    assert isinstance(plan, LocalPlan)
    return plan
