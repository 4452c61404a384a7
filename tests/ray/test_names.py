"""Names of runs on a real Ray cluster: each works, or is refused before anything starts."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import distrain_nb as d
from distrain_nb.errors import OptionError
from tests.odd_names import ALLOWED, REFUSED

from .conftest import RayCluster, wait_for

pytestmark = pytest.mark.slow  # it starts a cluster
# Every fourth: what a cluster gets of any name has no odd signs (`test_remote_names.py`), and a job
# takes 7 s.
SOME = ALLOWED[::4]


def test_every_name_works_or_is_refused(cluster: RayCluster, home: Path, tmp_path: Path) -> None:
    """With a folder that all share, and without: the head's shell starts the driver there."""
    shared = tmp_path / "jobs $(touch PLANTED) 'a' \"b\" `touch PLANTED` #1 ?"
    runs = {}
    for number, name in enumerate(SOME):
        folder = {"folder": str(shared)} if number % 2 else {}
        options = cluster.options(cpus="0.5", name=name, **folder)
        runs[name] = d.submit("print('hello')", primary=1, **options)
    wait_for(lambda: all(run.state.final for run in runs.values()))
    for name, run in runs.items():
        assert str(run.state) == "succeeded", (name, run.status.error)
        assert "hello" in str(run.logs()), name
    assert all((path / "driver.json").is_file() for path in shared.iterdir())
    assert not [*tmp_path.rglob("PLANTED"), *cluster.folder.rglob("PLANTED")]
    for name in REFUSED:
        with pytest.raises(OptionError, match="--name"):
            d.submit("1", primary=1, **cluster.options(name=name))


def test_a_job_of_an_odd_name_is_cancelled(cluster: RayCluster, home: Path) -> None:
    endless = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.1)"
    run = d.submit(endless, primary=1, **cluster.options(name="stop #1?/.."))
    wait_for(lambda: "begun" in str(run.logs()))
    run.cancel()
    wait_for(lambda: run.state.final)
    assert str(run.state) == "cancelled"
    wait_for(lambda: not cluster.ranks())


def test_a_python_with_odd_signs_is_started_as_it_is(
    cluster: RayCluster, home: Path, tmp_path: Path
) -> None:
    python = tmp_path / "my $(touch PLANTED) python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(cluster.options()["python"])} "$@"\n')
    python.chmod(0o755)
    run = d.submit("print('hello')", primary=1, **cluster.options(python=str(python)))
    run.wait()
    assert "hello" in str(run.logs())
