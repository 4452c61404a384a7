"""Searching a log of ten million lines as the page does, against ripgrep.

`python benchmarks/search.py [LINES [ROUNDS]]`. Needs `rg` (Debian's `ripgrep`). Both search the
same file, from the page cache, in turns; `rg` counts the matching lines. Every figure is a median
of wall time, from the first request until all is searched, in this process: without HTTP and page.
The last line is one JSON object:

- `rare_over_rg`: a word of one line, in upper and lower case; `exact_over_rg`: in this case only;
- `frequent_over_rg`: a word of a tenth of the lines; `expression_over_rg`: an expression of these;
- `rare_cpu_over_rg` and the others: the same of the processor's time, as other work stretches it
  less;
- `rank_s`: the rare word in the lines of one rank of four, in seconds;
- `first_hit_s`: until the first match is known of a frequent word, from the middle of the log on;
- `rare_s`, `frequent_s`, `expression_s`, `index_s`: seconds, the last for reading the log at first.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import describe
from distrain_nb.run.log.index import Filter, LogIndex
from distrain_nb.run.log.matching import SearchTerm
from distrain_nb.run.log.search import search
from distrain_nb.worker.files.folder import LOG_FILE

RARE, FREQUENT, EXPRESSION = "Needle is", "loss=0.7", r"loss=0\.7\d+ "
CASES = {
    "rare": (SearchTerm(RARE), ["-i", RARE]),
    "exact": (SearchTerm(RARE.lower(), case=True), [RARE.lower()]),
    "frequent": (SearchTerm(FREQUENT, case=True), ["-F", FREQUENT]),
    "expression": (SearchTerm(EXPRESSION, regex=True, case=True), [EXPRESSION]),
}


def write(path: Path, lines: int) -> None:
    """Write the log of four ranks, with the rare word at three quarters."""
    with path.open("w") as file:
        for number in range(lines):
            stream = "o" if number % 7 else "e"
            loss = 0.5 + number % 1000 / 1000
            text = f"step {number} loss={loss:.4f} lr=0.001"
            if number == 3 * lines // 4:
                text = "the needle is here"
            file.write(f"{1.7e9 + number / 1000:.6f}\t{number % 4}\t{stream}\t{text}\n")


def searched(
    log: LogIndex, only: Filter, wanted: SearchTerm, near: int
) -> tuple[float, float, int]:
    """Return the seconds until the first match is known, until all is searched, and the count."""
    begin, first = time.perf_counter(), None
    while True:
        progress = search(log, only, wanted, near)
        if first is None and progress.row is not None:
            first = time.perf_counter() - begin
        if progress.done:
            whole = time.perf_counter() - begin
            return whole if first is None else first, whole, progress.total


def ripgrep(path: Path, words: list[str]) -> tuple[float, int]:
    """Return the seconds that ripgrep takes to count the matching lines, and their number."""
    begin = time.perf_counter()
    done = subprocess.run(["rg", "-c", *words, str(path)], capture_output=True, check=True)
    return time.perf_counter() - begin, int(done.stdout)


def cpu_s() -> float:
    """Return the processor's time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def main(lines: int, rounds: int) -> None:
    """Print the figures of one log."""
    if shutil.which("rg") is None:
        sys.exit("no `rg` on this machine: install ripgrep (apt-get install ripgrep)")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / LOG_FILE
        write(path, lines)
        begin = time.perf_counter()
        log = LogIndex(Path(folder))
        log.update()
        figures = {"index_s": time.perf_counter() - begin}
        print(describe("numpy"), subprocess.getoutput("rg --version").splitlines()[0], sep=", ")
        for name, (wanted, words) in CASES.items():
            ours, theirs, cpu, cpu_of_rg = [], [], 0.0, 0.0
            for turn in range(rounds):
                before = cpu_s()
                _, whole, count = searched(log, Filter(), wanted, lines // 2 + turn)
                between = cpu_s()
                seconds, expected = ripgrep(path, words)
                cpu, cpu_of_rg = cpu + between - before, cpu_of_rg + cpu_s() - between
                assert count == expected, (name, count, expected)
                ours.append(whole)
                theirs.append(seconds)
                _forget()
            figures[f"{name}_s"] = statistics.median(ours)
            figures[f"{name}_over_rg"] = statistics.median(ours) / statistics.median(theirs)
            figures[f"{name}_cpu_over_rg"] = cpu / cpu_of_rg
            print(
                f"{name}: {figures[f'{name}_s']:.2f} s, rg {statistics.median(theirs):.2f} s; "
                f"of the processor {cpu / rounds:.2f} s, rg {cpu_of_rg / rounds:.2f} s"
            )
        _, figures["rank_s"], _ = searched(log, Filter(frozenset({0})), SearchTerm(RARE), 0)
        figures["first_hit_s"], _, _ = searched(log, Filter(), SearchTerm("lr="), lines // 2)
    print(json.dumps({name: round(figure, 3) for name, figure in figures.items()}))


def _forget() -> None:
    """Have the next search of the same text begin anew."""
    from distrain_nb.run.log import search as module

    module._searches.clear()


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:3]]
    main(*given, *(10_000_000, 3)[len(given) :])
