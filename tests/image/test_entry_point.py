"""What an image starts by itself: the worker, which starts the ranks of its replica."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

from distrain_nb.image.builders.append import build
from distrain_nb.image.image import Image
from distrain_nb.image.recipe import Recipe
from distrain_nb.program import Cell, Notebook, Program, capture
from tests.conftest import eventually

from .services.docker import Docker
from .test_docker_runs import run_two

PLACE = "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])"

FAILING = """import os, time
if os.environ["RANK"] == "1":
    raise ValueError("boom")
time.sleep(60)"""

CATCHING = """import signal, sys, time
def last_words(*_):
    print("saved in time")
    sys.exit(0)
signal.signal(signal.SIGTERM, last_words)
print("ready")
time.sleep(60)"""


def image_of(code: str, base: str, registry: str, name: str) -> Image:
    program: Program = capture(Cell("Cell In[1]", code), 1, Notebook({}, (), Path.cwd()))
    return build(program, Recipe(base, f"{registry}/entry/{name}:1"))


def test_two_replicas_of_two_ranks(docker: Docker, base: str, open_registry: str) -> None:
    image = image_of(PLACE, base, open_registry, "place")
    said = run_two(docker, image, options=("-e", "DISTRAIN_RANKS=2"))
    for pool, ranks in (("workerpool0", (0, 1)), ("workerpool1", (2, 3))):
        lines = [line for line in said[pool].splitlines() if line.startswith("[")]
        assert sorted(lines) == [f"[rank {n}] rank {n} of 4" for n in ranks]


def test_the_first_failure_is_reported_and_fails_the_container(
    docker: Docker, base: str, open_registry: str
) -> None:
    image = image_of(FAILING, base, open_registry, "failing")
    command = ["docker", "run", "--rm", "--network=none", "-e", "DISTRAIN_RANKS=2", image.uri]
    done = subprocess.run(command, env=docker.env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "rank 1 failed first: ValueError: boom" in done.stderr
    assert "Cell In[1], line 3" in done.stderr
    assert "rank 0: stopped" in done.stderr


def test_a_stop_reaches_the_program(docker: Docker, base: str, open_registry: str) -> None:
    image = image_of(CATCHING, base, open_registry, "stopped")
    docker("run", "--detach", "--network=none", "--name=stopped", image.uri)
    assert eventually(lambda: "[rank 0] ready" in docker("logs", "stopped"))
    stop = threading.Thread(target=docker, args=("stop", "stopped"))
    stop.start()
    assert docker("wait", "stopped").strip() == "143"
    stop.join()
    assert "[rank 0] saved in time" in docker("logs", "stopped")
    docker("rm", "stopped")
