"""Whole runs: the last one that was green, and the tests that a change since then can reach.

    python -m tests.whole run [ARGUMENTS OF tests.suite]
    python -m tests.whole rest --minutes N [ARGUMENTS OF tests.suite]

`run` runs everything; if all is green and nothing is uncommitted, `tests/whole_run.json` says so.
`rest` runs what `make test` leaves out, as far as the changes since then can reach it. Tests for
which the minutes don't suffice are listed, and the next `rest` on this machine begins with them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from tests import schedule, suite
from tests.reach import ROOT, Code, Reached, changed_since

RECORD = Path("tests", "whole_run.json")
# Ten landings have had some 300 commits. What is older says too little of what runs today.
COMMITS = 300
REST = "slow and not stands_for and not brief"
NO_TESTS = 5  # pytest's exit status if a selection is empty


@dataclass(frozen=True)
class WholeRun:
    """A run of all tests that was green: of which commit, when (UTC), and in how many minutes."""

    commit: str
    date: str
    minutes: float


def last(root: Path = ROOT) -> WholeRun | None:
    """Read the last whole run that was green; None if the checkout has no record of one."""
    path = root / RECORD
    return WholeRun(**json.loads(path.read_text("utf-8"))) if path.exists() else None


def to_run(root: Path = ROOT) -> Reached:
    """Tell which test files have to run again since the last whole run."""
    whole = last(root)
    if whole is None:
        return Reached(None, "no whole run is on record")
    changed, commits = changed_since(whole.commit, root), _commits_since(whole.commit, root)
    if changed is None or commits is None:
        return Reached(None, f"the last whole run is of {whole.commit}, which isn't in the history")
    if commits > COMMITS:
        return Reached(None, f"the last whole run is {commits} commits old, of {COMMITS} at most")
    reached = Code(root).reached_by(changed)
    since = f"{len(changed)} files have changed since {whole.commit[:8]}, {whole.date}"
    return Reached(reached.files, f"{since}: {reached.reason}")


def run_all(arguments: list[str], root: Path = ROOT) -> int:
    """Run everything; record the run if it was green. Return the exit status."""
    begin = time.monotonic()
    commit = _git(root, "rev-parse", "HEAD")
    status = suite.main(arguments)
    if not status and (uncommitted := _git(root, "status", "--porcelain")):
        print(f"{RECORD} doesn't have this run, as something is uncommitted:\n{uncommitted}")
    elif not status and commit:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M")
        whole = WholeRun(commit, now, round((time.monotonic() - begin) / 60, 1))
        (root / RECORD).write_text(json.dumps(asdict(whole), indent=1) + "\n", "utf-8")
        print(f"{RECORD} has this run; commit it")
    return status


def run_rest(minutes: float, arguments: list[str]) -> int:
    """Run what is reached of what `make test` leaves out, for so long; return the exit status."""
    begin = time.monotonic()
    reached = to_run()
    print(f"the rest of the tests: {reached.reason}", flush=True)
    files = sorted(reached.files if reached.files is not None else ())
    if reached.files is not None and not files:
        return 0
    left = schedule.left_file()
    os.environ[schedule.UNTIL] = str(time.time() + 60 * minutes - (time.monotonic() - begin))
    status = suite.main(["-m", REST, *arguments, *files])
    names = json.loads(left.read_text("utf-8")) if left.exists() else []
    if names:
        print(f"left out, as {minutes:g} minutes are over; they run first the next time:")
        print("\n".join(f"  {name}" for name in names))
    return 0 if status == NO_TESTS else status


def _commits_since(commit: str, root: Path) -> int | None:
    count = _git(root, "rev-list", "--count", f"{commit}..HEAD")
    return int(count) if count else None


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
    """Carry out a command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.whole")
    parser.add_argument("what", choices=("run", "rest"))
    parser.add_argument("--minutes", type=float, default=60.0, help="for `rest` (default: 60)")
    options, others = parser.parse_known_args(arguments)
    return run_all(others) if options.what == "run" else run_rest(options.minutes, others)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
