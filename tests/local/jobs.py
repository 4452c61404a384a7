"""Jobs for the tests of this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from distrain_nb.api import program
from distrain_nb.backends.job import Job
from distrain_nb.backends.options import NoOptions
from distrain_nb.config import Config
from distrain_nb.layout import Layout
from distrain_nb.places.local.plan import LocalJob


def job(name: str = "") -> LocalJob:
    """Of a program that MPI starts, somebody waits for, and that needs packages."""
    needing = replace(program("import mpi4py"), required=("packaging>=22", "no-such-package"))
    layout = Layout.of("local", workers=3)
    return Job(needing, layout, Path(), NoOptions(), name, waits=True, config=Config())
