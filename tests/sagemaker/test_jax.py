"""JAX on two replicas of each cloud, rehearsed: one world without an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from distrain_nb import api
from tests.vertex.conftest import without_docker  # noqa: F401
from tests.vertex.packages import base_with

if TYPE_CHECKING:
    from collections.abc import Iterator

WORLD = """
import jax
import numpy as np

jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize()
mesh = jax.sharding.Mesh(jax.devices(), ("data",))
rows = jax.NamedSharding(mesh, jax.P("data"))
local = np.full(2, jax.process_index() + 1.0)
x = jax.make_array_from_process_local_data(rows, local)
total = float(jax.jit(lambda x: x.sum())(x))
world = [jax.process_index(), jax.process_count()]
"""
POOLS = {
    "vertex": {"primary": "n1-standard-4", "workers": "n1-standard-4", "region": "us-central1"},
    "sagemaker": {"workers": "2*ml.m5.xlarge", "region": "us-west-2"},
}


@pytest.fixture(scope="module")
def with_jax(images: str, without_docker: dict[str, str]) -> Iterator[str]:  # noqa: F811
    """A base image with JAX, on a machine without Docker."""
    name = f"{images}/bases/jax:0"
    base_with("jax", "numpy").push(name)
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in without_docker.items():
            patch.setenv(variable, value)
        yield name


@pytest.mark.timeout(600)
@pytest.mark.parametrize("cloud", POOLS)
def test_two_replicas_are_one_world(cloud: str, with_jax: str) -> None:
    options = {"rehearse": "", "base": with_jax, "result": ("total", "world"), **POOLS[cloud]}
    run = api.submit(WORLD, on=cloud, wait=True, **options)
    assert run.results == {"total": 6.0, "world": [0, 2]}, run.logs()
    assert not run.status.note
