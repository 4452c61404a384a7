"""What it costs to compare what a program's text has made with what the notebook has.

It prints for programs of 1, 100 and 10,000 definitions the seconds of capture, of the fingerprints
among these, and of a rank that compares; the seconds to capture one and 1,000 names of mixed kinds;
then of one fingerprint of a frame of 100 MB and of one of a model of 1 GB.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pandas
import torch

from distrain_nb.program import Cell, Notebook, capture
from distrain_nb.worker.fingerprint import fingerprint
from distrain_nb.worker.rank import expected

DEFINITION = "class C{n}:\n    a, b = {n}, [1]\n    def f(self, x=1): return x + self.a\n"


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    given = work()
    return round(time.perf_counter() - began, 4), given


def definitions(count: int) -> dict[str, float]:
    """The seconds of a program with that many classes that a decorator of a package has made."""
    text = "from dataclasses import dataclass\n"
    text += "".join("@dataclass\n" + DEFINITION.format(n=n) for n in range(count))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "Cell In[1]", "exec"), namespace)
    notebook = Notebook(namespace, (Cell("Cell In[1]", text),), Path.cwd())
    cell = Cell("Cell In[2]", "\n" + "".join(f"C{n}\n" for n in range(count)))
    captured, program = seconds(lambda: capture(cell, 2, notebook))
    classes = {name: namespace[name] for name in namespace if name[0] == "C"}
    looked, _ = seconds(lambda: [fingerprint(n, c, {"__main__"}) for n, c in classes.items()])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, expected.EXPECTED).write_text(program.expected)
        compared, _ = seconds(lambda: expected.check(expected.read(Path(folder)), namespace))
    return {"capture_s": captured, "fingerprints_s": looked, "rank_s": compared}


MIXED = (
    "v{n} = {n} + 0.5",
    "v{n} = str({n}) * 3",
    "v{n} = numpy.arange({n}) * 2",
    "def v{n}(x):\n    return x + {n}",
    "class v{n}:\n    a = {n}\n    def f(self, x): return x",
)


def mixed(count: int) -> float:
    """The least seconds, of three times, to capture a cell that reads that many names: computed
    numbers, texts and arrays, functions and classes, of cells of twenty statements each."""
    lines = ["import numpy", *(MIXED[n % len(MIXED)].format(n=n) for n in range(count))]
    texts = ["\n".join(lines[begin : begin + 20]) for begin in range(0, len(lines), 20)]
    cells = tuple(Cell(f"Cell In[{n}]", text) for n, text in enumerate(texts, 1))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        exec(compile(cell.source, cell.label, "exec"), namespace)
    notebook = Notebook(namespace, cells, Path.cwd())
    reads = Cell(f"Cell In[{len(cells) + 1}]", "\n" + "".join(f"v{n}\n" for n in range(count)))
    return min(seconds(lambda: capture(reads, 2, notebook))[0] for _ in range(3))


def main() -> None:
    results: dict[str, Any] = {str(count): definitions(count) for count in (1, 100, 10_000)}
    results |= {"mixed_1_s": mixed(1), "mixed_1000_s": mixed(1000)}
    frame = pandas.DataFrame(numpy.random.default_rng(0).random((1_250_000, 10)))
    results["frame_100_mb_s"], _ = seconds(lambda: fingerprint("frame", frame, {"__main__"}))
    model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(16)])
    results["model_1_gb_s"], _ = seconds(lambda: fingerprint("model", model, {"__main__"}))
    for name, result in results.items():
        print(name, result, file=sys.stderr)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
