"""Stores and barriers: a TCPStore of one's own, a counter, a barrier that says who is late.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import os
from datetime import timedelta

import torch
import torch.distributed as dist

# %%
TIMEOUT = timedelta(seconds=60)


def rendezvous(rank, world_size):
    port = [None]
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, world_size, True, TIMEOUT, wait_for_workers=False)
        port = [store.port]
    dist.broadcast_object_list(port)
    if rank:
        store = dist.TCPStore("127.0.0.1", port[0], world_size, False, TIMEOUT)
    return store


# %%
dist.init_process_group("gloo", init_method="env://", timeout=TIMEOUT)
rank, world_size = dist.get_rank(), dist.get_world_size()
store = dist.PrefixStore("job", rendezvous(rank, world_size))
store.set(f"rank{rank}", str(rank * 10))
found = [store.get(f"rank{other}").decode() for other in range(world_size)]
store.add("arrived", 1)
dist.monitored_barrier(timeout=TIMEOUT)
found.append(store.add("arrived", 0))
second = torch.tensor([float(os.environ["LOCAL_RANK"])])
work = dist.all_reduce(second, async_op=True)
work.wait()
print("RESULT", json.dumps([rank, found, second.item(), dist.get_backend()]))
dist.barrier()
dist.destroy_process_group()
