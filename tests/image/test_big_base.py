"""A base of more than 1 GB: never downloaded, and streamed where it must be copied."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from distrain_nb.image.builders.append import build
from distrain_nb.image.recipe import Recipe

from .programs import SimpleProgram
from .services.faults import faulty

if TYPE_CHECKING:
    from .services.bases import BaseImage

COPY = """
import json, resource, sys
from image.programs import SimpleProgram
from distrain_nb.image.builders.append import build
from distrain_nb.image.recipe import Recipe
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
image = build(SimpleProgram(), Recipe(sys.argv[1], sys.argv[2]))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps({"sent": image.sent, "grown": grown, "how": image.layers[5].how}))
"""


@pytest.fixture(scope="module")
def big_name(open_registry: str, big: BaseImage) -> str:
    name = f"{open_registry}/bases/big:1"
    big.push(name)
    return name


def test_nothing_of_the_base_is_downloaded(big_name: str) -> None:
    host, _, rest = big_name.partition("/")
    with faulty(host) as proxy:
        recipe = Recipe(f"{proxy.host}/{rest}", f"{proxy.host}/team/big:1")
        first = build(SimpleProgram(), recipe)
        second = build(SimpleProgram("print(2)"), recipe)
        read = [x.path for x in proxy.seen if x.method == "GET" and "/blobs/" in x.path]
        assert len(read) == 1  # the configuration
        assert proxy.count("PUT .*/blobs/") == 5  # worker, and twice: program, configuration
    assert sum(layer.size for layer in first.layers) > 1_000_000_000
    assert {layer.how for layer in first.layers[:-2]} == {"mounted"}
    assert second.sent is not None
    assert second.sent < 10_000


def test_a_copy_is_not_held_in_memory(big_name: str, other_registry: str) -> None:
    tests = Path(__file__).resolve().parents[1]
    env = {**os.environ, "PYTHONPATH": f"{tests.parent}:{tests}"}
    command = [sys.executable, "-c", COPY, big_name, f"{other_registry}/team/big:1"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["sent"] > 1_000_000_000
    assert said["how"] == "copied"
    assert said["grown"] < 100_000  # kB
