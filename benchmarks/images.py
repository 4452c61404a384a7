"""From an edit in a cell to an image in a registry: `append` against Docker, BuildKit and buildah.

A change of code only, on a small base and on one of more than 1 GB, cold (nothing on this machine
yet) and warm (the median of several edits), all in one run against one registry on this machine.
Needs the programs that the tests of images need. The last line is one JSON object:

- `append_over_fastest_warm`: seconds of `append` over the fastest rival's, warm; the worse base;
- `append_over_docker_cold_1gb`: warm `append` over a cold `docker build` and push, 1 GB base;
- `append_cold_over_docker_cold_1gb`: the same for an `append` that has never seen the base;
- `bytes_over_code_layer`: all bytes that `append` sends, HTTP included, over the code layer's;
- `numpy_layer_s`: seconds to resolve, install, pack and push numpy, its wheel in uv's cache.

`append` runs in this process, as it does in a notebook's kernel; the others are commands.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]

from image.programs import SimpleProgram  # noqa: E402
from image.services.bases import BaseImage, big_base, small_base  # noqa: E402
from image.services.docker import docker_daemon  # noqa: E402
from image.services.processes import program as path_of  # noqa: E402
from image.services.registries import registry  # noqa: E402

from distrain_nb.image.builders import append  # noqa: E402
from distrain_nb.image.builders.docker import write_context  # noqa: E402
from distrain_nb.image.recipe import Recipe  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EDITS = 7
NUMPY = "numpy==2.2.0"


def training_program() -> SimpleProgram:
    """A cell with ten local modules of 6 kB and a carried array of 200 kB."""
    words = random.Random(0)
    text = "".join(f"def function_{n}(x):\n    return x * {words.random()}\n\n" for n in range(120))
    files = {f"model/part_{n}.py": f"# {n}\n{text}".encode() for n in range(10)}
    return SimpleProgram(files={**files, "values/array.bin": words.randbytes(200_000)})


def edited(program: SimpleProgram, number: int) -> SimpleProgram:
    return replace(program, source=f"{program.source}\n# edit {number}, {time.time_ns()}\n")


@dataclass(frozen=True)
class Times:
    """Seconds: the first build, and the median of those after an edit."""

    cold: float
    warm: float


@contextlib.contextmanager
def append_builder() -> Iterator[Callable[[SimpleProgram, Recipe], None]]:
    with tempfile.TemporaryDirectory() as home:
        os.environ["DISTRAIN_HOME"] = home
        yield append.build


@contextlib.contextmanager
def docker_builder(buildkit: str) -> Iterator[Callable[[SimpleProgram, Recipe], None]]:
    with docker_daemon() as docker:

        def build(program: SimpleProgram, recipe: Recipe) -> None:
            with context(program, recipe) as folder:
                docker("build", "-q", "--tag", recipe.target, folder, DOCKER_BUILDKIT=buildkit)
                docker("push", "-q", recipe.target)

        yield build


@contextlib.contextmanager
def buildah_builder() -> Iterator[Callable[[SimpleProgram, Recipe], None]]:
    home = tempfile.mkdtemp(prefix="ba-")
    tool = [path_of("buildah"), f"--root={home}/root", f"--runroot={home}/run"]
    tool += ["--storage-driver=overlay"]

    def run(*arguments: str) -> None:
        subprocess.run([*tool, *arguments], check=True, capture_output=True)

    def build(program: SimpleProgram, recipe: Recipe) -> None:
        with context(program, recipe) as folder:
            # One layer for each step, as Docker has it: warm builds find theirs again.
            run("bud", "--layers", "--tls-verify=false", "--tag", recipe.target, folder)
            run("push", "--tls-verify=false", recipe.target)

    try:
        yield build
    finally:
        subprocess.run(["umount", f"{home}/root/overlay"], capture_output=True, check=False)
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def context(program: SimpleProgram, recipe: Recipe) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        write_context(program, recipe, Path(folder))
        yield folder


BUILDERS = {
    "append": append_builder,
    "docker": lambda: docker_builder("0"),
    "buildkit": lambda: docker_builder("1"),
    "buildah": buildah_builder,
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, registry(Path(folder)) as host:
        bases = {"small": push(host, "small", small_base()), "1 GB": push(host, "big", big_base())}
        times: dict[tuple[str, str], Times] = {}
        for size, base in bases.items():
            times |= measure(size, host, base)
        table = {name: bytes_sent(name, host, bases["small"]) for name in BUILDERS}
        layer = code_layer(host, bases["small"])
        numpy = numpy_layer(host, bases["small"])
    show(times, table, layer)
    print(json.dumps(summary(times, table["append"] / layer, numpy)))


def push(host: str, name: str, image: BaseImage) -> str:
    image.push(f"{host}/bases/{name}:1")
    return f"bases/{name}:1"


def measure(size: str, host: str, base: str) -> dict[tuple[str, str], Times]:
    """All builders on one base; they take turns, so that a busy machine is so for all of them."""
    program = training_program()
    seconds: dict[str, list[float]] = {name: [] for name in BUILDERS}
    with contextlib.ExitStack() as stack:
        builders = {name: stack.enter_context(made()) for name, made in BUILDERS.items()}
        for number in range(EDITS + 1):
            for name, build in builders.items():
                recipe = Recipe(f"{host}/{base}", f"{host}/{name}/{base}")
                began = time.perf_counter()
                build(edited(program, number), recipe)
                seconds[name].append(time.perf_counter() - began)
    return {
        (name, size): Times(taken[0], statistics.median(taken[1:]))
        for name, taken in seconds.items()
    }


def bytes_sent(name: str, host: str, base: str) -> int:
    """All bytes to the registry for one edit, HTTP included."""
    program = training_program()
    with counting(host) as proxy, BUILDERS[name]() as build:
        recipe = Recipe(f"{proxy.host}/{base}", f"{proxy.host}/bytes/{name}:1")
        build(edited(program, 0), recipe)
        before = proxy.sent
        build(edited(program, 1), recipe)
        return proxy.sent - before


def code_layer(host: str, base: str) -> int:
    recipe = Recipe(f"{host}/{base}", f"{host}/layer/job:1")
    return append.build(edited(training_program(), 0), recipe).layers[-1].size


def numpy_layer(host: str, base: str) -> float:
    """The median of three; a build before them brings the wheel into uv's cache."""
    seconds = []
    for number in range(4):
        target = f"{host}/numpy/job-{number}:1"
        recipe = Recipe(f"{host}/{base}", target, requirements=(NUMPY,))
        with append_builder() as build:
            began = time.perf_counter()
            build(training_program(), recipe)
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


class Proxy:
    """A relay that counts what goes to the registry."""

    def __init__(self, upstream: str) -> None:
        self.sent = 0
        self._upstream = upstream.rsplit(":", 1)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((self._upstream[0], int(self._upstream[1])))
                for pair in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._relay, args=pair, daemon=True).start()

    def _relay(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self.sent += len(data) if counted else 0
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def counting(host: str) -> Iterator[Proxy]:
    proxy = Proxy(host)
    try:
        yield proxy
    finally:
        proxy.close()


def show(times: dict[tuple[str, str], Times], table: dict[str, int], layer: int) -> None:
    print(f"\n{'':10}{'small':>20}{'1 GB':>20}{'bytes sent':>14}")
    print(f"{'':10}{'cold':>10}{'warm':>10}{'cold':>10}{'warm':>10}{'for an edit':>14}")
    for name in BUILDERS:
        cells = [t for size in ("small", "1 GB") for t in (times[name, size],)]
        numbers = "".join(f"{t.cold:10.3f}{t.warm:10.3f}" for t in cells)
        print(f"{name:10}{numbers}{table[name]:14,}")
    print(f"the code layer, compressed: {layer:,} bytes\n")


def summary(
    times: dict[tuple[str, str], Times], bytes_over_code_layer: float, numpy: float
) -> dict[str, float]:
    rivals = [name for name in BUILDERS if name != "append"]
    against = max(
        times["append", size].warm / min(times[name, size].warm for name in rivals)
        for size in ("small", "1 GB")
    )
    ours, cold = times["append", "1 GB"], times["docker", "1 GB"].cold
    return {
        "append_over_fastest_warm": round(against, 4),
        "append_over_docker_cold_1gb": round(ours.warm / cold, 5),
        "append_cold_over_docker_cold_1gb": round(ours.cold / cold, 5),
        "bytes_over_code_layer": round(bytes_over_code_layer, 4),
        "numpy_layer_s": round(numpy, 3),
    }


if __name__ == "__main__":
    main()
