"""A plan depends on nothing but its job."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Plans a job twice: nothing of what it looks at the second time is outside of the process.
TWICE = """
import os, sys
from tests.{place}.jobs import job
from distrain_nb.backends.plugins import find

backend, asked = find("{place}"), job(name="mine")
first = backend.plan(asked)
events = []
os.environ.clear()
sys.addaudithook(lambda name, args: events.append((name, args)))
second = backend.plan(asked)
seen = [(name, args) for name, args in events if name.split(".")[0] in ("open", "os", "socket")]
assert not seen, seen
assert (second, str(second), second.spec()) == (first, str(first), first.spec())
"""


@pytest.mark.parametrize("place", ["vertex", "sagemaker"])
def test_a_plan_reads_no_file_and_no_variable_and_draws_nothing(place: str) -> None:
    subprocess.run([sys.executable, "-c", TWICE.format(place=place)], check=True)
