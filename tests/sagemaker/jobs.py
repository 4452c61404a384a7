"""Jobs for the tests of SageMaker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from distrain_nb.api import Code, Source, program
from distrain_nb.backends.job import Job
from distrain_nb.backends.options import declared, read_options
from distrain_nb.config import Config
from distrain_nb.layout import Layout
from distrain_nb.layout.formats import read_any
from distrain_nb.places.sagemaker.backend import SageMakerBackend
from distrain_nb.places.sagemaker.options import SageMakerJob, SageMakerOptions
from distrain_nb.places.sagemaker.plan import SageMakerPlan
from distrain_nb.program import Cell, Notebook, read_script

ROLE = "arn:aws:iam::123456789012:role/training"
P4 = "2*ml.p4d.24xlarge"
SCRIPT = {"python_package": True}
PLAN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/mine"
PLACE = {"bucket": "my-bucket", "role": ROLE}


# An option for each field of the request that one can fill.
EVERYTHING: dict[str, Any] = {
    "label": ("team=vision", "cost center=12"),
    "env": ("NCCL_DEBUG=INFO",),
    "hyperparameter": ("epochs=60", "schedule=cosine", "layers=[64, 10]"),
    "metric": ("loss=loss=([0-9.]+)",),
    "channel": ("train=s3://my-bucket/train,mode=FastFile,sharded,type=text/csv",
                "fast=fsx://fs-0123456789abcdef0/fsx/data,rw",
                "slow=efs://fs-01234567/"),
    "subnet": ("subnet-1", "subnet-2"),
    "security_group": ("sg-1",),
    "kms_key": "key-1",
    "encrypt": True,
    "isolate": True,
    "keep_alive": "30m",
    "reservation": PLAN,
    "attempts": "3",
    "web_access": True,
    "check_machines": True,
}  # fmt: skip


def laid(workers: str = "2*ml.p3.2xlarge", **more: Any) -> Layout:
    return Layout.of("sagemaker", workers=workers, **{"region": "us-west-2", **more})


def job(layout: Layout | None = None, code: Code = "import torch\n", **more: Any) -> SageMakerJob:
    """A job of a small program; `options` are the backend's own."""
    named = {name: more.pop(name) for name in declared(SageMakerOptions) if name in more}
    options = read_options(SageMakerOptions, {**PLACE, **more.pop("options", {}), **named})
    return Job(program(code), layout or laid(), Path(), options, config=Config(), **more)


def planned(layout: Layout | None = None, **more: Any) -> SageMakerPlan:
    return SageMakerBackend().plan(job(layout, **more))


def of_estimator(text: str, script: str, folder: Path, **more: Any) -> tuple[Layout, Source]:
    """What an estimator's text describes, in a folder where its entry point is this script. `more`
    changes the layout."""
    found = read_any(text)
    path, *arguments = found.script
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(script, encoding="utf-8")
    read = read_script(path, arguments, folder)
    source = Source(Cell(read.label, ""), Notebook({}, (), folder), script=read)
    return replace(found.layout, region="us-west-2", **more), source


def codes(plan: SageMakerPlan) -> list[str]:
    return [finding.code for finding in plan.findings]
