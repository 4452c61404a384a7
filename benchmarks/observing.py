"""What it costs to notice who asks about the world: `python benchmarks/observing.py`."""

from __future__ import annotations

import json
import subprocess
import sys

_CHILD = """
import os, sys, time, timeit
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
from distrain_nb.magics.hooks import start_observing
watched = sys.argv[1] == "on"
began = time.perf_counter()
if watched:
    start_observing(shell)
started = time.perf_counter() - began
def per_read(name):
    read = timeit.Timer("get(name)", globals={"get": os.environ.get, "name": name})
    return min(read.repeat(5, 20_000)) / 20_000 * 1e6
shell.user_ns["per_read"] = per_read
shell.run_cell("other, launcher = per_read('HOME'), per_read('RANK')")
began = time.process_time()
import torch
print(started * 1e3, shell.user_ns["other"], shell.user_ns["launcher"], time.process_time() - began)
"""
_NAMES = ("start_ms", "other_variable_us", "launcher_variable_us", "import_torch_cpu_s")
_ROUNDS = 5


def main() -> None:
    """Print the best of some rounds, unwatched and watched."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(_ROUNDS):
        for way in ("off", "on"):
            done = subprocess.run(
                [sys.executable, "-c", _CHILD, way], capture_output=True, text=True, check=True
            )
            figures = dict(zip(_NAMES, map(float, done.stdout.split()[-4:]), strict=True))
            known = best.setdefault(way, figures)
            best[way] = {name: round(min(known[name], figures[name]), 3) for name in _NAMES}
    print(json.dumps(best))


if __name__ == "__main__":
    main()
