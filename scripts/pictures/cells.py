"""The cells that are photographed: real jobs, each a few seconds long."""

from __future__ import annotations


def train(name: str, steps: int, pause_s: float, rate: float = 1.0) -> str:
    """Two ranks that report, print, and show a bar."""
    return f"""%%distrain -n 2 --name {name} --result history
import math, os, time
from distrain_nb import log_metrics
from tqdm import tqdm
rank, rate, history = int(os.environ["RANK"]), {rate}, []
for step in tqdm(range({steps})):
    loss = 2.3 * math.exp(-rate * step / 60) + 0.05 * math.sin(step * 7 + rank)
    history.append(loss)
    log_metrics({{"train/loss": loss, "val/accuracy": 1 - loss / 3}}, step=step, every_rank=True)
    if step % 20 == 0:
        tqdm.write(f"step {{step:3}}  loss {{loss:.3f}}")
    time.sleep({pause_s})"""


def form(**options: str) -> str:
    """A form that begins with a layout."""
    said = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"""import distrain_nb
from distrain_nb.layout import Layout
distrain_nb.form(Layout.of({said.replace("on=", "", 1)}))"""


SLOW = """%%distrain -n 2 --name first
import torch, tensorflow
print(torch.__version__, tensorflow.__version__)"""
HELPER = """import torch
from torch import nn

def network(width=32):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))

def loss_of(model, images):
    return nn.functional.cross_entropy(model(images), torch.zeros(len(images)).long())"""
FAILS = """%%distrain -n 2 --name shapes
model = network()
for step in range(20):
    print("step", step)
    images = torch.randn(32, 64 if step < 12 else 48)
    loss_of(model, images).backward()"""
TIMED = """%%distrain -n 2 --name small-files
import time
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __len__(self):
        return 480
    def __getitem__(self, number):
        time.sleep(0.003)  # as long as a small file takes on storage elsewhere
        return torch.randn(64)

dist.init_process_group("gloo")
model = DistributedDataParallel(network(256))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for epoch in range(4):
    for images in DataLoader(Files(), batch_size=8):
        optimizer.zero_grad()
        loss_of(model, images).backward()
        optimizer.step()"""
KILLED = """%%distrain -n 2 --name memory
import os, signal, time
print("allocating")
if os.environ["RANK"] == "1":
    time.sleep(2)
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)"""
MANY = """%%distrain -n 1 --name grid
import math
from distrain_nb import log_metrics
names = [f"{group}/{name}" for group in ("train", "val", "optimizer")
         for name in ("loss", "accuracy", "top5", "rate", "norm")]
for step in range(200):
    values = {name: math.sin(step / 20 + n) / (n + 1) for n, name in enumerate(names)}
    log_metrics({**values, "val/perplexity": math.nan}, step=step)"""
LOG = """%%distrain -n 2 --name colours
import os
for step in range(40):
    print(f"\\033[32mready\\033[0m \\033[1mstep {step}\\033[0m " + "a long line of words " * step)
    if step == 35:
        print("\\033[31merror:\\033[0m here is the needle, \\033[7mturned\\033[0m")"""
BAD_OPTION = "%%distrain -n 2 --nmae first\nprint(1)"
BAD_NAME = "%%distrain -n 2\nvalues = np.zeros(3)\nprint(vlaues.sum())"
BACKSLASH = "%%distrain -n 2 \\\n    --name first \\\nimport torch\nprint(torch.ones(2))"
BAD_LAYOUT = """%%distrain --on vertex --primary n1-standard-4+3*V100 --workers 0*n1-standard-4
print(1)"""
WARNED = "%%distrain -n 1\ndef later():\n    return np.ones(1)\nprint('trained')"
POOLS = form(
    on="vertex",
    primary="n1-highmem-96+8*V100",
    workers="4*n1-highmem-96+8*V100",
    reducers="16*n1-highcpu-16",
    evaluators="n1-standard-8",
)
FINDINGS = form(
    on="vertex",
    region="europe-west9",
    primary="n1-standard-4+3*V100",
    workers="-3*n1-standard-8+1*T4",
    servers="2*a3-highgpu-8g",
)
ADVISE = "%distrain advise --workers 2*ml.p3.8xlarge --model-size 1.3GB --framework pytorch"
DRY = """%%distrain -n 2 --dry-run
model = network(8)
print(sum(p.numel() for p in model.parameters()))"""
DRY_VERTEX = """%%distrain --on vertex --rehearse --dry-run
--primary n1-standard-8 --workers n1-standard-8
model = network(8)"""
REHEARSED = """%%distrain --on vertex --rehearse --wait --name digits \\
    --primary n1-standard-8 --workers n1-standard-8 --result total
import math, os, time
from distrain_nb import log_metrics
for step in range(300):
    log_metrics(step=step, loss=math.exp(-step / 30))
    if step % 10 == 0:
        print("step", step, "on", os.environ["RANK"])
    time.sleep(0.1)
total = step"""

TUNE = """%%distrain -n 2 --name sweep --trials 24 --parallel 2 --stop median --goal min:val/loss \\
    --tune lr=1e-5..1e-1:log --tune width=16|32|64 --tune layers=1..4 \\
    --tune optimizer=sgd|adam --tune momentum[optimizer=sgd]=0.5..0.99
import math, time
from distrain_nb import log_metrics
for step in range(12):
    loss = 0.2 + 0.1 * (math.log10(lr) + 2.8) ** 2 + 0.04 * abs(layers - 3)
    loss += 0.001 * abs(width - 32) + 1 / (step + 1)
    if optimizer == "sgd":
        loss += 0.03 * momentum
    log_metrics({"val/loss": loss}, step=step)
    print(f"step {step}  loss {loss:.3f}")
    time.sleep(0.4)"""
