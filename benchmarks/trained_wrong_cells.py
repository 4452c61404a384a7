"""The cells of `trained_wrong.py`: healthy programs of six styles, and faults planted in them.

A fault is a change of a healthy program's text. It marks the line that is to be named by `# HERE`;
in the healthy twin, that line reads as it should.
"""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """A fault: the codes that name it, and the changes of the style's program that plant it."""

    name: str
    style: str
    codes: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]

    @property
    def healthy(self) -> str:
        return PROGRAMS[self.style]

    @property
    def proves(self) -> bool:
        """Whether only `--prove` can name it: all ranks do the same, but not what one would."""
        return self.codes == ("proof.parted",)

    @property
    def faulty(self) -> str:
        text = self.healthy
        for old, new in self.changes:
            assert text.count(old) == 1, (self.name, old)
            text = text.replace(old, new)
        return text


_DATA = """\
inputs = torch.randn(256, 8, generator=torch.Generator().manual_seed(0))
data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
"""

_PLAIN = f"""\
import contextlib
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset, random_split
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
{_DATA}
train, valid = random_split(data, [192, 64], generator=torch.Generator().manual_seed(1))
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=8, sampler=sampler)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
scale = torch.nn.Linear(1, 1)
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=1)
stops = None
for epoch in range(3):
    sampler.set_epoch(epoch)
    for number, (x, y) in enumerate(loader):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number == stops:
            break
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    scheduler.step(mean)
print("loss", mean.item() / world)
dist.destroy_process_group()
"""

_FORWARD = "        loss = (model(x) - y).square().mean()\n"
_SAMPLER = "sampler = DistributedSampler(train)\n"
_LOADER = "loader = DataLoader(train, batch_size=8, sampler=sampler)\n"
_SPLIT = "random_split(data, [192, 64], generator=torch.Generator().manual_seed(1))"
_STEP = "        optimizer.step()\n"
_WRAP = "model = DistributedDataParallel(net)\n"

_BY_HAND = f"""\
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
{_DATA}
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = torch.nn.Linear(8, 1)
for parameter in model.parameters():
    dist.broadcast(parameter.data, 0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        optimizer.step()
dist.destroy_process_group()
"""

_ACCELERATE = f"""\
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset, random_split
accelerator = Accelerator(cpu=True)
rank = accelerator.process_index
{_DATA}
train, valid = random_split(data, [192, 64], generator=torch.Generator().manual_seed(1))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(train, batch_size=8, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(3):
    for x, y in loader:
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
print("loss", accelerator.gather(loss.detach()).mean().item())
accelerator.end_training()
"""

_LIGHTNING = f"""\
import torch, lightning
from torch.utils.data import DataLoader, TensorDataset
{_DATA}
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 1)
        self.scale = torch.nn.Linear(1, 1)
    def training_step(self, batch, number):
        x, y = batch
        return (self.scale(self.net(x)) - y).square().mean()
    def on_train_batch_end(self, *_):
        pass
    def configure_optimizers(self):
        parameters = [*self.net.parameters(), *self.scale.parameters()]
        return torch.optim.SGD(parameters, lr=0.01)
lightning.seed_everything(0, verbose=False)
loader = DataLoader(data, batch_size=8, shuffle=True)
options = dict(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False)
options |= dict(enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer = lightning.Trainer(**options)
trainer.fit(Model(), loader)
"""

_TRAINER = f"""\
import tempfile, torch
from torch.utils.data import Dataset, TensorDataset, random_split
from transformers import Trainer, TrainerCallback, TrainingArguments
{_DATA}
class Rows(Dataset):
    def __init__(self, part):
        self.part = part
    def __len__(self):
        return len(self.part)
    def __getitem__(self, number):
        x, y = self.part[number]
        return {{"x": x, "labels": y}}
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 1)
    def forward(self, x, labels=None):
        predicted = self.net(x)
        return {{"loss": (predicted - labels).square().mean(), "logits": predicted}}
class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **_):
        outputs = model(**inputs)
        return (outputs["loss"], outputs) if return_outputs else outputs["loss"]
class Rate(TrainerCallback):
    def on_step_begin(self, args, state, control, optimizer=None, **_):
        if state.global_step == 2:
            optimizer.param_groups[0]["lr"] = 0.01
arguments = TrainingArguments(
    tempfile.mkdtemp(), use_cpu=True, num_train_epochs=2, per_device_train_batch_size=8,
    report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True,
    lr_scheduler_type="constant",
)
train, valid = random_split(data, [192, 64], generator=torch.Generator().manual_seed(1))
trainer = Own(Model(), arguments, train_dataset=Rows(train), callbacks=[Rate()])
trainer.train()
"""

_KERAS = f"""\
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
{_DATA}
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
wrapped = DistributedDataParallel(model)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
optimizer = torch.optim.Adam(wrapped.parameters(), lr=0.01)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = keras.ops.mean(keras.ops.square(wrapped(x) - y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
"""

_HOROVOD = f"""\
import horovod.torch as hvd, torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
hvd.init()
rank, world = hvd.rank(), hvd.size()
{_DATA}
sampler = DistributedSampler(data, num_replicas=world, rank=rank)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

PROGRAMS = {
    "plain": _PLAIN,
    "by hand": _BY_HAND,
    "Accelerate": _ACCELERATE,
    "Lightning": _LIGHTNING,
    "Trainer": _TRAINER,
    "Keras": _KERAS,
    "Horovod": _HOROVOD,
}


def _case(name: str, style: str, codes: str, *changes: tuple[str, str]) -> Case:
    return Case(name, style, tuple(codes.split()), changes)


CASES = (
    _case("module-called-by-itself", "plain", "gradients.bypassed",
          (_FORWARD, "        loss = (model.module(x) - y).square().mean()  # HERE\n")),
    _case("bypassed-by-the-inner-name", "plain", "gradients.bypassed",
          (_FORWARD, "        loss = (net(x) - y).square().mean()  # HERE\n")),
    _case("never-synchronized", "plain", "gradients.no-sync",
          (_FORWARD + "        optimizer.zero_grad()\n        loss.backward()\n" + _STEP,
           "        optimizer.zero_grad()\n        with model.no_sync():\n"
           "            (model(x) - y).square().mean().backward()\n"
           "        optimizer.step()  # HERE\n        loss = (net(x) - y).square().mean()\n")),
    _case("nobody-wrapped-it", "plain", "gradients.unwrapped",
          (_WRAP, "model = net\n"), (_STEP, "        optimizer.step()  # HERE\n")),
    _case("a-loss-with-weights-outside", "plain", "gradients.outside",
          (_FORWARD, "        loss = (scale(model(x)) - y).square().mean()\n"),
          ("SGD(model.parameters(), lr=0.05)",
           "SGD([*model.parameters(), *scale.parameters()], lr=0.05)"),
          ("scale = torch.nn.Linear(1, 1)\n",
           "torch.manual_seed(0)\nscale = torch.nn.Linear(1, 1)\n"),
          (_STEP, "        optimizer.step()  # HERE\n")),
    _case("a-weight-that-no-loss-reaches", "plain", "gradients.none",
          (_WRAP, "net[0].gate = torch.nn.Parameter(torch.ones(1))\n"
                  "model = DistributedDataParallel(net, find_unused_parameters=True)  # HERE\n")),
    _case("split-without-seed", "plain", "data.split",
          ("train, valid = " + _SPLIT, "train, valid = random_split(data, [192, 64])  # HERE")),
    _case("shares-of-a-share", "plain", "data.split",
          ("train, valid = " + _SPLIT,
           "train = Subset(data, range(rank * 96, rank * 96 + 96 - 2 * rank))"),
          (_LOADER, "loader = DataLoader(train, batch_size=8, sampler=sampler)  # HERE\n")),
    _case("epochs-of-one-order", "plain", "data.epoch",
          ("    sampler.set_epoch(epoch)\n    for number, (x, y) in enumerate(loader):\n",
           "    for number, (x, y) in enumerate(loader):  # HERE\n")),
    _case("no-sampler", "plain", "data.same",
          (_LOADER, "loader = DataLoader(train, batch_size=8)  # HERE\n")),
    _case("shuffled-by-equal-seeds", "plain", "data.same",
          (_LOADER, "torch.manual_seed(0)\n"
                    "loader = DataLoader(train, batch_size=8, shuffle=True)  # HERE\n")),
    _case("shuffled-on-each-rank", "plain", "data.unshared",
          (_LOADER, "loader = DataLoader(train, batch_size=8, shuffle=True)  # HERE\n")),
    _case("sampler-of-rank-0", "plain", "data.same",
          (_SAMPLER, "sampler = DistributedSampler(train, num_replicas=world, rank=0)\n"),
          (_LOADER, "loader = DataLoader(train, batch_size=8, sampler=sampler)  # HERE\n")),
    _case("sampler-of-one-replica", "plain", "data.same",
          (_SAMPLER, "sampler = DistributedSampler(train, num_replicas=1, rank=0)\n"),
          (_LOADER, "loader = DataLoader(train, batch_size=8, sampler=sampler)  # HERE\n")),
    _case("step-by-local-loss", "plain", "weights.skipped-step",
          (_STEP, "        if rank == 0 or loss.item() < 5:\n"
                  "            optimizer.step()  # HERE\n")),
    _case("rate-by-local-loss", "plain", "numbers.rate",
          ("    scheduler.step(mean)\n", "    scheduler.step(mean * (1 + 99 * rank * epoch))\n"),
          ("patience=0, threshold=1)", "patience=0, factor=0.5)"),
          (_STEP, "        optimizer.step()  # HERE\n")),
    _case("not-a-number-on-one-rank", "plain", "numbers.loss",
          (_FORWARD, "        if rank == 1 and number == 5:\n            x[0] = float('nan')\n"
                     + _FORWARD),
          ("        loss.backward()\n", "        loss.backward()  # HERE\n")),
    _case("loaded-on-one-rank", "plain", "weights.start",
          (_WRAP, "model = DistributedDataParallel(net)  # HERE\nif rank == 0:\n"
                  "    net.load_state_dict({n: 2 * v for n, v in net.state_dict().items()})\n")),
    _case("clipped-on-one-rank", "plain", "weights.differ",
          (_STEP, "        optimizer.step()  # HERE\n        if rank == 0 and number == 2:\n"
                  "            net[0].weight.data.clamp_(-0.1, 0.1)\n")),
    _case("one-rank-stops-early", "plain", "collectives.mixed",
          ("stops = None\n", "stops = 10 if rank else None\n"),
          ("    dist.all_reduce(mean)\n", "    dist.all_reduce(mean)  # HERE\n")),
    _case("loss-that-is-a-sum", "plain", "proof.parted",
          (_FORWARD, "        loss = (model(x) - y).square().sum() / 16\n"),
          ("        loss.backward()\n", "        loss.backward()  # HERE\n")),
    _case("gradients-not-divided", "by hand", "proof.parted",
          ("        loss.backward()\n", "        loss.backward()  # HERE\n"),
          ("            parameter.grad /= world\n", "")),
    _case("begun-apart", "by hand", "weights.start",
          ("    dist.broadcast(parameter.data, 0)\n", "    pass\n"),
          (_STEP, "        optimizer.step()  # HERE\n")),
    _case("other-lines-in-one-collective", "by hand", "collectives.mixed",
          ("        optimizer.step()\n",
           "        optimizer.step()\n"
           "    if rank:\n        dist.all_reduce(torch.ones(3))  # HERE\n")),
    _case("model-not-prepared", "Accelerate", "gradients.unwrapped",
          ("model, optimizer, loader = accelerator.prepare(model, optimizer, loader)",
           "optimizer, loader = accelerator.prepare(optimizer, loader)"),
          (_STEP, "        optimizer.step()  # HERE\n")),
    _case("unwrapped-model-called", "Accelerate", "gradients.bypassed",
          (_FORWARD, "        loss = (accelerator.unwrap_model(model)(x) - y).square().mean()"
                     "  # HERE\n")),
    _case("split-by-rank", "Accelerate", "data.split",
          ("train, valid = " + _SPLIT,
           "train, valid = random_split(data, [192, 64], generator=torch.Generator()"
           ".manual_seed(rank))  # HERE")),
    _case("sampler-turned-off", "Lightning", "data.same data.unshared",
          ("loader = DataLoader(data, batch_size=8, shuffle=True)\n",
           "loader = DataLoader(data, batch_size=8, shuffle=True)  # HERE\n"),
          ("Trainer(**options)", "Trainer(use_distributed_sampler=False, **options)")),
    _case("weights-in-a-list", "Lightning", "gradients.outside",
          ("        self.scale = torch.nn.Linear(1, 1)\n",
           "        self.hidden = [torch.nn.Linear(1, 1)]\n"),
          ("self.scale(self.net(x))", "self.hidden[0](self.net(x))"),
          ("*self.scale.parameters()", "*self.hidden[0].parameters()"),
          ("trainer.fit(Model(), loader)", "trainer.fit(Model(), loader)  # HERE")),
    _case("inner-model-in-compute-loss", "Trainer", "gradients.bypassed",
          ("        outputs = model(**inputs)\n",
           "        outputs = model.module(**inputs)  # HERE\n")),
    _case("rate-on-one-rank", "Trainer", "numbers.rate",
          ("if state.global_step == 2:", "if state.global_step == 2 and args.process_index == 0:"),
          ("trainer.train()", "trainer.train()  # HERE")),
    _case("keras-called-by-itself", "Keras", "gradients.bypassed",
          ("wrapped(x) - y))\n", "model(x) - y))  # HERE\n")),
    _case("never-broadcast", "Horovod", "weights.start",
          ("hvd.broadcast_parameters(model.state_dict(), root_rank=0)\n", ""),
          (_STEP, "        optimizer.step()  # HERE\n")),
    _case("plain-optimizer", "Horovod", "gradients.unwrapped",
          ("optimizer = hvd.DistributedOptimizer(optimizer, named_parameters="
           "model.named_parameters())\n", ""),
          (_STEP, "        optimizer.step()  # HERE\n")),
)  # fmt: skip
