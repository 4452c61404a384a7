"""Whether a run that trains wrongly says so, with the line, and a healthy one says nothing.

`python -m benchmarks.trained_wrong [NAME…]` runs each case of `trained_wrong_cells.py` with two
ranks, then its healthy twin (`trained_right_cells.py`); some with `--prove`. It prints the sentence
about each fault, and whether it has the code and the line that the cell marks with `# HERE`; then
what is said of healthy programs. Horovod's cases need it in `PYTHONPATH`. The last line is JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.trained_right_cells import twin
from benchmarks.trained_wrong_cells import CASES, Case
from distrain_nb import api
from distrain_nb.api.source import Source
from distrain_nb.findings import Finding
from distrain_nb.program import Cell, Notebook
from distrain_nb.run import Run

AT_ONCE = 2
WITHIN_S, PROVEN_STEPS = 180.0, 4
KINDS = ("collectives", "data", "gradients", "numbers", "proof", "steps", "weights")


def run(name: str, text: str, *, proves: bool = False) -> Run:
    """Run a cell as the notebook's seventh, to its end."""
    source = Source(Cell("Cell In[7]", text), Notebook({}, (), Path.cwd()))
    started = api.submit(
        source,
        name=name.replace(" ", "-"),
        ranks_per_replica=2,
        hang_after="10",
        stop_when_hung=True,
        prove=PROVEN_STEPS if proves else None,
        wait=False,
    )
    end = time.time() + WITHIN_S
    while not started.state.final and time.time() < end:
        time.sleep(0.2)
    started.cancel()
    return started


def findings(of: Run) -> list[Finding]:
    """Return the findings about ranks."""
    return [f for f in of.findings if f.code.partition(".")[0] in KINDS]


def names(case: Case, said: list[Finding]) -> bool:
    """Whether findings have one of the case's codes at its line."""
    lines = case.faulty.splitlines()
    here = next(number for number, line in enumerate(lines, 1) if "# HERE" in line)
    return any(f.code in case.codes and f.where == f"Cell In[7], line {here}" for f in said)


def main() -> None:
    os.environ["KERAS_BACKEND"] = "torch"  # also for ranks that are forked from a warm process
    chosen = sys.argv[1:]
    cases = [case for case in CASES if not chosen or case.name in chosen]
    named = alarms = ran = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        faulty = pool.map(lambda case: run(case.name, case.faulty, proves=case.proves), cases)
        for case, wrong in zip(cases, faulty, strict=True):
            said = findings(wrong)
            right = names(case, said)
            named += right
            print(f"{'yes' if right else 'NO':3} {case.style}: {case.name} ({wrong.state})")
            for finding in said or ["nothing"]:
                print(f"      {finding}", flush=True)
            if not said:
                print(f"      {wrong.status.error[-300:]}")
        healthy = pool.map(
            lambda case: run(f"well {case.name}", twin(case), proves=case.proves), cases
        )
        for case, well in zip(cases, healthy, strict=True):
            said = findings(well)
            alarms, ran = alarms + bool(said), ran + (str(well.state) == "succeeded")
            print(f"healthy {case.name}: {well.state} {well.status.error[-300:]}")
            for finding in said:
                print(f"      {finding}", flush=True)
    figures = {"faults_named": named, "of": len(cases), "false_alarms": alarms}
    print(json.dumps({**figures, "healthy": len(cases), "healthy_succeeded": ran}))


if __name__ == "__main__":
    main()
