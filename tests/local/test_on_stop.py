"""Programs that save when their run is stopped, at random moments and agreed over their ranks."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import distrain_nb as d
from distrain_nb.errors import OptionError, RunNotReady
from distrain_nb.run import Run
from distrain_nb.worker.rank.agreement import Agreement, ByFile, ByStore
from tests.conftest import eventually
from tests.kernels import Kernel

# Rank 1 needs longer for a step, and rank 0 waits for it in C code.
DDP = """
import os, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from distrain_nb import on_stop

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
more = torch.ones(400 * dist.get_rank(), 400)
path = f"{os.environ['AIP_CHECKPOINT_DIR']}/{dist.get_rank()}.pt"
losses = []

@on_stop
def save():
    counts = {int(state["step"]) for state in optimizer.state.values()}
    content = {"losses": losses, "model": model.module.state_dict(), "counts": counts}
    torch.save(content, path)

while True:
    more @ more.T
    loss = model(torch.ones(8, 64)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(float(loss))
    if len(losses) == 2:
        print("begun", flush=True)
"""

# Ranks exchange something only at each fifth step, and one is faster.
TOGETHER = """
import os, time, torch
import torch.distributed as dist
from distrain_nb import stopping

dist.init_process_group("gloo")
step = 0
while True:
    step += 1
    time.sleep(0.004 * dist.get_rank())
    if step % 5 == 0:
        dist.all_reduce(torch.ones(1))
    if step == 10:
        print("begun", flush=True)
    if stopping():
        break
steps = [torch.zeros(1) for _ in range(2)]
dist.all_gather(steps, torch.tensor([float(step)]))
print("saved at", *(int(number) for number in steps))
"""

ALONE = """
import os, signal, time
from distrain_nb import on_stop
{before}
@on_stop
def save():
    {save}
{after}
print("begun", flush=True)
while True:
    time.sleep(0.01)
"""
OWN = "signal.signal(signal.SIGTERM, lambda *_: print('its own', flush=True))"
SAVES = "open(os.environ['AIP_CHECKPOINT_DIR'] + '/saved', 'w').close()"
RAISES = """
if os.environ["RANK"] == "1":
    raise ValueError("no luck")
"""


def begun(run: Run, ranks: int = 1) -> bool:
    return str(run.logs()).count("begun") >= ranks


def ended(run: Run) -> bool:
    return run.state.final


def saved(run: Run) -> list[str]:
    return sorted(path.name for path in (run.folder / "checkpoints").iterdir())


@pytest.mark.parametrize("seed", [0, 1])  # twenty: benchmarks/preemptions.py
def test_each_rank_saves_at_whatever_moment(home: Path, seed: int) -> None:
    """As by a preemption: SIGTERM for the supervisor, or by the user's Stop."""
    run = d.submit(DDP, ranks_per_replica=2)
    assert eventually(lambda: begun(run, 2))
    time.sleep(random.Random(seed).random() / 5)
    supervisor = run.status.supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGTERM) if seed % 2 else run.cancel()
    assert eventually(lambda: ended(run))
    assert (str(run.state), run.status.note[:23]) == ("cancelled", "stopped after saving, i")
    for rank in range(2):
        content = torch.load(run.folder / f"checkpoints/{rank}.pt")
        assert len(content["counts"]) == 1, "no parameter is a step ahead of others"
        assert content["counts"].pop() - len(content["losses"]) in (0, 1)


def test_ranks_agree_on_the_step(home: Path) -> None:
    run = d.submit(TOGETHER, ranks_per_replica=2)
    assert eventually(lambda: begun(run, 2))
    run.cancel()
    assert eventually(lambda: ended(run))
    said = {line.partition("saved at ")[2] for line in str(run.logs()).splitlines()} - {""}
    steps = said.pop().split()
    assert not said and len(set(steps)) == 1
    assert str(run.state) == "cancelled"
    assert run.status.note == f"stopped after step {steps[0]}, as stopping() has told all ranks"


def test_ends_and_what_is_said_of_saving(home: Path) -> None:
    """Ahead of a time limit; with a handler that the program sets before or after; a function that
    raises, or doesn't come to its end; a rank that fails. All at once."""
    kinds = {
        "limit": ALONE.format(before="", save=SAVES, after=""),
        "before": ALONE.format(before=OWN, save=SAVES, after=""),
        "after": ALONE.format(before="", save=SAVES, after=OWN),
        "raises": ALONE.format(before="", save="raise ValueError('full')", after=""),
        "slow": ALONE.format(before="", save="time.sleep(60)", after=""),
        "fails": ALONE.format(before="", save=SAVES, after=RAISES),
    }
    options = {"limit": {"timeout": 4, "signal_before": 2}, "fails": {"ranks_per_replica": 2}}
    short = {"signal_before": 2}
    runs = {name: d.submit(kinds[name], **options.get(name, short)) for name in kinds}
    for name in ("before", "after", "raises", "slow"):
        assert eventually(lambda name=name: begun(runs[name]))
        runs[name].cancel()
    assert all(eventually(lambda run=run: ended(run)) for run in runs.values())
    states = {name: str(run.state) for name, run in runs.items()}
    stopped = dict.fromkeys(("before", "after", "raises", "slow"), "cancelled")
    assert states == {"limit": "failed", **stopped, "fails": "failed"}
    notes = {name: run.status.note for name, run in runs.items()}
    assert runs["limit"].status.error == (
        "it was stopped near its time limit, 2 s ahead of --timeout 4"
    )
    assert {name for name in kinds if saved(runs[name])} == {"limit", "before", "after"}
    for name in ("limit", "before", "after"):
        assert notes[name].startswith("stopped after saving, in ")
        assert ("its own" in str(runs[name].logs())) == (name != "limit")
    assert notes["raises"].startswith("stopped: rank 0 could not save: ValueError: full")
    assert notes["slow"].startswith("stopped: rank 0 did not finish saving; ")
    assert notes["fails"] == "" and "no luck" in runs["fails"].status.error


RESUMES = """
import os, time
from distrain_nb import on_stop
path = os.environ["AIP_CHECKPOINT_DIR"] + "/step"
step = int(open(path).read()) if os.path.exists(path) else 0
print("begins at", step, flush=True)
pause = 0.01 if step else 0.3  # the first run is stopped long before its end

@on_stop
def save():
    with open(path, "w") as file:
        file.write(str(step))

while step < last:
    step += 1
    time.sleep(pause)
    if step == 5:
        print("begun", flush=True)
"""


def test_a_run_goes_on_from_what_it_has_saved(nb: Kernel) -> None:
    nb.run("last = 200")
    nb.run(f"%%distrain --no-wait --name long --result step\n{RESUMES}")
    run = d.attach("long")
    with pytest.raises(RunNotReady, match=r"run 1 is .*: cancel it first"):
        run.resume()
    assert eventually(lambda: begun(run))
    assert not run.resumable
    run.cancel()
    assert eventually(lambda: ended(run)) and run.resumable
    step = int((run.folder / "checkpoints" / "step").read_text())
    outcome = nb.run("%distrain resume long")
    assert "run 2 (long) goes on from what run 1 has saved" in outcome.text
    resumed = d.attach("last").wait()
    assert resumed.logs().splitlines()[0] == f"[rank 0] begins at {step}" and 5 <= step < 200
    assert (resumed.line, dict(resumed.results)) == (run.line, {"step": 200})
    (run.folder / "checkpoints" / "step").unlink()
    with pytest.raises(OptionError, match="run 1 can't be resumed: it has saved nothing"):
        run.resume()


# Its own handler sets a flag after three seconds, and the trainer saves and ends at its next step.
TRANSFORMERS = """
import os, torch
from transformers import Trainer, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        y = self.layer(x)
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}

arguments = TrainingArguments(
    os.environ["AIP_CHECKPOINT_DIR"], enable_jit_checkpoint=True, save_strategy="no",
    report_to=[], max_steps=10**6, disable_tqdm=True, use_cpu=True,
)
data = [{"x": torch.ones(4), "labels": torch.ones(1)}] * 1000
trainer = Trainer(Net(), arguments, train_dataset=data)
print("begun", flush=True)
trainer.train()
"""
# Its handler is set by `fit`, after ours, and the step is inside the optimizer's.
LIGHTNING = """
import os, torch, lightning
from distrain_nb import on_stop

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        if self.global_step == 3:
            print("begun", flush=True)
        return self.layer(batch[0]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.001)

data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(1000, 4)))
trainer = lightning.Trainer(
    accelerator="cpu", devices=1, max_epochs=10**6, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
on_stop(lambda: trainer.save_checkpoint(os.environ["AIP_CHECKPOINT_DIR"] + "/last.ckpt"))
trainer.fit(Net(), data)
"""
# All ranks have to save together.
SHARDED = """
import os, torch, torch.distributed as dist
import torch.distributed.checkpoint as dcp
from distrain_nb import stopping
dist.init_process_group("gloo")
step = 0
while not stopping():
    dist.all_reduce(torch.ones(1))
    step += 1
    if step == 2:
        print("begun", flush=True)
dcp.save({"step": step}, checkpoint_id=os.environ["AIP_CHECKPOINT_DIR"] + "/dcp")
"""


def test_other_ways_to_save(home: Path) -> None:
    transformers, lightning, sharded = (
        d.submit(code, ranks_per_replica=ranks, signal_before=60)
        for code, ranks in ((TRANSFORMERS, 1), (LIGHTNING, 1), (SHARDED, 2))
    )
    runs = {transformers: "checkpoint-*/model*", lightning: "last.ckpt", sharded: "dcp/.metadata"}
    for run in runs:
        assert eventually(lambda run=run: begun(run), 120)
        run.cancel()
    for run, name in runs.items():
        assert eventually(lambda run=run: ended(run), 120)
        assert (str(run.state), run.status.error) == ("cancelled", "")
        assert list((run.folder / "checkpoints").glob(name))
    assert "Received SIGTERM" in str(lightning.logs()), "its own handler was called too"


def test_outside_a_run_nothing_is_stopped() -> None:
    def save() -> None: ...

    assert d.on_stop(save) is save
    assert not d.stopping()
    with pytest.raises(TypeError, match="on_stop takes a function without arguments, not 3"):
        d.on_stop(3)  # type: ignore[type-var]


def by_file(folder: Path, world: int) -> list[Agreement]:
    return [ByFile(folder / "steps", rank, world) for rank in range(world)]


def by_store(folder: Path, world: int) -> list[Agreement]:
    store = dist.HashStore()
    return [ByStore(store, rank, world) for rank in range(world)]


@pytest.mark.parametrize("made", [by_file, by_store])
def test_no_rank_passes_the_step_that_all_agree_on(
    tmp_path: Path, made: Callable[[Path, int], list[Agreement]]
) -> None:
    """Ranks that don't wait for each other at all, of which one or more hear of the stop."""
    for seed in range(30):
        luck = random.Random(seed)
        (tmp_path / str(seed)).mkdir()
        ranks = made(tmp_path / str(seed), 4)
        hears = [luck.randrange(1, 200), *(luck.choice([10**6, 100]) for _ in ranks[1:])]
        pauses = [luck.random() / 2500 for _ in ranks]
        threads = [
            threading.Thread(target=train, args=arguments)
            for arguments in zip(ranks, hears, pauses, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len({rank.step for rank in ranks}) == 1


def train(rank: Agreement, hears: int, pause: float) -> None:
    while not rank.next_step(rank.step >= hears):
        time.sleep(pause)


# The first attempt goes on until it is stopped.
CONTINUES = """
import os, time
from distrain_nb import on_stop
path = os.environ["AIP_CHECKPOINT_DIR"] + "/step"
step = int(open(path).read()) if os.path.exists(path) else 0
print("begins at", step, flush=True)
is_first = os.environ.get("DISTRAIN_ATTEMPT", "1") == "1"

@on_stop
def save():
    SAVE

while is_first:
    step += 1
    time.sleep(0.01)
"""


def test_a_run_goes_on_after_its_time_limit_if_it_has_saved(home: Path) -> None:
    """Until it ends by itself, `--retries` attempts have been made, or one has not saved."""
    options = {"timeout": 12, "signal_before": 8}
    save = "open(path, 'w').write(str(step))"
    done, only_lost, unsaved = (
        d.submit(CONTINUES.replace("SAVE", code), **options, retries=2, **more)
        for code, more in (
            (save, {}), (save, {"retry_on": "lost"}), ("raise ValueError('full')", {}),
        )
    )  # fmt: skip
    assert all(eventually(lambda run=run: ended(run)) for run in (done, only_lost, unsaved))
    assert [str(run.state) for run in (done, only_lost, unsaved)] == [
        "succeeded", "failed", "failed",
    ]  # fmt: skip
    step = int((done.folder / "checkpoints" / "step").read_text())
    lines = str(done.logs()).splitlines()
    assert step > 0 and [line for line in lines if "distrain" not in line] == [
        "[rank 0] begins at 0",
        "[service] attempt 2 of 3, after it had saved ahead of its time limit",
        f"[rank 0] begins at {step}",
    ]
    for run in (only_lost, unsaved):
        assert "attempt 2" not in str(run.logs())
        assert run.status.error.startswith("it was stopped near its time limit, 8 s ahead of")
