"""Images run: pulled and started by a real Docker daemon."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from distrain_nb.image.builders.append import build
from distrain_nb.image.image import Image
from distrain_nb.image.recipe import PACKAGES, PROGRAM, Recipe

from .programs import SimpleProgram

if TYPE_CHECKING:
    from .services.bases import BaseImage
    from .services.docker import Docker

# What the worker does with the two folders, without its supervision.
BARE = (
    "python3",
    "-c",
    f"import site, runpy; site.addsitedir('{PACKAGES}'); "
    f"runpy.run_path('{PROGRAM}/main.py', run_name='__main__')",
)


def bare_run(docker: Docker, image: Image | str, *options: str) -> str:
    """Run the program itself, past the entry point."""
    name = image if isinstance(image, str) else image.uri
    return docker("run", "--rm", "--entrypoint", BARE[0], *options, name, *BARE[1:])


@pytest.mark.parametrize("family", ["docker", "oci"])
def test_docker_pulls_and_runs_it(
    docker: Docker, open_registry: str, small: BaseImage, family: str
) -> None:
    base = f"{open_registry}/runs/{family}:base"
    small.with_(family=family).push(base)
    program = SimpleProgram(
        "import sys\nprint(sys.version_info[:2], open('notes/größe.txt').read())",
        files={"notes/größe.txt": b"as carried"},
    )
    image = build(program, Recipe(base, f"{open_registry}/runs/{family}:job"))
    docker("pull", image.uri)
    assert "(3, 11) as carried" in bare_run(docker, image, "--network=none")
    known = json.loads(docker("image", "inspect", image.uri))[0]
    assert known["RepoDigests"] == [image.uri]
    assert known["Config"]["Entrypoint"] == ["python3", "-m", "distrain_nb.worker"]
    assert len(known["RootFS"]["Layers"]) == 3
    assert docker("history", "-q", image.uri).count("\n") >= 3


def test_the_same_image_twice_by_digest(docker: Docker, base: str, open_registry: str) -> None:
    recipe = Recipe(base, f"{open_registry}/runs/twice:job")
    first = build(SimpleProgram("print('the first')"), recipe)
    build(SimpleProgram("print('the second')"), recipe)  # takes the tag
    for _ in range(2):
        assert "the first" in bare_run(docker, first, "--network=none")
        docker("rmi", first.uri)
    assert "the second" in bare_run(docker, recipe.target, "--network=none")


def test_packages_of_the_layer_can_be_imported(
    docker: Docker, base: str, open_registry: str
) -> None:
    program = SimpleProgram(
        "import numpy\nprint(numpy.__version__, numpy.ones(3).sum())", ("numpy==2.2.0",)
    )
    image = build(program, Recipe(base, f"{open_registry}/runs/numpy:job"))
    assert "2.2.0 3.0" in bare_run(docker, image, "--network=none")


def test_the_program_of_a_base_of_ours_is_hidden(
    docker: Docker, base: str, open_registry: str
) -> None:
    first = build(
        SimpleProgram(files={"old.txt": b""}), Recipe(base, f"{open_registry}/runs/one:1")
    )
    program = SimpleProgram("import os\nprint(sorted(os.listdir('.')))")
    second = build(program, Recipe(first.uri, f"{open_registry}/runs/two:1"))
    assert "['main.py']" in bare_run(docker, second, "--network=none")


def test_a_user_without_rights_can_read_it(docker: Docker, base: str, open_registry: str) -> None:
    program = SimpleProgram("import os\nprint('I am', os.getuid())")
    image = build(program, Recipe(base, f"{open_registry}/runs/user:1"))
    assert "I am 1234" in bare_run(docker, image, "--network=none", "--user=1234:1234")


TWO = """\
import json, os, socket
spec = json.loads(os.environ["CLUSTER_SPEC"])
task = spec["task"]
host, port = spec["cluster"]["workerpool0"][0].split(":")
if task["type"] == "workerpool0":
    with socket.create_server(("", int(port))) as server:
        friend, _ = server.accept()
        print("primary heard:", friend.recv(100).decode())
else:
    while True:
        try:
            friend = socket.create_connection((host, int(port)))
            break
        except OSError:
            pass
    friend.sendall(b"worker %d is here" % task["index"])
    print("worker spoke")
"""


def cluster_spec(pool: str) -> str:
    cluster = {"workerpool0": ["primary-0:2222"], "workerpool1": ["worker-0:2222"]}
    task = {"type": pool, "index": 0}
    return json.dumps({"cluster": cluster, "environment": "cloud", "task": task})


def run_two(
    docker: Docker, image: Image, command: tuple[str, ...] = (), options: tuple[str, ...] = ()
) -> dict[str, str]:
    """Both replicas of a job, each in a container, on a network of their own."""
    docker("network", "create", "job")
    said = {}

    def replica(pool: str, name: str) -> None:
        entry = ("--entrypoint", command[0]) if command else ()
        network = ("--rm", "--network=job", f"--hostname={name}", f"--network-alias={name}")
        variable = ("-e", f"CLUSTER_SPEC={cluster_spec(pool)}")
        command_line = (*network, *options, *entry, *variable, image.uri, *command[1:])
        said[pool] = docker("run", *command_line)

    threads = [
        threading.Thread(target=replica, args=args)
        for args in (("workerpool1", "worker-0"), ("workerpool0", "primary-0"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    docker("network", "rm", "job")
    return said


def test_two_replicas_find_each_other(docker: Docker, base: str, open_registry: str) -> None:
    image = build(SimpleProgram(TWO), Recipe(base, f"{open_registry}/runs/cluster:1"))
    said = run_two(docker, image, BARE)
    assert "primary heard: worker 0 is here" in said["workerpool0"]
    assert "worker spoke" in said["workerpool1"]
