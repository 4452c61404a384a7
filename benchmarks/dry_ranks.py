"""Whether `--as-rank all` finds faults that some ranks have: at which rank and line, and how soon.

`python -m benchmarks.dry_ranks [NAME…]` runs each fault of `dry_rank_cells.py` in a world of 16
ranks, on this machine. The last line is JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.dry_rank_cells import FAULTS, PER_REPLICA, REPLICAS, Fault
from distrain_nb import api
from distrain_nb.api.source import Source
from distrain_nb.errors import RunFailed
from distrain_nb.program import Cell, Notebook

SHARDS, WITHIN_S = 8, 300.0


def find(fault: Fault) -> tuple[bool, float]:
    """Return whether the fault is found at its rank and line, and after how many seconds."""
    source = Source(Cell("Cell In[7]", fault.program), Notebook({}, (), Path.cwd()))
    options = {"ranks_per_replica": PER_REPLICA, "workers": REPLICAS - 1, **fault.options}
    began = time.monotonic()
    run = api.submit(source, as_rank="all", **options)  # type: ignore[call-overload]
    with suppress(RunFailed):
        run.wait(WITHIN_S)
    report = run.status.error or ""
    at = f"Cell In[7], line {fault.where}, in <module>"
    is_right = report.startswith(f"rank {fault.rank} failed first") and at in report
    return is_right, time.monotonic() - began


def main(names: list[str]) -> None:
    """Run the faults that are named, or all."""
    seconds, right = [], 0
    with TemporaryDirectory() as folder:
        for number in range(SHARDS):
            Path(folder, f"part-{number}").touch()
        os.environ.update(SHARDS=folder, DISTRAIN_HOME=str(Path(folder, "home")))
        for fault in (fault for fault in FAULTS if not names or fault.name in names):
            found, took = find(fault)
            right += found
            seconds.append(took)
            print(f"| {fault.name} | {fault.rank} | {'yes' if found else 'no'} | {took:.1f} s |")
    print(json.dumps({"found": right, "of": len(seconds), "longest_s": round(max(seconds), 1)}))


if __name__ == "__main__":
    main(sys.argv[1:])
