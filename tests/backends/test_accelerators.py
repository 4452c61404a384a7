"""Dry runs of a line each: what a job gets for the accelerators that it pays for."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.findings import Severity
from distrain_nb.layout import Layout
from distrain_nb.places.vertex.backend import VertexBackend
from tests.sagemaker import jobs as sagemaker
from tests.vertex import jobs as vertex

if TYPE_CHECKING:
    from distrain_nb.backends.plan import Plan

PYTHON = "python:3."
NEURON = "public.ecr.aws/neuron/"
JAX = version("jax")


def planned(place: str, pool: str, code: str, **more: Any) -> Any:
    if place == "vertex":
        layout = Layout.of("vertex", primary=pool, region="us-central1")
        return vertex.planned(layout, code=f"{code}\n", **more)
    return sagemaker.planned(sagemaker.laid(pool), code=f"{code}\n", **more)


def refused(plan: Plan) -> list[str]:
    return [one.code for one in plan.findings if one.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("place", "pool", "code", "base", "requirement", "ranks"),
    [
        ("vertex", "n1-standard-4+1*T4", "import jax", PYTHON, f"jax[cuda12]=={JAX}", 1),
        ("vertex", "n1-standard-8+2*T4", "import flax.linen", PYTHON, "jax[cuda12]", 1),
        ("vertex", "ct5lp-hightpu-4t,topology=2x2", "import jax", PYTHON, f"jax[tpu]=={JAX}", 1),
        ("sagemaker", "ml.g5.xlarge", "import jax", PYTHON, f"jax[cuda12]=={JAX}", 1),
        ("sagemaker", "ml.g5.xlarge", "import torch", "763104351884.", "torch==2.13.0", 1),
        ("sagemaker", "ml.trn1.32xlarge", "import torch_xla, torch",
         f"{NEURON}pytorch-training-neuronx:2.9.0", "torch==2.13.0", 32),
        ("sagemaker", "ml.trn1.32xlarge", "import jax",
         f"{NEURON}jax-training-neuronx:0.10.0", f"jax=={JAX}", 1),
        ("vertex", "cloud-tpu+8*TPU_V2", "import jax", PYTHON, f"jax[tpu]=={JAX}", 1),
    ],
)  # fmt: skip
def test_what_a_job_gets(
    place: str, pool: str, code: str, base: str, requirement: str, ranks: int
) -> None:
    plan = planned(place, pool, code)
    assert not refused(plan)
    assert plan.base.startswith(base)
    assert requirement in plan.spec().requirements
    assert plan.ranks_per_replica == ranks


@pytest.mark.parametrize(
    ("place", "pool", "code", "said"),
    [
        ("sagemaker", "ml.trn1.32xlarge", "import torch", ("torch_xla", "neuronx:2.9.0", "2.30")),
        ("vertex", "ct6e-standard-4t,topology=2x2", "import torch", ("torch_xla", "jax[tpu]")),
        ("vertex", "ct6e-standard-4t,topology=2x2", "import tensorflow", ("jax[tpu]",)),
        ("vertex", "ct5lp-hightpu-1t,topology=1x1", "import tensorflow", ("2.20",)),
        ("sagemaker", "ml.trn2.48xlarge", "import tensorflow", ("jax-training-neuronx",)),
    ],
)
def test_what_would_not_be_used_is_refused(
    place: str, pool: str, code: str, said: tuple[str, ...]
) -> None:
    plan = planned(place, pool, code)
    (finding,) = (one for one in plan.findings if one.severity is Severity.ERROR)
    assert finding.code == "accelerator.unused"
    assert "paid for and not used" in finding.message
    assert all(word in finding.message for word in said), finding.message


@pytest.mark.parametrize(
    ("pool", "code", "line", "repaired"),
    [
        ("ct6e-standard-4t,topology=2x2", "import torch", "",
         "%%distrain --on vertex\nimport torch_xla\nimport torch"),
        ("ct5lp-hightpu-1t,topology=1x1", "import tensorflow", "",
         "%%distrain --on vertex --require tensorflow-tpu==2.20.*\nimport tensorflow"),
        ("n1-standard-4+1*T4", "import torch", " --require torch==2.13.0+cpu",
         "%%distrain --on vertex --require torch==2.13.0\nimport torch"),
        ("n1-standard-4+1*T4", "import torch",
         " --base us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest",
         "%%distrain --on vertex\nimport torch"),
    ],
)  # fmt: skip
def test_a_repair_of_the_cell(pool: str, code: str, line: str, repaired: str) -> None:
    option, _, value = line.strip().removeprefix("--").partition(" ")
    layout = Layout.of("vertex", primary=pool, region="us-central1")
    asked = vertex.job(layout, code=f"{code}\n", **({"base": value} if option == "base" else {}))
    if option == "require":
        asked = replace(asked, program=replace(asked.program, required=(value,)))
    plan = VertexBackend().plan(asked)
    (finding,) = (one for one in plan.findings if one.severity is Severity.ERROR)
    cell = f"%%distrain --on vertex{line}\n{code}"
    assert [fix.apply(cell) for fix in finding.fixes][:1] == [repaired]


def test_a_container_that_has_ended_is_told_of() -> None:
    layout = Layout.of("vertex", primary="n1-standard-8+1*V100", region="us-central1")
    asked = vertex.job(layout)
    assert "today" in VertexBackend().machine(asked)
    early, late = (
        VertexBackend().plan(replace(asked, machine={"today": day}))
        for day in ("2026-07-24", "2026-07-25")
    )
    assert [one.code for one in early.findings] == []
    assert [one.code for one in late.findings] == ["accelerator.image-ended"]
    assert "2026-07-24" in late.findings[0].message
    assert early.base == late.base


def test_arm_hosts_get_an_image_for_arm() -> None:
    plan = planned("vertex", "a4x-highgpu-4g+4*GB200", "import torch")
    assert plan.base.startswith(PYTHON)
    assert plan.spec().platform == "linux/arm64"
    assert not refused(plan)


def test_a_gpu_image_on_cpus_is_said_once() -> None:
    base = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"
    plan = planned("vertex", "n1-standard-4", "import torch", base=base)
    assert [(one.code, one.severity) for one in plan.findings] == [
        ("accelerator.needless-image", Severity.INFO)
    ]
