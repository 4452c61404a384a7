"""Where a rank's time goes: real ranks, loaders and process groups."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import distrain_nb
from distrain_nb import api
from distrain_nb.run.metrics import step_findings
from distrain_nb.run.metrics.events import scalars, table
from distrain_nb.worker.files.folder import EVENTS_FOLDER, STEP_TIMES_FOLDER
from distrain_nb.worker.metrics.step_times import CLOCK, timed

TRAINING = """
import io, os, time
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.ones(4)

torch.set_num_threads(1)
dist.init_process_group("gloo")
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
net = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in DataLoader(Slow(), batch_size=2):
    if dist.get_rank() == 1:
        time.sleep(0.05)
    optimizer.zero_grad()
    net(batch).sum().backward()
    optimizer.step()
    time.sleep(0.01)
    torch.save(net.state_dict(), io.BytesIO())
"""

# What it computes is a sleep, and one rank sleeps longer.
SHARDED = """
import time
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

torch.set_num_threads(1)
mesh = init_device_mesh("cpu", (2,))
net = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(3)))
if WHOLE:
    net = FullyShardedDataParallel(net, device_id=torch.device("cpu"))
else:
    for part in (*net, net):
        fully_shard(part, mesh=mesh)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(24):
    time.sleep(0.09 if dist.get_rank() == 1 else 0.03)
    net(torch.ones(2, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

# Raw small files on storage that takes its time, which is what the finding is for.
READING = """
import time
from pathlib import Path
import torch
from torch.utils.data import DataLoader, Dataset

class Raw(Dataset):
    files = sorted(Path(FOLDER).iterdir())
    def __len__(self):
        return len(self.files)
    def __getitem__(self, index):
        time.sleep(0.012)
        return torch.tensor([*self.files[index].read_bytes()], dtype=torch.float32)

torch.set_num_threads(1)
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
loader = DataLoader(Raw(), batch_size=8)
for epoch in range(3):
    for batch in loader:
        optimizer.zero_grad()
        net(batch).sum().backward()
        time.sleep(0.064)
        optimizer.step()
"""

# Before and after the hooks: what a program can see of the loader, the optimizer and the tensors.
UNCHANGED = """
import inspect, os, pickle, sys
if sys.argv[1] == "measured":
    os.environ.update(RANK="0", AIP_TENSORBOARD_LOG_DIR=sys.argv[2])
from distrain_nb.worker.rank import step_hooks
step_hooks.install()
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(net.parameters())
order = []
optimizer.register_step_pre_hook(lambda *_: order.append("pre"))
optimizer.register_step_post_hook(lambda *_: order.append("post"))
loader = DataLoader(TensorDataset(torch.randn(8, 3)), batch_size=2, shuffle=True, num_workers=1)
def step():
    optimizer.step()
for (batch,) in loader:
    loss = net(batch).sum()
    loss.backward()
    optimizer.step()
    assert loss._backward_hooks is None and not net._forward_hooks
torch.compile(step, backend="eager")()
copies = pickle.loads(pickle.dumps((loader, optimizer, torch.save)))
print(order, net.weight.tolist(), list(optimizer.state_dict()), copies[2] is torch.save)
print(inspect.signature(DataLoader.__iter__), inspect.signature(torch.save))
try:
    next(iter(DataLoader([object()])))
except TypeError as error:
    print(str(error)[:60])
"""


def test_a_block_counts_for_its_kind(tmp_path: Path) -> None:
    CLOCK.begin(tmp_path)
    for _ in range(4):
        with timed("data"):
            time.sleep(0.02)
            with timed("tokenize"):
                time.sleep(0.01)
        time.sleep(0.03)
    CLOCK.end()
    rows = table(tmp_path)
    assert rows["step"].max() == rows["steps"].sum() == 3, "the last step had no end"
    means = rows[["data", "tokenize", "compute"]].min()
    assert (means >= [0.02, 0.01, 0.03]).all()
    assert rows["exchange"].max() == rows["save"].max() == rows["rest"].max() == 0


def test_what_follows_the_last_step_counts_for_none(tmp_path: Path) -> None:
    """Such as a last evaluation, and saving the model."""
    CLOCK.begin(tmp_path)
    for _ in range(10):
        with timed("data"):
            time.sleep(0.002)
        time.sleep(0.002)
    with timed("save"):
        time.sleep(0.3)
    time.sleep(0.3)
    CLOCK.end()
    rows = table(tmp_path)
    assert rows["steps"].sum() == 9
    assert rows["save"].max() == 0
    assert rows["compute"].max() < 0.03


@pytest.mark.parametrize("kind", ["steps", "", 3])
def test_a_block_has_a_name_that_can_be_one(kind: str) -> None:
    with pytest.raises(ValueError, match=r"expected one of data, compute"), timed(kind):
        pass


def test_nothing_is_measured_outside_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with distrain_nb.timed("data"):
        pass
    assert not [*tmp_path.iterdir()]


def test_a_variable_of_the_notebook_turns_it_off_in_runs_here(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTRAIN_STEP_TIMES", "0")
    code = "import distrain_nb\nfor _ in range(20):\n    with distrain_nb.timed('data'): pass"
    run = api.submit(code, wait=True)
    assert run.state == "succeeded"
    assert not (run.folder / EVENTS_FOLDER / STEP_TIMES_FOLDER).exists()


@pytest.mark.slow
def test_a_program_runs_as_without_the_hooks(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    said = {
        kind: subprocess.run(
            [sys.executable, "-c", UNCHANGED, kind, str(tmp_path)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for kind in ("measured", "plain")
    }
    assert said["measured"] == said["plain"] != ""


@pytest.mark.slow
def test_a_slow_rank_is_seen_by_what_the_others_wait(home: Path) -> None:
    pytest.importorskip("torch")
    run = api.submit(TRAINING, ranks_per_replica=2)
    run.wait(120)
    rows = table(run.folder / EVENTS_FOLDER / STEP_TIMES_FOLDER)
    assert not scalars(run.folder / EVENTS_FOLDER), "they are no metrics of the program"
    rows = rows[rows["step"] > 1].groupby("series").mean()
    fast, slow = rows.loc["rank-0"], rows.loc["rank-1"]
    assert min(fast["data"], slow["data"]) >= 0.02
    assert min(fast["rest"], slow["rest"]) >= 0.01
    assert min(fast["save"], slow["save"]) > 0
    assert slow["compute"] >= 0.05
    assert fast["exchange"] - slow["exchange"] > 0.03
    assert fast["gradient bytes"] == (4 * 4 + 4 + 4 + 4) * 4


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_the_exchange_of_sharded_models_is_seen(whole: bool, home: Path) -> None:
    """By `fully_shard` and by FullyShardedDataParallel, which have no hooks of ours."""
    pytest.importorskip("torch")
    run = api.submit(SHARDED.replace("WHOLE", str(whole)), ranks_per_replica=2)
    run.wait(120)
    rows = table(run.folder / EVENTS_FOLDER / STEP_TIMES_FOLDER)
    rows = rows[rows["step"] > 1].groupby("series").mean()
    fast, slow = rows.loc["rank-0"], rows.loc["rank-1"]
    assert slow["exchange"] > 0, "it gathers parameters and scatters gradients"
    assert 0.03 < fast["exchange"] - slow["exchange"] < 0.09
    assert fast["compute"] >= 0.03 and slow["compute"] >= 0.09
    steps = [rank[["compute", "exchange"]].sum() for rank in (fast, slow)]
    assert steps[0] == pytest.approx(steps[1], rel=0.2)


@pytest.mark.slow
def test_the_line_that_a_finding_suggests_removes_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_findings, "SHORTEST_S", 1.0)  # of a run's ten seconds
    raw = tmp_path / "raw"
    raw.mkdir()
    for number in range(96):
        (raw / f"{number}.raw").write_bytes(bytes(16))
    cell = READING.replace("FOLDER", repr(str(raw)))
    (finding,) = api.submit(cell, wait=True).findings
    assert finding.code == "time.data"
    assert re.match(r"\d\d % of a step is waiting for data \(0 loader workers", finding.message)
    line = re.search(r"DataLoader\(…, (num_workers=\d, persistent_workers=True)\)", finding.message)
    assert line
    mended = cell.replace("batch_size=8", f"batch_size=8, {line[1]}")
    mended = mended.replace("range(3)", "range(9)")  # a busy machine starts workers for seconds
    assert "time.data" not in [each.code for each in api.submit(mended, wait=True).findings]
