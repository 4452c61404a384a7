"""A script with arguments, a main function and logging.

%%distrain -n 2 -- --epochs 2 --lr 0.05
torchrun --nproc-per-node 2
"""

import argparse
import json
import logging
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger(__name__)

# %%
parser = argparse.ArgumentParser(description="simple distributed training job")
parser.add_argument("--epochs", default=2, type=int, help="how many")
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--batch-size", default=16, type=int)


def ddp_setup():
    dist.init_process_group(backend="gloo")


class Trainer:
    def __init__(self, model, data, optimizer, batch_size):
        self.rank = int(os.environ["RANK"])
        self.model = DDP(model)
        self.data = data
        self.optimizer = optimizer
        self.batch_size = batch_size

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(source), targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train(self, max_epochs):
        for epoch in range(max_epochs):
            source, targets = self.data
            for start in range(0, len(source), self.batch_size):
                loss = self._run_batch(
                    source[start : start + self.batch_size],
                    targets[start : start + self.batch_size],
                )
            logger.info("epoch %d, rank %d: %.4f", epoch, self.rank, loss)
        return loss


# %%
def main(args):
    ddp_setup()
    torch.manual_seed(3)
    model = nn.Linear(20, 1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    data = torch.rand(64, 20, generator=generator), torch.rand(64, 1, generator=generator)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    loss = Trainer(model, data, optimizer, args.batch_size).train(args.epochs)
    print("RESULT", json.dumps([dist.get_rank(), args.epochs, args.lr, loss]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(parser.parse_args())
