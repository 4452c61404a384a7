"""RPC: remote calls and remote references between workers.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import os

import torch
import torch.distributed.rpc as rpc


# %%
def scaled(x, factor):
    return x * factor


class Table:
    def __init__(self, rows):
        self.weights = torch.arange(float(rows))

    def lookup(self, index):
        return self.weights[index].item()


# %%
def run():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world)
    found = []
    if rank == 0:
        found.append(rpc.rpc_sync("worker1", scaled, args=(torch.ones(2), 3)).tolist())
        futures = [rpc.rpc_async("worker1", torch.add, args=(torch.ones(1), n)) for n in range(3)]
        found.append([future.wait().item() for future in futures])
        table = rpc.remote("worker1", Table, args=(10,))
        found.append(table.rpc_sync().lookup(7))
    rpc.shutdown()
    print("RESULT", json.dumps([rank, found]))


run()
