"""A rank of Open MPI that exchanges gradients: `mpirun python mpi_exchange.py SIZES ROUNDS`.

Rank 0 prints one JSON list, a row for each size: what `exchanges.measured` gives, of every rank.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.exchanges import measured


def main(sizes: list[int], rounds: list[int]) -> None:
    world = MPI.COMM_WORLD
    found = measured(
        lambda size: np.empty(size // 4, np.float32),
        lambda gradient: world.Allreduce(MPI.IN_PLACE, gradient),
        world.Barrier,
        world.bcast,
        (world.rank, world.size),
        (sizes, rounds),
    )
    every = world.gather(found)
    if every:
        print("FOUND", json.dumps(every))


if __name__ == "__main__":
    main(*(list(map(int, words.split(","))) for words in sys.argv[1:3]))
