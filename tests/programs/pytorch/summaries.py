"""A SummaryWriter on rank 0, a progress bar, and a logger with a format of its own.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import logging
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.tensorboard import SummaryWriter
from tqdm.auto import tqdm

# %%
EPOCHS = 3
log = logging.getLogger("train")
log.setLevel(logging.INFO)
handler = logging.StreamHandler(sys.stderr)
handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
log.addHandler(handler)


class RankZero:
    """Writes on rank 0 only."""

    def __init__(self, folder):
        self.writer = SummaryWriter(folder) if dist.get_rank() == 0 else None

    def scalar(self, tag, value, step):
        if self.writer is not None:
            self.writer.add_scalar(tag, value, step)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.writer is not None:
            self.writer.close()


# %%
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with RankZero(tempfile.mkdtemp()) as writer:
    for epoch in tqdm(range(EPOCHS), disable=dist.get_rank() != 0, file=sys.stdout):
        x = torch.full((4, 3), float(dist.get_rank() + epoch))
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        writer.scalar("train/loss", loss.item(), epoch)
        log.info("epoch %d loss %.3f", epoch, loss.item())
print()
print("RESULT", json.dumps([dist.get_rank(), loss.item()]))
dist.destroy_process_group()
