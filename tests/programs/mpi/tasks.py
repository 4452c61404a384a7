"""A farm of tasks: whoever is free gets the next; then a window of shared memory and a file.

%%distrain -n 3 --launcher mpi
mpirun -n 3
"""

import json
import os
import tempfile
from enum import IntEnum

import numpy as np
from mpi4py import MPI


# %%
class Tags(IntEnum):
    READY = 0
    START = 1
    DONE = 2
    EXIT = 3


def solve(task):
    return sum(n for n in range(2, task) if all(n % d for d in range(2, int(n**0.5) + 1)))


# %%
def master(comm, tasks):
    status, found, open_workers = MPI.Status(), {}, comm.size - 1
    waiting = list(enumerate(tasks))
    while open_workers:
        data = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        source, tag = status.Get_source(), Tags(status.Get_tag())
        if tag == Tags.READY:
            if waiting:
                comm.send(waiting.pop(0), dest=source, tag=Tags.START)
            else:
                comm.send(None, dest=source, tag=Tags.EXIT)
        elif tag == Tags.DONE:
            found[data[0]] = data[1]
        elif tag == Tags.EXIT:
            open_workers -= 1
    return [found[n] for n in sorted(found)]


def worker(comm):
    status = MPI.Status()
    while True:
        comm.send(None, dest=0, tag=Tags.READY)
        task = comm.recv(source=0, tag=MPI.ANY_TAG, status=status)
        if status.Get_tag() == Tags.EXIT:
            break
        comm.send((task[0], solve(task[1])), dest=0, tag=Tags.DONE)
    comm.send(None, dest=0, tag=Tags.EXIT)


# %%
comm = MPI.COMM_WORLD
found = master(comm, [10, 30, 20, 50, 40]) if comm.rank == 0 else worker(comm)
window = MPI.Win.Allocate_shared(8 * comm.size if comm.rank == 0 else 0, 8, comm=comm)
buffer, _ = window.Shared_query(0)
shared = np.ndarray(comm.size, dtype="d", buffer=buffer)
window.Fence()
shared[comm.rank] = comm.rank + 0.5
window.Fence()
folder = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
path = os.path.join(folder, "all.bin")
file = MPI.File.Open(comm, path, MPI.MODE_WRONLY | MPI.MODE_CREATE)
file.Write_at_all(comm.rank * 8, np.full(1, comm.rank * 2.0))
file.Close()
comm.Barrier()
print(
    "RESULT",
    json.dumps([comm.rank, found, shared.tolist(), np.fromfile(path).tolist()]),
    flush=True,
)
comm.Barrier()
window.Free()
