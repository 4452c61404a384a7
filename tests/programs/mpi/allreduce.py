"""mpi4py: gather, scatter and reduce.

%%distrain -n 2 --launcher mpi
mpirun -n 2
"""

import json

from mpi4py import MPI

# %%
STEPS = 100


def area(rank, size):
    width = 1.0 / STEPS
    return sum(4.0 / (1.0 + (width * (n + 0.5)) ** 2) for n in range(rank, STEPS, size)) * width


# %%
comm = MPI.COMM_WORLD
total = comm.allreduce(area(comm.rank, comm.size))
parts = comm.scatter([n * n for n in range(comm.size)] if comm.rank == 0 else None)
print("RESULT", json.dumps([comm.rank, comm.size, total, comm.gather(parts, root=0)]))
