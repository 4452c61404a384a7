"""A Cartesian topology: heat on a plate, rows exchanged with the neighbours.

%%distrain -n 4 --launcher mpi
mpirun -n 4
"""

import json

import numpy as np
from mpi4py import MPI

# %%
N, STEPS, ALPHA = 8, 20, 0.2


class Plate:
    def __init__(self, cart):
        self.cart = cart
        self.here = np.zeros((N + 2, N + 2))
        if cart.Get_coords(cart.rank)[0] == 0:
            self.here[0, :] = 100.0

    def exchange(self):
        u = self.here
        for axis in (0, 1):
            before, after = self.cart.Shift(axis, 1)
            view = u if axis == 0 else u.T
            for dest, source, sent, kept in ((after, before, -2, 0), (before, after, 1, -1)):
                buffer = np.empty(N + 2)
                self.cart.Sendrecv(np.ascontiguousarray(view[sent]), dest, 0, buffer, source, 0)
                if source != MPI.PROC_NULL:
                    view[kept] = buffer

    def step(self):
        u = self.here
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] += ALPHA * (around - 4 * u[1:-1, 1:-1])


# %%
def main():
    comm = MPI.COMM_WORLD
    dims = MPI.Compute_dims(comm.size, 2)
    cart = comm.Create_cart(dims, periods=(False, False), reorder=False)
    plate = Plate(cart)
    for _ in range(STEPS):
        plate.exchange()
        plate.step()
    local = float(plate.here[1:-1, 1:-1].sum())
    hottest = comm.allreduce(float(plate.here[1:-1, 1:-1].max()), op=MPI.MAX)
    total = comm.reduce(local, op=MPI.SUM, root=0)
    print("RESULT", json.dumps([comm.rank, list(dims), local, hottest, total]), flush=True)


if __name__ == "__main__":
    main()
