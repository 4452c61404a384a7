"""Loaders with forked and spawned workers, a sampler for each rank.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json

import torch
import torch.distributed as dist
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    get_worker_info,
)

# %%
LENGTH = 4 * 3
SCALE = torch.tensor(0.5) * 2


class Squares(Dataset):
    def __len__(self):
        return LENGTH

    def __getitem__(self, index):
        return index * index * SCALE


class Stream(IterableDataset):
    def __init__(self, rank, world):
        self.rank, self.world = rank, world

    def __iter__(self):
        worker = get_worker_info()
        for n in range(self.rank, LENGTH, self.world):
            if n // self.world % worker.num_workers == worker.id:
                yield float(n)


def collate(values):
    return torch.stack([torch.as_tensor(value) for value in values]) + 1


# %%
def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    found = []
    for context in ("fork", "spawn"):
        data = Squares()
        loader = DataLoader(
            data,
            batch_size=2,
            num_workers=1,
            sampler=DistributedSampler(data, shuffle=False),
            collate_fn=collate,
            multiprocessing_context=context,
        )
        found.append([value for batch in loader for value in batch.tolist()])
    stream = DataLoader(Stream(rank, world), num_workers=2, batch_size=None)
    found.append(sorted(value for value in stream))
    print("RESULT", json.dumps([rank, found]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
