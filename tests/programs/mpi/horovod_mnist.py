"""Horovod: an optimizer that averages, parameters broadcast, a metric averaged.

%%distrain -n 2
mpirun -n 2
"""

import argparse
import json

import horovod.torch as hvd
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
import torch.utils.data.distributed

# %%
parser = argparse.ArgumentParser(description="PyTorch MNIST Example")
parser.add_argument("--batch-size", type=int, default=8, metavar="N")
parser.add_argument("--epochs", type=int, default=2, metavar="N")
parser.add_argument("--lr", type=float, default=0.05, metavar="LR")
parser.add_argument("--use-adasum", action="store_true", default=False)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, 10)
        self.fc2 = nn.Linear(10, 3)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def digits(seed, length):
    x = torch.randn(length, 12, generator=torch.Generator().manual_seed(seed))
    return torch.utils.data.TensorDataset(x, x[:, :3].argmax(dim=1))


# %%
def metric_average(val, name):
    return hvd.allreduce(torch.tensor(val), name=name).item()


# %%
args = parser.parse_args()
hvd.init()
torch.manual_seed(42 + hvd.rank())
train_dataset = digits(0, 64)
train_sampler = torch.utils.data.distributed.DistributedSampler(
    train_dataset, num_replicas=hvd.size(), rank=hvd.rank()
)
train_loader = torch.utils.data.DataLoader(
    train_dataset, batch_size=args.batch_size, sampler=train_sampler
)
model = Net()
optimizer = optim.SGD(model.parameters(), lr=args.lr * hvd.size(), momentum=0.5)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    op=hvd.Adasum if args.use_adasum else hvd.Average,
)


def train(epoch):
    model.train()
    train_sampler.set_epoch(epoch)
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
    return loss.item()


losses = [train(epoch) for epoch in range(1, args.epochs + 1)]
found = [hvd.rank(), hvd.size(), metric_average(losses[-1], "avg_loss")]
print("RESULT", json.dumps([*found, model.fc1.weight.sum().item()]), flush=True)
hvd.shutdown()
