"""The notebooks of `gpu.py`; the last cell of each is for the ranks."""

from __future__ import annotations

_TORCH = "import torch\nfrom torch import nn"
_DDP = """\
import os, torch, torch.distributed as dist
from torch import nn
dist.init_process_group("{backend}")
torch.manual_seed(0)
net = nn.parallel.DistributedDataParallel(nn.Linear(64, 64).cuda())
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for step in range({steps}):
    optimizer.zero_grad()
    loss = net(torch.ones(32, 64, device="cuda")).pow(2).mean()
    loss.backward()
    optimizer.step()
loss = loss.detach()
"""
_STEPS = """\
import time, torch
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 240
    def __getitem__(self, i):
        time.sleep({data})
        return torch.ones(8)
net = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(net.parameters(), 1e-9)
for batch in torch.utils.data.DataLoader(Rows(), batch_size=2):
    loss = net(batch.cuda()).mean()
    torch.cuda._sleep({cycles})
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    {wait}
    time.sleep({rest})
"""
_SPENT = "\n".join(
    (
        "import distrain_nb",
        "run = distrain_nb.submit(text, ranks_per_replica=1, launcher='python', wait=True)",
        "print(run.time_spent, run.findings, run.logs())",
    )
)
_RESOURCES = """\
import torch, time
x = torch.ones(2**28, device="cuda")
end = time.time() + 9
while time.time() < end:
    x = (x * 1.0001).clamp(max=2)
    torch.cuda.synchronize()
"""

# Cells, of which the last is an expression that has to be the same in the kernel and in a rank.
EQUAL: dict[str, tuple[str, ...]] = {
    "choice-of-device": (
        f"{_TORCH}\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
        "torch.ones(1, device=device)",
    ),
    "default-device": (f"{_TORCH}\ntorch.set_default_device('cuda')", "torch.ones(2)"),
    "seed": (
        f"{_TORCH}\ntorch.manual_seed(3)",
        "torch.cuda.initial_seed(), torch.rand(2, device='cuda').tolist()",
    ),
    "seed-of-all-gpus": (
        f"{_TORCH}\ntorch.cuda.manual_seed_all(4)",
        "torch.rand(2, device='cuda').tolist()",
    ),
    "precision": (
        f"{_TORCH}\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False\n"
        "torch.backends.cudnn.allow_tf32 = False\ntorch.backends.cudnn.benchmark = True\n"
        "torch.set_float32_matmul_precision('high')",
        "torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32, "
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction, "
        "torch.backends.cudnn.benchmark, torch.get_float32_matmul_precision()",
    ),
    "deterministic": (
        f"{_TORCH}\ntorch.use_deterministic_algorithms(True)\n"
        "torch.backends.cudnn.deterministic = True\nimport os\n"
        "os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'",
        "torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic, "
        "__import__('os').environ.get('CUBLAS_WORKSPACE_CONFIG')",
    ),
    "attention-kernels": (
        f"{_TORCH}\ntorch.backends.cuda.enable_flash_sdp(False)",
        "torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()",
    ),
    "autocast": (
        f"{_TORCH}\nscope = torch.autocast('cuda', torch.bfloat16)\nscope.__enter__()",
        "(torch.ones(2, 2, device='cuda') @ torch.ones(2, 2, device='cuda')).dtype",
    ),
    "generator": (
        f"{_TORCH}\ng = torch.Generator('cuda').manual_seed(7)\ntorch.rand(2, device='cuda',"
        " generator=g)",
        "torch.rand(2, device='cuda', generator=g.clone_state()).tolist()",
    ),
    "scaler": (
        f"{_TORCH}\nscaler = torch.amp.GradScaler('cuda', init_scale=128.0)",
        "scaler.state_dict()",
    ),
    "weights-from-a-gpu": (
        f"{_TORCH}\nnet = nn.Linear(2, 1).cuda()\nwith torch.no_grad(): net.weight.fill_(3)\n"
        "state = {k: v.cpu() for k, v in net.state_dict().items()}\n"
        "import copy\nmodel = copy.deepcopy(net).cpu()",
        "state, model.weight.tolist()",
    ),
    "compiled": (
        f"{_TORCH}\n@torch.compile\ndef f(x): return (x * 2).sin()\n"
        "f(torch.ones(4, device='cuda'))",
        "f(torch.ones(4, device='cuda')).tolist()",
    ),
    "triton": (
        "import torch, triton, triton.language as tl\n@triton.jit\n"
        "def double(x, n, SIZE: tl.constexpr):\n    at = tl.arange(0, SIZE)\n"
        "    tl.store(x + at, tl.load(x + at) * 2)\n"
        "def run():\n    x = torch.ones(16, device='cuda')\n    double[(1,)](x, 16, SIZE=16)\n"
        "    return x.tolist()",
        "run()",
    ),
    "cupy": ("import cupy\nx = cupy.arange(3) * 2", "x.tolist()"),
    "jax": (
        "import os\nos.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'\n"
        "import jax, jax.numpy as jnp\nx = jnp.arange(3) * 2.0\nkey = jax.random.key(3)",
        "x.tolist(), jax.random.uniform(key, 2).tolist(), jax.default_backend()",
    ),
    "visible-devices": (
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\nimport torch\nn = "
        "torch.cuda.device_count()",
        "n, os.environ['CUDA_VISIBLE_DEVICES']",
    ),
    "properties": (
        f"{_TORCH}\nname = torch.cuda.get_device_name()\n"
        "big = torch.cuda.get_device_capability() >= (9, 0)\n"
        "dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16",
        "name, big, dtype",
    ),
    "data-class-of-devices": (
        f"{_TORCH}\nfrom dataclasses import dataclass, field\n@dataclass\nclass C:\n"
        "    device: torch.device = torch.device('cuda')\n"
        "    kinds: dict = field(default_factory=dict)\nc = C()\nc.kinds['x'] = torch.bfloat16",
        "c",
    ),
    "memory-fraction": (
        f"{_TORCH}\ntorch.cuda.set_per_process_memory_fraction(0.5)\n"
        "def tries():\n    try: return len(torch.empty(60 * 2**30, dtype=torch.uint8, "
        "device='cuda'))\n    except torch.OutOfMemoryError: return 'no'",
        "tries()",
    ),
}

# Cells, and what the last of them has to show.
SHOWS: dict[str, tuple[tuple[str, ...], str]] = {
    "refuses-a-tensor": (
        (f"{_TORCH}\nx = torch.ones(2, device='cuda')", "%%distrain\nprint(x)"),
        r"`x`.*cuda.*cpu\(\)",
    ),
    "refuses-a-model": (
        (f"{_TORCH}\nnet = nn.Linear(2, 1).cuda()", "%%distrain\nprint(net.weight.tolist())"),
        r"`net`.*cuda.*cpu\(\)",
    ),
    "refuses-an-optimizer": (
        (
            f"{_TORCH}\nopt = torch.optim.Adam(nn.Linear(2, 1).cuda().parameters())",
            "%%distrain\nprint(opt.param_groups[0]['lr'])",
        ),
        r"`opt`.*cuda",
    ),
    "refuses-or-has-a-changed-closure": (
        (
            f"{_TORCH}\ndef make():\n    x = torch.ones(2, device='cuda')\n    return lambda: x\n"
            "f = make()",
            "f().add_(4)",
            "%%distrain\nprint(f().tolist())",
        ),
        r"`f.*cuda|`f.*notebook|\[5\.0, 5\.0\]",
    ),
    "refuses-a-class-attribute": (
        (
            f"{_TORCH}\nclass C: pass\nC.x = torch.ones(2, device='cuda')",
            "%%distrain\nprint(C.x.tolist())",
        ),
        r"`C\.x.*cuda",
    ),
    "makes-again-and-trained": (
        (
            f"{_TORCH}\nclass Net(nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n        self.f = lambda x: x\n"
            "        self.w = nn.Parameter(torch.zeros(2, device='cuda'))\nnet = Net()",
            "with torch.no_grad(): net.w.add_(5)",
            "%%distrain\nprint(net.w.tolist())",
        ),
        r"`net|\[5\.0, 5\.0\]",
    ),
    "refuses-a-stream": (
        (f"{_TORCH}\ns = torch.cuda.Stream()", "%%distrain\nprint(s)"),
        r"`s`|device=cuda",
    ),
    "refuses-a-process-group": (
        (
            "import os, torch, torch.distributed as dist\nos.environ.update(MASTER_ADDR="
            "'127.0.0.1', MASTER_PORT='29411', RANK='0', WORLD_SIZE='1')\n"
            "dist.init_process_group('nccl')\ngroup = dist.new_group([0])",
            "%%distrain\nimport torch.distributed as dist\nprint(dist.get_rank(group))",
        ),
        r"Cell In\[\d+\]",
    ),
    "nccl-with-one-rank": (
        (
            "pass",
            "%%distrain -n 1 --result loss\n" + _DDP.format(backend="nccl", steps=20),
        ),
        r"succeeded|loss",
    ),
    "result-of-a-gpu": (
        (
            "import distrain_nb\ntext = '''" + _DDP.format(backend="nccl", steps=20) + "'''\n"
            "run = distrain_nb.submit(text, ranks_per_replica=1, result=['loss', 'net'])\n"
            "back = run.result(120)\nprint(back['loss'], back['loss'].device, "
            "next(back['net'].parameters()).device)",
        ),
        r"tensor\(.*cpu cpu",
    ),
    "gloo-with-two-ranks": (
        (
            "pass",
            "%%distrain -n 2\n" + _DDP.format(backend="gloo", steps=20) + "print('loss', loss)",
        ),
        r"rank 1\] loss.*rank 0\] loss|rank 0\] loss.*rank 1\] loss",
    ),
    "nccl-with-two-ranks": (
        ("pass", "%%distrain -n 2\n" + _DDP.format(backend="nccl", steps=2)),
        r"local\.ranks-per-gpu|[Dd]uplicate GPU",
    ),
    "fsdp2": (
        (
            "pass",
            "%%distrain -n 1\nimport torch, torch.distributed as dist\nfrom torch import nn\n"
            "from torch.distributed.fsdp import fully_shard\ndist.init_process_group('nccl')\n"
            "net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).cuda()\n"
            "for layer in net: fully_shard(layer)\nfully_shard(net)\n"
            "optimizer = torch.optim.AdamW(net.parameters())\n"
            "for _ in range(20):\n    loss = net(torch.ones(4, 8, device='cuda')).mean()\n"
            "    loss.backward(); optimizer.step(); optimizer.zero_grad()\n"
            "print('ended', type(net[0].weight).__name__)",
        ),
        r"ended DTensor",
    ),
    "loader-with-pinned-memory": (
        (
            "pass",
            "%%distrain -n 1 --launcher python\nimport torch\n"
            "rows = torch.utils.data.TensorDataset(torch.ones(64, 4))\n"
            "loader = torch.utils.data.DataLoader(rows, 8, num_workers=2, pin_memory=True)\n"
            "torch.ones(1, device='cuda')\n"
            "print('sum', sum(x.cuda(non_blocking=True).sum().item() for x, in loader))",
        ),
        r"sum 256\.0",
    ),
    "assertion-on-the-gpu": (
        (
            "pass",
            "%%distrain -n 1 --launcher python\nimport torch\nfrom torch import nn\n"
            "loss = nn.functional.cross_entropy(torch.ones(2, 3, device='cuda'), "
            "torch.tensor([1, 7], device='cuda'))\nprint(loss.item())",
        ),
        r"t >= 0 && t < n_classes",
    ),
    "out-of-memory": (
        (
            "pass",
            "%%distrain -n 1 --launcher python\nimport torch\nkept = []\n"
            "while True: kept.append(torch.ones(2**32, device='cuda'))",
        ),
        r"out of memory.*line \d",
    ),
    "lightning": (
        (
            "pass",
            "%%distrain -n 1\nimport torch, lightning as L\nfrom torch import nn\n"
            "class Net(L.LightningModule):\n    def __init__(self):\n"
            "        super().__init__(); self.net = nn.Linear(4, 1)\n"
            "    def training_step(self, batch, _):\n"
            "        return self.net(batch[0]).mean()\n"
            "    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)\n"
            "rows = torch.utils.data.TensorDataset(torch.ones(64, 4))\n"
            "trainer = L.Trainer(accelerator='gpu', devices=1, strategy='ddp', max_epochs=2, "
            "logger=False, enable_checkpointing=False)\n"
            "trainer.fit(Net(), torch.utils.data.DataLoader(rows, 8))\n"
            "print('ended', trainer.strategy.root_device)",
        ),
        r"ended cuda:0",
    ),
    "accelerate": (
        (
            "pass",
            "%%distrain -n 1\nimport torch\nfrom accelerate import Accelerator\n"
            "a = Accelerator(mixed_precision='bf16')\nnet = a.prepare(torch.nn.Linear(4, 1))\n"
            "a.backward(net(torch.ones(2, 4, device=a.device)).mean())\n"
            "print('ended', a.device, a.num_processes)",
        ),
        r"ended cuda",
    ),
    "resources": (
        (
            f"import distrain_nb\nrun = distrain_nb.submit('''{_RESOURCES}''', "
            "ranks_per_replica=1, launcher='python', wait=True)\n"
            "table = run.resources()\nprint(table[['gpu %', 'gpu memory MB']].max().to_dict())",
        ),
        r"'gpu %': [5-9]\d|'gpu %': 100",
    ),
    "no-alarm-while-a-kernel-runs": (
        (
            "pass",
            "%%distrain -n 1 --launcher python --hang-after 5\nimport torch, time\n"
            "began = time.time()\nwhile time.time() - began < 30:\n"
            "    torch.cuda._sleep(20_000_000_000)\n    torch.cuda.synchronize()\n"
            "print('ended without')",
        ),
        r"^(?!.*makes no progress).*ended without",
    ),
    "alarm-for-a-skipped-collective": (
        (
            "import distrain_nb, time\nrun = distrain_nb.submit('''import torch, "
            'torch.distributed as dist\ndist.init_process_group("gloo")\n'
            'x = torch.ones(4, device="cuda")\ndist.all_reduce(x)\n'
            "if dist.get_rank() == 0:\n    dist.all_reduce(x)\nelse:\n    import threading\n"
            "    threading.Event().wait(100)\n''', ranks_per_replica=2, hang_after='5')\n"
            "end = time.time() + 60\n"
            "while time.time() < end and 'makes no progress' not in run.logs(): time.sleep(1)\n"
            "print(run.logs()); run.cancel(); run.wait() if hasattr(run, 'wait') else None",
        ),
        r"makes no progress.*all_reduce",
    ),
    "memory-is-free-after-a-stop": (
        (
            "import distrain_nb, time, subprocess\ndef used(): return int(subprocess.check_output("
            "['nvidia-smi', '--query-gpu=memory.used', '--format=csv,noheader,nounits']))\n"
            "run = distrain_nb.submit('''import torch, time\nx = torch.ones(2**32, "
            'device="cuda")\nprint("filled", flush=True)\ntime.sleep(300)\n\'\'\', '
            "ranks_per_replica=1, launcher='python')\nend = time.time() + 60\n"
            "while time.time() < end and 'filled' not in run.logs(): time.sleep(0.2)\n"
            "full = used(); run.cancel()\nend = time.time() + 20\n"
            "while time.time() < end and used() > full - 12000: time.sleep(0.2)\n"
            "print('freed', used() < full - 12000, run.status)",
        ),
        r"freed True",
    ),
    "doctor": (("pass", "%distrain doctor"), r"H100|H200|GPU"),
    "cuda-graph": (
        (
            "%%distrain -n 1 --launcher python\nimport torch\n"
            "net = torch.nn.Linear(8, 8).cuda()\nx = torch.ones(4, 8, device='cuda')\n"
            "opt = torch.optim.Adam(net.parameters(), capturable=True)\n"
            "def step():\n    opt.zero_grad(set_to_none=True)\n    loss = net(x).pow(2).mean()\n"
            "    loss.backward(); opt.step()\n    return loss\n"
            "side = torch.cuda.Stream(); side.wait_stream(torch.cuda.current_stream())\n"
            "with torch.cuda.stream(side):\n    for _ in range(3): step()\n"
            "torch.cuda.current_stream().wait_stream(side)\ngraph = torch.cuda.CUDAGraph()\n"
            "with torch.cuda.graph(graph): loss = step()\n"
            "rows = torch.utils.data.DataLoader(torch.ones(64, 4, 8))\n"
            "for batch in rows: x.copy_(batch[0]); graph.replay()\n"
            "print('ended', loss.item() < 10)",
        ),
        r"ended True",
    ),
    "compiled-step": (
        (
            "%%distrain -n 1 --launcher python\nimport torch\n"
            "net = torch.nn.Linear(8, 8).cuda()\nopt = torch.optim.AdamW(net.parameters())\n"
            "@torch.compile\ndef step(x):\n    loss = net(x).pow(2).mean()\n"
            "    loss.backward(); opt.step(); opt.zero_grad()\n    return loss\n"
            "for batch in torch.utils.data.DataLoader(torch.ones(64, 4, 8)):\n"
            "    loss = step(batch[0].cuda())\n"
            "print('ended', loss.item() < 10)",
        ),
        r"ended True",
    ),
}

# 40 ms of a GPU, what the program does after it, and the shares that have to be named.
_MS = 1_755_000  # cycles of an H100 at its usual clock
TIMES: dict[str, tuple[dict[str, object], str]] = {
    "loader, awaited": (
        {"data": 0.02, "cycles": 40 * _MS, "wait": "loss.item()", "rest": 0},
        r"(4[5-9]|5[0-8]) % waiting for data, (4[2-9]|5[0-5]) % computing",
    ),
    "loader, not awaited": (
        {"data": 0.02, "cycles": 20 * _MS, "wait": "pass", "rest": 0},
        r"(4[0-9]|5[0-9]) % waiting for data, (4[2-9]|5[0-9]) % computing",
    ),
    "hidden loader": (
        {"data": 0.005, "cycles": 60 * _MS, "wait": "pass", "rest": 0},
        r"ms: (9[5-9]|100) % computing",
    ),
    "model, awaited": (
        {"data": 0, "cycles": 40 * _MS, "wait": "loss.item()", "rest": 0},
        r"(9[5-9]|100) % computing",
    ),
    "logging, awaited": (
        {"data": 0, "cycles": 20 * _MS, "wait": "loss.item()", "rest": 0.02},
        r"(4[2-9]|5[0-8]) % computing, (4[2-9]|5[0-8]) % the rest",
    ),
}


def timing(name: str) -> tuple[str, str]:
    """Return the cells that train with such times, and show where they went."""
    return f"text = {_STEPS.format(**TIMES[name][0])!r}", _SPENT
