"""Training that reads shards: ranks of a run that is killed in mid-epoch and gone on with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.data import pack
from distrain_nb.errors import RunFailed
from distrain_nb.run import Run

pytestmark = pytest.mark.slow

SAMPLES = 101
TRAINING = """
import os, signal
from pathlib import Path
import torch, torch.distributed as dist
from distrain_nb.data import shards

dist.init_process_group("gloo")
rank, there = dist.get_rank(), Path(folder)
checkpoint = there / "checkpoint.pt"
samples = shards(train, batch_size=4, shuffle=11, transform=lambda sample: int(sample["txt"]))
loader = samples.loader(workers=2)
step = 0
if checkpoint.exists():
    saved = torch.load(checkpoint)
    step = saved["step"]
    loader.load_state_dict(saved["loader"])
for batch in loader:
    dist.all_reduce(batch.sum())
    with (there / f"seen-{rank}").open("a") as seen:
        seen.writelines(f"{step} {number}\\n" for number in batch.tolist())
    step += 1
    if rank == 0:
        torch.save({"step": step, "loader": loader.state_dict()}, there / "draft")
        (there / "draft").rename(checkpoint)
    dist.barrier()
    if step == killed_at and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
steps = step
"""


def packed(folder: Path) -> str:
    (folder / "in").mkdir()
    for number in range(SAMPLES):
        (folder / "in" / f"{number:03}.txt").write_text(str(number))
    pack(str(folder / "in"), str(folder / "out"))
    return str(folder / "out")


def test_two_ranks_killed_in_mid_epoch_go_on(home: Path, tmp_path: Path) -> None:
    data = f"train={packed(tmp_path)}"

    def train(killed_at: int) -> Run:
        values = f"folder = {str(tmp_path)!r}; killed_at = {killed_at}"
        options = {"ranks_per_replica": 2, "data": data, "result": "steps", "wait": True}
        return api.submit(values + TRAINING, **options)

    with pytest.raises(RunFailed):
        train(killed_at=6)
    assert train(killed_at=0).results["steps"] == 13
    seen = [
        line.split()
        for rank in range(2)
        for line in (tmp_path / f"seen-{rank}").read_text().splitlines()
    ]
    assert sorted(int(number) for _, number in seen) == list(range(SAMPLES))
    assert Counter(int(step) for step, _ in seen).keys() == set(range(13))


def test_tensorflow_reads_all(tmp_path: Path) -> None:
    from distrain_nb.data import tf_shards

    train = packed(tmp_path)
    epochs: list[list[bytes]] = [[], []]
    for rank in range(2):
        dataset = tf_shards(train, 8, shuffle=1, rank=rank, world_size=2)
        for epoch in epochs:
            batches = [batch["txt"].numpy() for batch in dataset]
            assert len(batches) == 7
            epoch += [text for batch in batches for text in batch]
    assert epochs[0] != epochs[1]
    for epoch in epochs:
        assert sorted(int(text) for text in epoch) == list(range(SAMPLES))
