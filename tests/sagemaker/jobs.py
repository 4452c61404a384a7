"""Jobs for the tests of SageMaker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distrain_nb.api import program
from distrain_nb.backends.base import Job
from distrain_nb.backends.sagemaker import SageMakerBackend
from distrain_nb.backends.sagemaker.plan import SageMakerPlan
from distrain_nb.config import Config
from distrain_nb.layout import Layout

ROLE = "arn:aws:iam::123456789012:role/training"
PLACE = {"bucket": "my-bucket", "role": ROLE}


def laid(workers: str = "2*ml.p3.2xlarge", **more: Any) -> Layout:
    return Layout.of("sagemaker", workers=workers, **{"region": "us-west-2", **more})


def job(layout: Layout | None = None, code: str = "import torch\n", **more: Any) -> Job:
    """A job of a small program; `options` are those that only clouds have."""
    options = {**PLACE, **more.pop("options", {})}
    return Job(
        program(code), layout or laid(), Path(), config=Config(), backend_options=options, **more
    )


def planned(layout: Layout | None = None, **more: Any) -> SageMakerPlan:
    return SageMakerBackend().plan(job(layout, **more))


def codes(plan: SageMakerPlan) -> list[str]:
    return [finding.code for finding in plan.findings]
