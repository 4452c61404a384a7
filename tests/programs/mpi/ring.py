"""Point to point: arrays around a ring, requests that are waited for, a probe.

%%distrain -n 3
mpirun -n 3
"""

import json

import numpy as np
from mpi4py import MPI

# %%
TAG_DATA, TAG_DONE = 7, 8
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()


# %%
def around(block):
    """Sum of all blocks, each of which goes once around."""
    total, sent = block.copy(), block.copy()
    received = np.empty_like(block)
    for _ in range(size - 1):
        comm.Sendrecv(
            sent,
            dest=(rank + 1) % size,
            sendtag=TAG_DATA,
            recvbuf=received,
            source=rank - 1 if rank else size - 1,
            recvtag=TAG_DATA,
        )
        sent[:] = received
        total += received
    return total


# %%
total = around(np.arange(4, dtype="d") * (rank + 1))
if rank == 0:
    requests = [comm.irecv(source=other, tag=TAG_DONE) for other in range(1, size)]
    done = MPI.Request.waitall(requests)
else:
    comm.isend({"rank": rank, "sum": float(total.sum())}, dest=0, tag=TAG_DONE).wait()
    done = None
comm.Barrier()
print("RESULT", json.dumps([rank, size, total.tolist(), done]), flush=True)
