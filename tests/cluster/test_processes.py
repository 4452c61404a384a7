"""The launcher that a program wants, and how many processes a replica runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb.api import program
from distrain_nb.backends.base import AnyJob, Job
from distrain_nb.backends.options import made
from distrain_nb.backends.plugins import find
from distrain_nb.cluster import choose
from distrain_nb.findings import Severity
from distrain_nb.layout import Layout
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
    asked = Job(program(code), layout, Path(), made(backend.options, {"bucket": "b", **more}))
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
    found = check(code, on="vertex", primary="n1-standard-16+4*T4", region="us-central1")
    assert "advice.ddp.process-group" in [each.code for each in found]
