"""Whether healthy programs are told that they train wrongly: each finding about their ranks.

`python -m benchmarks.alarms [PART|NAME…]` runs, one after the other, the programs of
docs/compatibility.md (part `programs`), the notebooks whose runs stay on this machine (`notebooks`)
and the cells of `hang_cells.py` (`cells`). Of those cells, some ranks of four call other
collectives than the rest: a finding about collectives is right there, and counts as named. The last
line is JSON.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import nbformat

from benchmarks import trained_wrong
from benchmarks.hang_cells import HANGS, HEALTHY
from benchmarks.hangs import sentence
from distrain_nb import api
from distrain_nb.api.source import Source
from distrain_nb.findings import Finding
from distrain_nb.magics.command_line import cell_options
from distrain_nb.program import Cell, Notebook
from distrain_nb.run import Run
from scripts.horovod_wheel import wheel
from tests.kernels import execute
from tests.programs.running import VARIABLES, Program, programs
from tests.tensorflow_cells import leave_out

NOTEBOOKS = ("quickstart", "data", "tuning")
APART = ("skipped-collective", "another-collective", "different-shapes", "left-early")
WITHIN_S, SLOW_S, HANG_AFTER_S = 300.0, 4.0, 4.0


class Item(NamedTuple):
    """What is looked at, with the kinds of findings that it deserves."""

    part: str
    name: str
    run: Callable[[], list[Run]]
    deserves: tuple[str, ...] = ()


def items() -> Iterator[Item]:
    for program in programs():
        yield Item("programs", program.name, partial(_program, program))
    for name in NOTEBOOKS:
        yield Item("notebooks", name, partial(_notebook, name))
    for stuck in HANGS:
        kinds = ("collectives",) if stuck.name in APART else ()
        yield Item("cells", stuck.name, partial(_cell, stuck.name, stuck.text, stuck.ranks), kinds)
    for slow in HEALTHY:
        text = slow.text.replace("SECONDS", f"{SLOW_S:g}")
        yield Item("cells", slow.name, partial(_cell, slow.name, text, slow.ranks))


def _program(program: Program) -> list[Run]:
    with tempfile.TemporaryDirectory() as folder:
        if "import horovod" in program.text:
            with zipfile.ZipFile(wheel()) as file:
                file.extractall(folder)
        if "import tensorflow" in program.text:
            leave_out(Path(folder))
        os.environ["PYTHONPATH"] = folder  # what this program has more, or less
        options = cell_options(shlex.split(program.options))
        run = api.submit(_source(program.text), **{**options, "wait": False})
        return [_ended(run)]


def _notebook(name: str) -> list[Run]:
    """Execute a notebook in a kernel. Return the runs that it makes."""
    before = {run.id for run in api.runs()}
    path = Path(__file__).parents[1] / "notebooks" / f"{name}.ipynb"
    with tempfile.TemporaryDirectory() as folder:
        execute(nbformat.read(path, as_version=4), Path(folder), timeout=600)
    return [run for run in api.runs() if run.id not in before]


def _cell(name: str, text: str, ranks: int) -> list[Run]:
    run = api.submit(
        _source(text), name=name, ranks_per_replica=ranks, hang_after=f"{HANG_AFTER_S:g}",
        wait=False,
    )  # fmt: skip
    return [_ended(run)]


def _source(text: str) -> Source:
    return Source(Cell("Cell In[7]", text), Notebook({}, (), Path.cwd()))


def _ended(run: Run) -> Run:
    """Wait until a run ends, or is told why it does not."""
    end = time.time() + WITHIN_S
    while not run.state.final and not sentence(run) and time.time() < end:
        time.sleep(0.2)
    run.cancel()
    while not run.state.final:
        time.sleep(0.2)
    return run


def findings(runs: list[Run]) -> list[Finding]:
    return [finding for run in runs for finding in trained_wrong.findings(run)]


def main() -> None:
    os.environ.update(VARIABLES)
    chosen = sys.argv[1:]
    looked = [i for i in items() if not chosen or i.part in chosen or i.name in chosen]
    ran = alarms = named = succeeded = 0
    with tempfile.TemporaryDirectory() as home:
        os.environ["DISTRAIN_HOME"] = home
        for item in looked:
            runs = item.run()
            said = findings(runs)
            right = [f for f in said if f.code.partition(".")[0] in item.deserves]
            ran, named = ran + len(runs), named + bool(right)
            alarms += len(said) > len(right)
            succeeded += sum(str(run.state) == "succeeded" for run in runs)
            states = " ".join(sorted({str(run.state) for run in runs}))
            print(f"{item.part} {item.name}: {len(runs)} {states}", flush=True)
            for finding in said:
                print(f"      {'right' if finding in right else 'ALARM'} {finding}", flush=True)
            for run in runs:
                if item.part != "cells" and str(run.state) != "succeeded":
                    print(f"      {run.status.error[-300:]}", flush=True)
    figures = {"programs": len(looked), "runs": ran, "succeeded": succeeded}
    print(json.dumps({**figures, "named_rightly": named, "alarms": alarms}))


if __name__ == "__main__":
    main()
