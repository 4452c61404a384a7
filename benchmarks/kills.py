"""Ranks are killed at random moments, and the run with `--retries` comes to its end all the same.

`python benchmarks/kills.py [KILLS] [SEED]`; the last line is one JSON object. Two ranks with gloo
save a checkpoint each fifth step. One of them, by chance, gets SIGKILL: while the ranks start and
meet, or once an attempt has done so many steps that it has saved a newer checkpoint, which is how a
run goes on without an end. Counted are the runs that have finished, the steps that an attempt did
again, and whether the sum of all steps is that of a run that nobody disturbs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import distrain_nb
from benchmarks.machine import describe
from distrain_nb.errors import RunFailed
from distrain_nb.run import Run
from distrain_nb.worker.files.status import State, Status

KILLS_A_RUN = 10
EVERY = 5
SHARE_EARLY = 0.25
STEPS_A_KILL = 8
TRAIN = f"""
import json, os, time
import torch, torch.distributed as dist
import distrain_nb

dist.init_process_group("gloo")
path = os.path.join(os.environ["AIP_CHECKPOINT_DIR"], "last.json")
first, total = json.load(open(path)) if os.path.exists(path) else (0, 0.0)
for step in range(first, STEPS):
    value = torch.tensor(float(step))
    dist.all_reduce(value)
    total += value.item()
    if dist.get_rank() == 0:
        print("step", step)
        distrain_nb.log_metrics(total=total, step=step)
        if (step + 1) % {EVERY} == 0:
            with open(path + ".new", "w") as file:
                json.dump([step + 1, total], file)
            os.replace(path + ".new", path)
    time.sleep(0.01)
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Outcome:
    """What became of a run whose ranks were killed: `again` is how many steps each attempt after
    the first has done again, `charted` are the steps in its charts."""

    state: str
    error: str
    kills: int
    again: list[int]
    total: float
    charted: list[int]
    steps: int

    @property
    def is_whole(self) -> bool:
        """Whether it has ended as if nobody had disturbed it, with each step once in its charts."""
        total = sum(2.0 * step for step in range(self.steps))
        is_same = self.total == total and self.charted == list(range(self.steps))
        return self.state == "succeeded" and is_same


def killed(kills: int, seed: int) -> Outcome:
    """Start a run and kill its ranks so often."""
    chance, steps, done, early = random.Random(seed), STEPS_A_KILL * (kills + 1), 0, True
    code = TRAIN.replace("STEPS", str(steps))
    run = distrain_nb.submit(code, ranks_per_replica=2, retries=kills, result="total")
    for attempt in range(1, kills + 1):
        # Three attempts in turn that come to nothing would end it.
        early = not early and chance.random() < SHARE_EARLY
        wanted = 0 if early else chance.randrange(EVERY, STEPS_A_KILL)
        ranks = _ranks(run, attempt, wanted)
        if not ranks:
            break
        time.sleep(chance.random() * (0.2 if early else 0.02))
        os.kill(chance.choice(ranks), signal.SIGKILL)
        done += 1
    with suppress(RunFailed):
        run.wait(300)
    again, highest = [], -1
    for numbers in _steps(run):
        if highest >= 0 and numbers:
            again.append(highest + 1 - numbers[0])
        highest = max([highest, *numbers])
    status = run.status
    total = run.results["total"] if status.state is State.SUCCEEDED else -1.0
    charted = run.metrics()["step"].tolist()
    return Outcome(str(status.state), status.error, done, again, total, charted, steps)


def _ranks(run: Run, attempt: int, wanted: int) -> list[int]:
    """Return the processes of an attempt once it has done so many steps; none of an ended run."""
    while True:
        status = run.status
        if status.state.final:
            return []
        is_on = status.state is State.RUNNING and _attempt(status) == attempt
        if is_on and len(_steps(run)[-1]) >= wanted:
            return [p.pid for p in status.processes if p.rank is not None and p.pid]
        time.sleep(0.01)


def _attempt(status: Status) -> int:
    found = re.search(r"attempt (\d+)", status.phase)
    return int(found[1]) if found else 1


def _steps(run: Run) -> list[list[int]]:
    """Return the steps that each attempt has done, by its log."""
    attempts: list[list[int]] = [[]]
    for line in run.logs().splitlines():
        if line.startswith("[service] attempt "):
            attempts.append([])
        elif line.startswith("[rank 0] step "):
            attempts[-1].append(int(line.split()[-1]))
    return attempts


def main() -> None:
    """Kill so often, ten times a run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kills", type=int, nargs="?", default=100)
    parser.add_argument("seed", type=int, nargs="?", default=7)
    given = parser.parse_args()
    kills, seed = given.kills, given.seed
    print(describe("torch"))
    outcomes = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        os.environ["DISTRAIN_HOME"] = home
        for number in range(-(-kills // KILLS_A_RUN)):
            left = min(KILLS_A_RUN, kills - KILLS_A_RUN * number)
            outcomes.append(killed(left, seed + number))
            print(outcomes[-1])
    again = [steps for outcome in outcomes for steps in outcome.again]
    row = {
        "kills": sum(outcome.kills for outcome in outcomes),
        "runs": len(outcomes),
        "whole": sum(outcome.is_whole for outcome in outcomes),
        "checkpoint_interval": EVERY,
        "most_steps_again": max(again, default=0),
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
