"""Jobs for the tests of Vertex AI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distrain_nb.api import program
from distrain_nb.backends.job import Job
from distrain_nb.backends.options import declared, read_options
from distrain_nb.config import Config
from distrain_nb.layout import Layout
from distrain_nb.places.vertex.backend import VertexBackend
from distrain_nb.places.vertex.options import VertexJob, VertexOptions
from distrain_nb.places.vertex.plan import VertexPlan

PLACE = {"project": "my-project", "bucket": "my-bucket"}


def job(layout: Layout | None = None, code: str = "import torch\n", **more: Any) -> VertexJob:
    """A job of a small program; `options` are the backend's own."""
    named = {name: more.pop(name) for name in declared(VertexOptions) if name in more}
    options = read_options(VertexOptions, {**PLACE, **more.pop("options", {}), **named})
    layout = layout or Layout.of("vertex", primary="n1-standard-8+2*T4", region="europe-west4")
    return Job(program(code), layout, Path(), options, config=Config(), **more)


def planned(layout: Layout | None = None, **more: Any) -> VertexPlan:
    return VertexBackend().plan(job(layout, **more))
