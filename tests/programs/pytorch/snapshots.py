"""A fault-tolerant trainer that takes snapshots and continues from the last.

%%distrain -n 2 -- 4 1 --batch_size 8
torchrun --nproc-per-node 2
"""

import argparse
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


# %%
class MyTrainDataset(Dataset):
    def __init__(self, size):
        self.size = size
        generator = torch.Generator().manual_seed(1)
        self.data = [
            (torch.rand(20, generator=generator), torch.rand(1, generator=generator))
            for _ in range(size)
        ]

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.data[index]


# %%
class Trainer:
    def __init__(
        self,
        model: torch.nn.Module,
        train_data: DataLoader,
        optimizer: torch.optim.Optimizer,
        save_every: int,
        snapshot_path: str,
    ) -> None:
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])
        self.model = model
        self.train_data = train_data
        self.optimizer = optimizer
        self.save_every = save_every
        self.epochs_run = 0
        self.snapshot_path = snapshot_path
        if os.path.exists(snapshot_path):
            print("Loading snapshot")
            self._load_snapshot(snapshot_path)
        self.model = DDP(self.model)

    def _load_snapshot(self, snapshot_path):
        snapshot = torch.load(snapshot_path, map_location="cpu")
        self.model.load_state_dict(snapshot["MODEL_STATE"])
        self.epochs_run = snapshot["EPOCHS_RUN"]

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(source), targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch):
        self.train_data.sampler.set_epoch(epoch)
        return [self._run_batch(source, targets) for source, targets in self.train_data][-1]

    def _save_snapshot(self, epoch):
        torch.save(
            {"MODEL_STATE": self.model.module.state_dict(), "EPOCHS_RUN": epoch + 1},
            self.snapshot_path,
        )

    def train(self, max_epochs):
        loss = None
        for epoch in range(self.epochs_run, max_epochs):
            loss = self._run_epoch(epoch)
            if self.local_rank == 0 and epoch % self.save_every == 0:
                self._save_snapshot(epoch)
        return loss


def load_train_objs():
    torch.manual_seed(0)
    model = torch.nn.Linear(20, 1)
    return MyTrainDataset(32), model, torch.optim.SGD(model.parameters(), lr=1e-2)


def prepare_dataloader(dataset: Dataset, batch_size: int):
    return DataLoader(
        dataset, batch_size=batch_size, shuffle=False, sampler=DistributedSampler(dataset)
    )


# %%
@record
def main(save_every: int, total_epochs: int, batch_size: int):
    dist.init_process_group(backend="gloo")
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    snapshot_path = os.path.join(folder[0], "snapshot.pt")
    found = []
    for until in (total_epochs // 2, total_epochs):  # the second goes on from the first
        dataset, model, optimizer = load_train_objs()
        train_data = prepare_dataloader(dataset, batch_size)
        dist.barrier()
        trainer = Trainer(model, train_data, optimizer, save_every, snapshot_path)
        found.append([trainer.epochs_run, trainer.train(until)])
    print("RESULT", json.dumps([trainer.global_rank, found]))
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="simple distributed training job")
    parser.add_argument("total_epochs", nargs="?", type=int, default=4)
    parser.add_argument("save_every", nargs="?", type=int, default=1)
    parser.add_argument("--batch_size", default=8, type=int)
    args = parser.parse_args()
    main(args.save_every, args.total_epochs, args.batch_size)
