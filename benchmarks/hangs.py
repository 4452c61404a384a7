"""Whether a run that makes no progress is told why, and one that is slow is left alone.

`python -m benchmarks.hangs [AFTER [NAME…]]` runs each cell of `hang_cells.py` with `--hang-after
AFTER` (default: 30), three at a time. It prints the sentence about each hang, and whether that
names the rank and the line that the cell marks with `# HERE`; then of each slow cell whether it got
an alarm, and its result and seconds with the doctor and without. The last line is JSON.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.hang_cells import HANGS, HEALTHY, SlowCell, StuckCell
from distrain_nb import api
from distrain_nb.api.source import Source
from distrain_nb.program import Cell, Notebook
from distrain_nb.run import Run
from distrain_nb.run.log.reader import Line
from distrain_nb.worker.files.coded_line import HANG, read

NAMED_WITHIN_S = 30.0
SAME_SECONDS = 2.0
AT_ONCE = 3


def submit(name: str, text: str, ranks: int, after: float) -> Run:
    """Start a cell as the notebook's seventh."""
    source = Source(Cell("Cell In[7]", text), Notebook({}, (), Path.cwd()))
    name = f"{name}-{'on' if after else 'off'}-{time.time_ns() % 10**6}"
    return api.submit(
        source, name=name, ranks_per_replica=ranks, hang_after=f"{after:g}", wait=False
    )


def sentence(run: Run) -> str:
    """What the log says of a run that makes no progress; empty if nothing."""
    return next((why for _, why in _hangs(run.lines())), "")


def _hangs(lines: Iterable[Line]) -> Iterator[tuple[float, str]]:
    """Yield when the log says that the run makes no progress, and why."""
    for line in lines:
        coded = read(line.text)
        if coded and coded.code == HANG:
            yield line.time, coded.text.partition(": ")[2]


def names(said: str, cell: StuckCell) -> bool:
    """Whether a sentence names the odd rank, or says that none is, and the line."""
    lines = cell.text.splitlines()
    here = next(number for number, line in enumerate(lines, 1) if "# HERE" in line)
    at = rf"Cell In\[7\], line {here}\b"
    if cell.odd is None:
        return bool(re.match(rf"all {cell.ranks} ranks are at {at}", said))
    parts = [part for part in said.split("; ") if re.match(rf"rank {cell.odd}\b", part)]
    return len(parts) == 1 and bool(re.search(at, parts[0]))


def stuck(cell: StuckCell, after: float) -> tuple[str, bool, float]:
    """Run a cell that hangs until it is told why. Return the sentence, whether it is right, and
    the seconds since its last line."""
    run = submit(cell.name, cell.text, cell.ranks, after)
    end = time.time() + 120 + 3 * after
    while time.time() < end and not run.state.final and not sentence(run):
        time.sleep(0.5)
    lines = list(run.lines())
    printed = [line.time for line in lines if not line.text.startswith("distrain")]
    told = [at for at, _ in _hangs(lines)]
    said = sentence(run) or f"nothing; it is {run.state}: {run.status.error[-200:]}"
    waited = told[0] - printed[-1] if told else 0.0
    run.cancel()
    return said, bool(told) and names(said, cell) and waited < after + NAMED_WITHIN_S, waited


def slow(cell: SlowCell, after: float, seconds: float) -> tuple[str, str, float]:
    """Run a healthy cell to its end. Return an alarm if there was one, its result, its seconds."""
    run = submit(cell.name, cell.text.replace("SECONDS", f"{seconds:g}"), cell.ranks, after)
    while not run.state.final:
        time.sleep(0.5)
    times = run.status.times
    result = [line.text for line in run.lines() if line.text.startswith("result")]
    ended = times[str(run.state)] - times["running"]
    return sentence(run), " ".join(sorted(result)) or run.status.error[-300:], ended


def main() -> None:
    after = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    chosen = sys.argv[2:]
    hangs = [cell for cell in HANGS if not chosen or cell.name in chosen]
    healthy = [cell for cell in HEALTHY if not chosen or cell.name in chosen]
    named = alarms = same = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for cell, (said, right, waited) in zip(
            hangs, pool.map(lambda cell: stuck(cell, after), hangs), strict=True
        ):
            named += right
            print(f"{'yes' if right else 'NO ':3} {waited:5.1f} s  {cell.name}: {said}", flush=True)
        seconds = 2 * after + 5
        ways = [(cell, way) for cell in healthy for way in (0.0, after)]
        results = list(pool.map(lambda way: slow(way[0], way[1], seconds), ways))
    for well, without, with_doctor in zip(healthy, results[::2], results[1::2], strict=True):
        alarm, result, took = with_doctor
        is_same = result == without[1] and abs(took - without[2]) < SAME_SECONDS
        alarms, same = alarms + bool(alarm), same + is_same
        print(f"{well.name}: {alarm or 'no alarm'}; {result}; {took:.1f} s, {without[2]:.1f} s")
    figures = {"hangs_named": named, "of": len(hangs), "false_alarms": alarms}
    print(json.dumps({**figures, "healthy": len(healthy), "same_as_without": same}))


if __name__ == "__main__":
    main()
