"""What it costs to notice who asks about the world: `python benchmarks/observing.py`."""

from __future__ import annotations

import json
import subprocess
import sys

_CHILD = """
import os, sys, time, timeit
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
from distrain_nb.magics.observing import start_observing
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
imported = time.process_time() - began
def per_cell(cell):
    taken = []
    for _ in range(5):
        began = time.process_time()
        shell.run_cell(cell).raise_error()
        taken.append(time.process_time() - began)
    return min(taken) * 1e3
plain = "\\n".join(f"v{i} = {i} + 1" for i in range(50))
before = per_cell(plain)
shell.run_cell("import os\\nrank = int(os.environ.get('RANK', 0))")
for number in range(20):
    shell.run_cell(f"b{number} = [{{'rank': rank, 'i': i}} for i in range(2000)]")
beside = per_cell(plain)
reading = per_cell("\\n".join(f"v{i} = len(b{i % 20})" for i in range(50)))
shell.run_cell(
    "import torch\\nnet = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(100)])\\n"
    "net.rank = rank\\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\\n"
    "torch.set_num_threads(1)\\nx = torch.randn(8, 32)"
)
training = per_cell(
    "for _ in range(20):\\n    optimizer.zero_grad()\\n    net(x).sum().backward()\\n"
    "    optimizer.step()"
)
read = shell.user_ns["other"], shell.user_ns["launcher"]
print(started * 1e3, *read, imported, before, beside, reading, training)
"""
_NAMES = (
    *("start_ms", "other_variable_us", "launcher_variable_us", "import_torch_cpu_s"),
    # Cells of 50 statements: of numbers, the same beside 20 objects that know the rank, and with
    # one of these each; 20 steps of a model of 100 layers that knows the rank.
    *("numbers_ms", "numbers_beside_ms", "reading_ms", "training_ms"),
)
_ROUNDS = 5


def main() -> None:
    """Print the best of some rounds, unwatched and watched."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(_ROUNDS):
        for way in ("off", "on"):
            done = subprocess.run(
                [sys.executable, "-c", _CHILD, way], capture_output=True, text=True, check=True
            )
            last = done.stdout.split()[-len(_NAMES) :]
            figures = dict(zip(_NAMES, map(float, last), strict=True))
            known = best.setdefault(way, figures)
            best[way] = {name: round(min(known[name], figures[name]), 3) for name in _NAMES}
    print(json.dumps(best))


if __name__ == "__main__":
    main()
