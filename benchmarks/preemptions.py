"""How often a run that is stopped at a random moment has saved, and how long that took.

    python -m benchmarks.preemptions [COUNT] [--seed N]

Each of 20 runs trains two ranks with DDP over gloo, of which one is slower. At a moment that the
seed gives, the supervisor gets SIGTERM, as a preempted container does, or the user stops the run.
A run has saved where the checkpoints of both ranks can be read and no parameter in them is a step
ahead of another. Prints a line a run; the last line is JSON: `saved` of `runs`, and the longest
time from the stop to the end of the run (`longest_s`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import time
from typing import TYPE_CHECKING

import torch

import distrain_nb as d
from tests.conftest import eventually
from tests.local.test_on_stop import DDP, begun, ended

if TYPE_CHECKING:
    from distrain_nb.run import Run

RANKS = 2
BEGINS_WITHIN_S = ENDS_WITHIN_S = 120.0


def main() -> None:
    """Preempt runs and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("count", nargs="?", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    luck = random.Random(chosen.seed)
    with tempfile.TemporaryDirectory() as home:
        os.environ["DISTRAIN_HOME"] = home
        times = [preempted(number, luck) for number in range(chosen.count)]
    saved = [seconds for seconds in times if seconds is not None]
    longest = round(max(saved, default=0.0), 2)
    print(json.dumps({"saved": len(saved), "runs": len(times), "longest_s": longest}))


def preempted(number: int, luck: random.Random) -> float | None:
    """Return how long a stopped run took to end; None where it hadn't saved."""
    run = d.submit(DDP, ranks_per_replica=RANKS)
    eventually(lambda: begun(run, RANKS), BEGINS_WITHIN_S)
    time.sleep(luck.random())
    stopped_at = time.monotonic()
    supervisor = run.status.supervisor
    if luck.random() < 0.5 and supervisor is not None:
        os.kill(supervisor.pid, signal.SIGTERM)
    else:
        run.cancel()
    eventually(lambda: ended(run), ENDS_WITHIN_S)
    seconds = time.monotonic() - stopped_at
    has_saved = all(is_whole(run, rank) for rank in range(RANKS))
    print(
        f"run {number}: {'saved' if has_saved else 'NOT saved'}, {seconds:.2f} s; {run.status.note}"
    )
    return seconds if has_saved else None


def is_whole(run: Run, rank: int) -> bool:
    """Return whether the checkpoint of a rank can be read and is of one step."""
    try:
        content = torch.load(run.folder / f"checkpoints/{rank}.pt")
    except (OSError, RuntimeError, EOFError):
        return False
    return len(content["counts"]) == 1


if __name__ == "__main__":
    main()
