"""Cells in warm ranks: ours, ipyparallel, jupyter-distributed, in turns.

`python benchmarks/sessions.py [ROUNDS]`; the last line is one JSON object. `first_line_s` is the
median from the call in this process to the first line of the cell in the last rank that gets there.
Rivals get the code by their own Python interfaces, without a page. `start_ratio` is the start of a
session over a first run of the same ranks; `idle_memory_ratio` the memory of a rank of a session
that has run a cell over that of one which has run none. A rival that isn't installed is left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("DISTRAIN_HOME", tempfile.mkdtemp(prefix="distrain-bench-"))

from benchmarks.machine import describe
from distrain_nb import api
from distrain_nb.api.sessions import start_session
from distrain_nb.api.source import Source
from distrain_nb.observed.observer import Observer
from distrain_nb.program import Cell, Notebook
from tests.session.lab import Lab

RANKS = 2
CODE = "import time\nprint(repr(time.time()))"
Measure = Callable[[], float]


@contextmanager
def ours() -> Iterator[Measure]:
    with Lab(RANKS) as lab:
        lab.observer = Observer(lab.namespace, lambda *_: None)  # as a kernel has one

        def measure() -> float:
            began = time.time()
            return max(_times(lab.there(CODE).logs())) - began

        yield measure


@contextmanager
def ipyparallel() -> Iterator[Measure]:
    import ipyparallel

    cluster = ipyparallel.Cluster(n=RANKS, log_level=40)
    client = cluster.start_and_connect_sync()
    view = client[:]

    def measure() -> float:
        began = time.time()
        view.execute("import time; at = time.time()", block=True)
        return max(view["at"]) - began

    try:
        yield measure
    finally:
        cluster.stop_cluster_sync()


@contextmanager
def jupyter_distributed() -> Iterator[Measure]:
    from jupyter_distributed.kernel_group import DistributedKernelGroup

    loop = asyncio.new_event_loop()
    group = DistributedKernelGroup(RANKS)
    loop.run_until_complete(group.start())

    def measure() -> float:
        began = time.time()
        done = loop.run_until_complete(group.execute(CODE))
        text = "\n".join(o.plain_text() for rank in done.ranks for o in rank.outputs)
        return max(_times(text)) - began

    try:
        yield measure
    finally:
        loop.run_until_complete(group.shutdown())


def _times(text: str) -> list[float]:
    return [float(line.split("] ")[-1]) for line in text.splitlines() if line.strip()]


def start_ratio() -> float:
    """Return the start of a session over a first run, each in a fork server that is warm."""
    notebook = Notebook({}, (), Path.cwd())
    times: dict[str, list[float]] = {"run": [], "session": []}
    for number in range(4):
        began = time.monotonic()
        source = Source(Cell("Cell In[1]", "import torch"), notebook)
        api.submit(source, ranks_per_replica=RANKS, wait=True)
        times["run"].append(time.monotonic() - began)
        began = time.monotonic()
        session = start_session(f"start-{number}", "1h", {"ranks_per_replica": RANKS})
        times["session"].append(time.monotonic() - began)
        session.stop()
    return statistics.median(times["session"][1:]) / statistics.median(times["run"][1:])


def idle_memory_ratio() -> float:
    with Lab(1, name="memory") as lab:
        (process,) = lab.session.ranks.values()
        assert process.pid is not None
        rank = psutil.Process(process.pid)
        before = rank.memory_full_info().pss
        for _ in range(5):
            lab.there("x = 1")
        return float(rank.memory_full_info().pss / before)


def bytes_of_second_use() -> int:
    """Return the bytes that a cell brings which uses a model of 1 GB that an earlier one made."""
    with Lab(1, name="model") as lab:
        lab.there("import torch\nmodel = torch.ones(1 << 28)")
        run = lab.there("print(model.sum())")
        values = run.folder / "program" / "main.values"
        return sum(file.stat().st_size for file in values.glob("*")) if values.exists() else 0


def main(rounds: int) -> None:
    samples: dict[str, list[float]] = {}
    with ExitStack() as stack:
        measures: dict[str, Measure] = {}
        for enter in (ours, ipyparallel, jupyter_distributed):
            with suppress(ImportError):
                measures[enter.__name__] = stack.enter_context(enter())
        for name, measure in measures.items():
            measure()  # the first imports
            samples[name] = []
        for _ in range(rounds):
            for name, measure in measures.items():
                samples[name].append(measure())
    medians = {name: statistics.median(times) for name, times in samples.items()}
    rivals = [value for name, value in medians.items() if name != "ours"]
    result = {
        "machine": describe(),
        "first_line_s": {name: round(value, 4) for name, value in medians.items()},
        "ratio": round(medians["ours"] / min(rivals), 2) if rivals else None,
        "start_ratio": round(start_ratio(), 2),
        "idle_memory_ratio": round(idle_memory_ratio(), 3),
        "bytes_of_second_use": bytes_of_second_use(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
