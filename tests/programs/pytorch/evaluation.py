"""Distributed evaluation: meters that are added up, predictions gathered as objects.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
from enum import Enum

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


# %%
class Summary(Enum):
    NONE = 0
    AVERAGE = 1
    SUM = 2


class AverageMeter:
    def __init__(self, name, fmt=":f", summary_type=Summary.AVERAGE):
        self.name = name
        self.fmt = fmt
        self.summary_type = summary_type
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def all_reduce(self):
        total = torch.tensor([self.sum, self.count], dtype=torch.float32)
        dist.all_reduce(total, dist.ReduceOp.SUM, async_op=False)
        self.sum, self.count = total.tolist()
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum() * (100.0 / len(target)) for k in topk]


# %%
generator = torch.Generator().manual_seed(0)
images = torch.randn(53, 10, generator=generator)
val_dataset = TensorDataset(images, images[:, :5].argmax(dim=1))


# %%
def validate(val_loader, model, criterion, world):
    losses = AverageMeter("Loss", ":.4e", Summary.NONE)
    top1 = AverageMeter("Acc@1", ":6.2f")
    predictions = []

    def run_validate(loader):
        with torch.no_grad():
            for images, target in loader:
                output = model(images)
                (acc1,) = accuracy(output, target)
                losses.update(criterion(output, target).item(), images.size(0))
                top1.update(acc1.item(), images.size(0))
                predictions.extend(output.argmax(dim=1).tolist())

    model.eval()
    run_validate(val_loader)
    top1.all_reduce()
    losses.all_reduce()
    seen = len(val_loader.sampler) * world
    if seen < len(val_loader.dataset):  # what the sampler dropped, on each rank
        rest = Subset(val_loader.dataset, range(seen, len(val_loader.dataset)))
        run_validate(DataLoader(rest, batch_size=8))
    return losses, top1, predictions


dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(10, 5))
sampler = DistributedSampler(val_dataset, shuffle=False, drop_last=True)
loader = DataLoader(val_dataset, batch_size=8, sampler=sampler)
losses, top1, predictions = validate(loader, model, nn.CrossEntropyLoss(), dist.get_world_size())
gathered = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
dist.gather_object(predictions, gathered, dst=0)
print(losses, top1)
print("RESULT", json.dumps([dist.get_rank(), losses.avg, top1.avg, gathered]))
dist.destroy_process_group()
