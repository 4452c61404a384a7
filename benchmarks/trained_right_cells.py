"""The healthy twins of `trained_wrong_cells.py`: what faults do wrongly, done as it should be.

A twin has the same construct as its fault where there is one: a call of the inner model that only
evaluates, `no_sync()` around all passes but the last, a share that each rank cuts for itself.
"""

from __future__ import annotations

from benchmarks.trained_wrong_cells import PROGRAMS, Case

_MEAN = "    mean = loss.detach().clone()\n"
_EVALUATES = "    with torch.no_grad():\n        {}(x)\n" + _MEAN
_STEP = "        optimizer.step()\n"
_SPLIT = "train, valid = random_split(data, [192, 64], generator=torch.Generator().manual_seed(1))"
_SHARE = "train = Subset(data, range(rank, 192, world))"
_LOADER = "loader = DataLoader(train, batch_size=8, sampler=sampler)\n"
_SAMPLER = "sampler = DistributedSampler(train)\n"
_SHUFFLED = "loader = DataLoader(train, batch_size=8, shuffle=True)\n"
_LINEAR = "model = torch.nn.Linear(8, 1)\n"
_FORWARD = "        loss = (model(x) - y).square().mean()\n"
_WRAP = "model = DistributedDataParallel(net)\n"
_PASSES = _FORWARD + "        optimizer.zero_grad()\n        loss.backward()\n" + _STEP

TWINS: dict[str, tuple[tuple[str, str], ...]] = {
    "module-called-by-itself": ((_MEAN, _EVALUATES.format("model.module")),),
    "bypassed-by-the-inner-name": ((_MEAN, _EVALUATES.format("net")),),
    "never-synchronized": (
        (_PASSES,
         "        with model.no_sync() if number % 2 == 0 else contextlib.nullcontext():\n"
         "            loss = (model(x) - y).square().mean()\n            loss.backward()\n"
         "        if number % 2:\n            optimizer.step()\n"
         "            optimizer.zero_grad()\n"),),
    "nobody-wrapped-it": (
        (_WRAP, "torch.manual_seed(0)\nteacher = torch.nn.Linear(8, 1)\n" + _WRAP),
        (_FORWARD, "        with torch.no_grad():\n            hint = teacher(x)\n"
                   "        loss = (model(x) - y - 0.01 * hint).square().mean()\n")),
    "a-loss-with-weights-outside": (
        (_FORWARD, "        loss = (scale(model(x)) - y).square().mean()\n"),
        (_WRAP, _WRAP + "scale = DistributedDataParallel(scale)\n"),
        ("SGD(model.parameters(), lr=0.05)",
         "SGD([*model.parameters(), *scale.parameters()], lr=0.01)")),
    "a-weight-that-no-loss-reaches": (
        (_WRAP, "net[0].gate = torch.nn.Parameter(torch.ones(1), requires_grad=False)\n"
                "model = DistributedDataParallel(net, find_unused_parameters=True)\n"),),
    "split-without-seed": (
        (_SPLIT, "torch.manual_seed(0)\ntrain, valid = random_split(data, [192, 64])"),),
    "shares-of-a-share": ((_SPLIT, "train = Subset(data, range(0, 192))"),),
    "epochs-of-one-order": (
        ("    sampler.set_epoch(epoch)\n", ""),
        (_SAMPLER, "sampler = DistributedSampler(train, shuffle=False)\n")),
    "no-sampler": (
        (_SPLIT, _SHARE), (_LOADER, "loader = DataLoader(train, batch_size=8)\n")),
    "shuffled-by-equal-seeds": (
        (_SPLIT, _SHARE),
        (_LOADER, "torch.manual_seed(0)\n" + _SHUFFLED)),
    "shuffled-on-each-rank": (
        (_SPLIT, _SHARE), (_LOADER, _SHUFFLED)),
    "sampler-of-rank-0": (
        (_SAMPLER, "sampler = DistributedSampler(train, num_replicas=world, rank=rank)\n"),),
    "sampler-of-one-replica": (
        (_LOADER, "batches = torch.utils.data.BatchSampler(sampler, 8, drop_last=False)\n"
                  "loader = DataLoader(train, batch_sampler=batches)\n"),),
    "step-by-local-loss": (
        (_STEP, "        whole = loss.detach().clone()\n        dist.all_reduce(whole)\n"
                "        if whole.item() < 50:\n            optimizer.step()\n"),),
    "rate-by-local-loss": (
        ("ReduceLROnPlateau(optimizer, patience=0, threshold=1)", "StepLR(optimizer, 1)"),
        ("    scheduler.step(mean)\n", "    scheduler.step()\n")),
    "not-a-number-on-one-rank": (
        (_FORWARD, "        if rank == 1 and number == 5:\n            x[0] = float('nan')\n"
                   "        loss = (model(x.nan_to_num()) - y).square().mean()\n"),),
    "loaded-on-one-rank": (
        (_WRAP, "net.load_state_dict({n: 2 * v for n, v in net.state_dict().items()})\n" + _WRAP),),
    "clipped-on-one-rank": (
        (_STEP, _STEP + "        if number == 2:\n"
                        "            net[0].weight.data.clamp_(-0.1, 0.1)\n"),),
    "one-rank-stops-early": (("stops = None\n", "stops = 10\n"),),
    "loss-that-is-a-sum": (
        (_FORWARD, "        loss = (model(x) - y).square().sum() / len(x)\n"),),
    "gradients-not-divided": (),
    "begun-apart": (
        (_LINEAR, "torch.manual_seed(0)\n" + _LINEAR),
        ("    dist.broadcast(parameter.data, 0)\n", "    pass\n")),
    "other-lines-in-one-collective": (
        (_STEP, _STEP + "    if rank:\n        dist.all_reduce(torch.ones(3))\n"
                        "    else:\n        dist.all_reduce(torch.zeros(3))\n"),),
    "unwrapped-model-called": (
        (_STEP, _STEP + "    with torch.no_grad():\n"
                        "        accelerator.unwrap_model(model)(x)\n"),),
    "split-by-rank": (("[192, 64]", "[0.75, 0.25]"),),
    "sampler-turned-off": (
        ("import torch, lightning\n",
         "import os, torch, lightning\nfrom torch.utils.data import DistributedSampler\n"),
        ("loader = DataLoader(data, batch_size=8, shuffle=True)\n",
         "rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])\n"
         "sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=False)\n"
         "loader = DataLoader(data, batch_size=8, sampler=sampler)\n"),
        ("Trainer(**options)", "Trainer(use_distributed_sampler=False, **options)")),
    "weights-in-a-list": (
        ("        self.scale = torch.nn.Linear(1, 1)\n",
         "        self.hidden = torch.nn.ModuleList([torch.nn.Linear(1, 1)])\n"),
        ("self.scale(self.net(x))", "self.hidden[0](self.net(x))"),
        ("*self.scale.parameters()", "*self.hidden[0].parameters()")),
    "inner-model-in-compute-loss": (
        ("        outputs = model(**inputs)\n",
         "        outputs = model(**inputs)\n        with torch.no_grad():\n"
         "            getattr(model, 'module', model)(**inputs)\n"),),
    "rate-on-one-rank": (
        ('lr_scheduler_type="constant"', 'lr_scheduler_type="linear", warmup_steps=4'),),
    "keras-called-by-itself": (
        (_STEP, _STEP + "    with torch.no_grad():\n        model(x)\n"),),
    "model-not-prepared": (
        ("AdamW(model.parameters(), lr=0.01)", "SGD(model.parameters(), lr=0.05)"),),
    "never-broadcast": (
        (_LINEAR, "torch.manual_seed(0)\n" + _LINEAR),
        ("hvd.broadcast_parameters(model.state_dict(), root_rank=0)\n", "")),
    "plain-optimizer": (),
}  # fmt: skip


def twin(case: Case) -> str:
    """Return the healthy twin of a fault."""
    text = PROGRAMS[case.style]
    for old, new in TWINS[case.name]:
        assert text.count(old) == 1, (case.name, old)
        text = text.replace(old, new)
    return text
