"""What a run does on a machine with an NVIDIA GPU: values, refusals, training, hangs, use of it.

    python -m benchmarks.gpu [PATTERN]

Each notebook of `gpu_cells.py` has a kernel of its own; several run at once. A notebook of `EQUAL`
prints an expression in the kernel and in a rank; the two texts have to be the same. One of `SHOWS`
has to show a text, in its output, its error or the log of its run. Those of `TIMES` run alone, and
have to show where their time went. Then our start up to the first CUDA kernel, beside torchrun's.
What differs is printed whole; the last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.gpu_cells import EQUAL, SHOWS, TIMES, timing
from benchmarks.machine import describe
from tests.kernels import Kernel, kernel

AT_ONCE = 8
CELL_S = 150.0
ROUNDS = 3
MARK = "the value: "
LOG = "import distrain_nb\nprint(distrain_nb.attach('{name}').logs())"
FIRST_KERNEL = """\
import time
print("begun", time.time())
import torch
print("imported", time.time())
total = torch.ones(8, device="cuda").sum().item()
print("first kernel", time.time(), flush=True)
"""


def executed(nb: Kernel, cells: tuple[str, ...], name: str) -> str:
    """Run cells; return what they show, with the log of the run of that name if there is one."""
    shown: list[str] = []
    for cell in cells:
        outcome = nb.run(cell, CELL_S)
        displayed = (display.get("text/plain", "") for display in outcome.displays)
        shown += [outcome.text, outcome.error, *displayed]
    log = nb.run(LOG.format(name=name), CELL_S)
    return "\n".join([*shown, log.text])


def session(name: str, cells: tuple[str, ...]) -> str:
    """Return what a notebook shows in a new kernel with a home of its own."""
    with tempfile.TemporaryDirectory(prefix="gpu-") as home:
        environment = {**os.environ, "HOME": home}
        try:
            with kernel(Path(home), environment) as nb:
                return executed(nb, ("%load_ext distrain_nb", *cells), name)
        except TimeoutError as error:
            return f"no end: {error}"


def is_equal(name: str, cells: tuple[str, ...]) -> tuple[bool, str]:
    """Return whether a rank has what the kernel has, with all that was shown."""
    *before, expression = cells
    line = f"print({MARK!r} + repr(({expression})))"
    shown = session(name, (*before, f"%%distrain -n 1 --name {name}\n{line}", line))
    values = re.findall(rf"^(?:\[rank 0\] )?{MARK}(.*)", shown, re.MULTILINE)
    return len(values) >= 3 and len(set(values)) == 1, shown


def is_shown(name: str, cells: tuple[str, ...], pattern: str) -> tuple[bool, str]:
    """Return whether a notebook shows what it should, with all that was shown."""
    *before, last = cells
    named = last.replace("%%distrain", f"%%distrain --name {name}", 1)
    shown = session(name, (*before, named))
    return re.search(pattern, shown, re.DOTALL) is not None, shown


def checks(chosen: re.Pattern[str]) -> Iterator[tuple[str, tuple[bool, str]]]:
    """Run the notebooks whose names match, and yield each with its result."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        equal = {n: pool.submit(is_equal, n, c) for n, c in EQUAL.items() if chosen.search(n)}
        shows = {n: pool.submit(is_shown, n, *row) for n, row in SHOWS.items() if chosen.search(n)}
        for name, check in (equal | shows).items():
            yield name, check.result()
    for name, (_, pattern) in TIMES.items():
        if chosen.search(name):
            yield name, is_shown("times", timing(name), pattern)


def ours(nb: Kernel) -> float:
    """Return the seconds from sending a cell to its first CUDA kernel."""
    began = time.time()
    shown = nb.run(f"%%distrain -n 1 --name first\n{FIRST_KERNEL}", CELL_S)
    log = nb.run(LOG.format(name="first"), CELL_S).text
    print(log, flush=True)
    times = re.findall(r"first kernel ([\d.]+)", log)
    if not times:
        raise RuntimeError(f"no kernel ran: {shown} {log}")
    return float(times[-1]) - began


def torchrun() -> float:
    """Return the seconds from torchrun's start to the first CUDA kernel of its rank."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "first.py"
        script.write_text(FIRST_KERNEL)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", str(script)]
        began = time.time()
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(shown.split()[-1]) - began


def starts() -> dict[str, float]:
    """Measure starts of a new kernel and of one that ran before, and torchrun's, in turns."""
    first, again, rival = [], [], []
    for _ in range(ROUNDS):
        with (
            tempfile.TemporaryDirectory() as home,
            kernel(Path(home), os.environ | {"HOME": home}) as nb,
        ):
            nb.run("%load_ext distrain_nb", CELL_S)
            first.append(ours(nb))
            again.append(ours(nb))
        rival.append(torchrun())
    middle = statistics.median
    return {
        "first_s": round(middle(first), 2),
        "again_s": round(middle(again), 2),
        "torchrun_s": round(middle(rival), 2),
    }


def main() -> None:
    chosen = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    print(describe(), flush=True)
    results = {True: 0, False: 0}
    for name, (as_expected, shown) in checks(chosen):
        results[as_expected] += 1
        print(f"{'as expected' if as_expected else 'DIFFERS'}: {name}", flush=True)
        if not as_expected or os.environ.get("SHOW"):
            print(re.sub(r"^", "    ", shown.strip(), flags=re.MULTILINE), flush=True)
    print(json.dumps({"as_expected": results[True], "differ": results[False], **starts()}))


if __name__ == "__main__":
    main()
