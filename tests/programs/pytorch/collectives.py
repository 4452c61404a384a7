"""All the collectives, sends and receives, and a group of some ranks.

%%distrain -n 3
torchrun --nproc-per-node 3
"""

import json

import torch
import torch.distributed as dist

# %%
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
found = {}

x = torch.tensor([float(rank)])
dist.all_reduce(x, op=dist.ReduceOp.MAX)
found["max"] = x.item()

rows = [torch.zeros(1) for _ in range(size)]
dist.all_gather(rows, torch.tensor([rank * 10.0]))
found["gathered"] = torch.cat(rows).tolist()

mine = torch.zeros(1)
dist.scatter(mine, [torch.tensor([n + 0.5]) for n in range(size)] if rank == 0 else None, src=0)
found["scattered"] = mine.item()

said = [f"rank {rank}", None][:1]
dist.broadcast_object_list(said, src=1)
found["said"] = said

if rank == 0:
    dist.send(torch.tensor([42.0]), dst=2)
if rank == 2:
    got = torch.zeros(1)
    dist.recv(got, src=0)
    found["got"] = got.item()

pair = dist.new_group([0, 2])
if rank != 1:
    y = torch.ones(1)
    dist.all_reduce(y, group=pair)
    found["pair"] = y.item()
print("RESULT", json.dumps([rank, found]))
dist.destroy_process_group()
