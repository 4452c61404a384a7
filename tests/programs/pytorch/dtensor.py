"""DTensor: distribute, redistribute and add up.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json

import torch
import torch.distributed as dist
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor, init_device_mesh

# %%
SHAPE = (6, 4)
big = torch.arange(24.0).reshape(SHAPE)

# %%
mesh = init_device_mesh("cpu", (2,))
rows = distribute_tensor(big, mesh, [Shard(0)])
columns = rows.redistribute(placements=[Shard(1)])
product = (rows @ distribute_tensor(big.T.contiguous(), mesh, [Replicate()])).full_tensor()
partial = torch.distributed.tensor.DTensor.from_local(torch.ones(2), mesh, [Partial()])
found = [list(rows.to_local().shape), list(columns.to_local().shape), product.sum().item()]
print("RESULT", json.dumps([dist.get_rank(), *found, partial.full_tensor().tolist()]))
dist.destroy_process_group()
