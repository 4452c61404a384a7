"""mpi4py.futures: a pool whose workers MPI starts.

%%distrain -n 1 --launcher mpi
mpirun -n 1
"""

import json
from functools import partial

import numpy as np
from mpi4py.futures import MPIPoolExecutor

# %%
grid = np.linspace(-2, 2, 5) * 1.0
LIMIT = 10 * 3


def escapes(y, limit):
    z, c = 0j, complex(-0.5, y)
    for n in range(limit):
        if abs(z) > 2:
            return n
        z = z * z + c
    return limit


def row(y):
    return [escapes(y + x / 10, LIMIT) for x in grid]


# %%
if __name__ == "__main__":
    with MPIPoolExecutor(max_workers=2) as executor:
        rows = list(executor.map(row, grid.tolist()))
        cubes = [executor.submit(pow, n, 3) for n in range(4)]
        some = list(executor.map(partial(escapes, limit=5), [0.1, 1.5]))
    print("RESULT", json.dumps([rows, [cube.result() for cube in cubes], some]), flush=True)
