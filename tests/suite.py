"""Run tests in several processes, then run what failed once more, by itself.

    python -m tests.suite [--reruns N] [--workers N] [PYTEST'S ARGUMENTS]

A test that fails and then passes doesn't fail the run: it is listed at the end with its first
failure, and in `out/flaky.txt`. `pytest-rerunfailures` repeats a test at once and in the same
process, beside the same load; so pytest's own `--last-failed` does it here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import psutil

CACHE = ".cache/suite"  # failures of runs by hand stay out
FAILED = 1  # pytest's exit status if tests failed
MOST = 30  # tests that fail by chance; more have one cause
HEADING = "passed only when run again"
# A test waits for two thirds of its time: for ranks that meet, pages that settle, jobs that end.
WORKERS = min(12, 3 * (os.cpu_count() or 1))


def main(arguments: list[str]) -> int:
    """Run the tests in the working folder; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.suite")
    parser.add_argument("--reruns", type=int, default=1, help="runs of what failed (default: 1)")
    parser.add_argument(
        "--workers", type=int, default=WORKERS, help=f"processes (default: {WORKERS})"
    )
    options, rest = parser.parse_known_args(arguments)
    out = Path("out")
    out.mkdir(exist_ok=True)
    report, flaky = out / "tests.xml", out / "flaky.txt"
    flaky.unlink(missing_ok=True)
    begin, before = time.monotonic(), _busy_s()
    spread = ("-n", str(options.workers), "--dist", "loadscope", "--no-loadscope-reorder")
    status = _pytest(*spread, f"--junitxml={report}", *rest)
    failures = failures_in(report) if status == FAILED else {}
    if failures and options.reruns:
        status = _again(failures, options.reruns, rest)
    if failures and not status:
        flaky.write_text(_listed(failures), "utf-8")
        print(_listed(failures))
    print(_cost(time.monotonic() - begin, _busy_s() - before))
    return status


def failures_in(report: Path) -> dict[str, str]:
    """Read the tests that failed, with what they said, from a report in JUnit's form."""
    if not report.exists():
        return {}
    failures = {}
    for case in ElementTree.parse(report).iter("testcase"):
        for outcome in (*case.findall("failure"), *case.findall("error")):
            name = f"{case.attrib['classname']}::{case.attrib['name']}"
            failures[name] = outcome.text or outcome.attrib.get("message", "")
    return failures


def _again(failures: dict[str, str], times: int, arguments: list[str]) -> int:
    """Run what failed once more, so many times at most; return the last exit status."""
    if len(failures) > MOST:
        print(f"{len(failures)} tests failed: too many for chance, so none is run again")
        return FAILED
    status = FAILED
    for _ in range(times):
        print(f"running {len(failures)} failed tests once more, by themselves", flush=True)
        status = _pytest("--last-failed", "--last-failed-no-failures=none", *arguments)
        if not status:
            break
    return status


def _pytest(*arguments: str) -> int:
    """Run pytest in a process of its own, so that each run starts from the same state."""
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={CACHE}", *arguments]
    return subprocess.run(command).returncode


def _listed(failures: dict[str, str]) -> str:
    parts = [f"{name}\n\n{text.strip()}" for name, text in failures.items()]
    return f"===== {HEADING}: {len(failures)} =====\n\n" + "\n\n".join(parts) + "\n"


def _cost(elapsed: float, busy: float) -> str:
    """Say what the run cost, what other programs used meanwhile included."""
    cores = os.cpu_count() or 1
    return (
        f"{elapsed / 60:.1f} min, {busy / 60:.1f} CPU min on {cores} cores, "
        f"which were busy for {100 * busy / elapsed / cores:.0f} % of the time"
    )


def _busy_s() -> float:
    """Return the CPU time that this machine has used. What a process is told of its children leaves
    out ranks, kernels and services whose parent has ended: more than half."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
