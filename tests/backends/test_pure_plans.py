"""A plan depends on nothing but its job."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from distrain_nb.backends.plugins import find
from tests.local.jobs import job

# Plans a job twice: nothing of what it looks at the second time is outside of the process, but for
# whether the tables of facts have changed.
TWICE = """
import os, sys
from dataclasses import replace
from tests.{place}.jobs import job
from distrain_nb.backends.plugins import find
from distrain_nb.layout.catalog.current import overrides_file

def refused(*args, **options):
    assert args[:1] == (tables,), f"a plan looks at this machine: {{args}}"
    raise FileNotFoundError

backend, asked = find("{place}"), job(name="mine")
asked = replace(asked, defaults=backend.defaults(asked.environ), machine=backend.machine(asked))
first = backend.plan(asked)
events = []
os.environ.clear()
tables = str(overrides_file())
for name in ("stat", "lstat", "access", "cpu_count", "geteuid", "getuid", "getpid", "getcwd"):
    setattr(os, name, refused)
sys.addaudithook(lambda name, args: events.append((name, args)))
second = backend.plan(asked)
seen = [(name, args) for name, args in events if name.split(".")[0] in ("open", "os", "socket")]
assert not seen, seen
assert (second, str(second)) == (first, str(first))
assert "{place}" == "local" or second.spec() == first.spec()
"""


@pytest.mark.parametrize("place", ["local", "vertex", "sagemaker"])
@pytest.mark.brief
@pytest.mark.slow  # in processes of their own, which import what plans
def test_a_plan_reads_no_file_and_no_variable_and_draws_nothing(place: str) -> None:
    subprocess.run([sys.executable, "-c", TWICE.format(place=place)], check=True)


def test_what_this_machine_has_comes_with_the_job() -> None:
    found = {"gpus": "3", "cpus": "24", "mpirun": "/opt/mpirun", "--require packaging>=22": "odd"}
    plan = find("local").plan(replace(job(), machine=found, environ={}))
    assert (plan.gpus, plan.ranks_per_replica, len(plan.launch.processes)) == (3, 3, 12)
    assert plan.launch.processes[0].environment["OMP_NUM_THREADS"] == "2"
    assert [each.code for each in plan.findings] == ["local.require", "launcher.auto"]
