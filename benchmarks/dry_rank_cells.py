"""Programs that fail on some ranks only, for `--as-rank all`: each with its rank and its line."""

from __future__ import annotations

from dataclasses import dataclass, field

REPLICAS, PER_REPLICA = 4, 4  # 16 ranks

HEALTHY = """\
import json, os, torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
data = TensorDataset(torch.randn(8192, 8), torch.randn(8192, 1))
sampler = DistributedSampler(data, shuffle=False)
loader = DataLoader(data, batch_size=4, sampler=sampler)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters())
folder = os.environ["SHARDS"]
pass
for inputs, targets in loader:
    loss = (model(inputs) - targets).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@dataclass(frozen=True)
class Fault:
    """A line that is wrong on some ranks; `rank` is the first of them, by number."""

    name: str
    line: str
    rank: int
    instead: str = "pass"
    options: dict[str, object] = field(default_factory=dict)

    @property
    def program(self) -> str:
        """The program with the line, marked `# HERE`."""
        assert HEALTHY.count(f"{self.instead}\n") == 1
        return HEALTHY.replace(f"{self.instead}\n", f"{self.line}  # HERE\n")

    @property
    def where(self) -> int:
        """The number of the line."""
        lines = self.program.splitlines()
        return next(number for number, line in enumerate(lines, 1) if "# HERE" in line)


FOUR_GPUS = {"on": "vertex", "primary": "n1-standard-32+4*T4", "workers": "3*n1-standard-32+4*T4"}

_SIXTEENTH = "dist.all_gather_into_tensor(torch.empty(2 * world), torch.ones(2 + rank // 15))"
_AT = "at = json.loads(os.environ['CLUSTER_SPEC'])['cluster']['workerpool1'][rank // 4]"
_SAMPLER = "sampler = DistributedSampler(data, shuffle=False)"
_OF_EIGHT = "sampler = DistributedSampler(data, num_replicas=8, rank=rank, shuffle=False)"
_DDP = "model = torch.nn.parallel.DistributedDataParallel(model)"
_DEVICE = "model = model.to(torch.device('cuda', rank))"

FAULTS = (
    Fault("rows that don't divide", "mine = torch.randn(30, 8).chunk(world)[rank]", 15),
    Fault("a list by rank", "rate = [0.1, 0.1, 0.05, 0.05][rank]", 4),
    Fault("a path of a rank", "rows = open(f'{folder}/part-{rank}').read()", 8),
    Fault("a mesh of another product", "init_device_mesh('cpu', (4, 8))", 0),
    Fault("a sampler of another world", _OF_EIGHT, 8, _SAMPLER),
    Fault("a device by the rank", _DEVICE, 4, _DDP, FOUR_GPUS),
    Fault("a stage that only the last has", "head = model.module[rank // 5]", 15),
    Fault("a replica by its number", _AT, 12),
    Fault("a gathered tensor of another size", _SIXTEENTH, 15),
    Fault("a share that is empty", "first = list(range(15))[rank::world][0]", 15),
)
