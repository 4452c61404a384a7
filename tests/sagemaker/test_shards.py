"""Shards from a folder of this machine to a training job on two hosts, as a notebook does it."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from tests.kernels import Kernel
from tests.vertex.conftest import notebook, pytorch, without_docker  # noqa: F401 - one kernel
from tests.vertex.test_frameworks import evaluated, run_there

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SAMPLES = 101
CLOUDS = {
    "vertex": "--data train=gs://numbers/shards --primary n1-standard-4 --workers n1-standard-4",
    "sagemaker": "--data train=s3://numbers/shards --workers 2*ml.m5.xlarge",
}
PACK = "%distrain shard {source} {scheme}://numbers/shards --shuffle 3 --rehearse"
HEAD = "%%distrain --on {cloud} --rehearse --wait --base {base} {options} --result seen,hosts\n"
CELL = """\
import os
import socket
import torch
import torch.distributed as dist
from distrain_nb.data import shards

dist.init_process_group("gloo")
samples = shards(train, batch_size=4, shuffle=11, transform=lambda sample: int(sample["txt"]))
loader = samples.loader(workers=2)
epochs = []
for epoch in range(2):
    batches = []
    for batch in loader:
        dist.all_reduce(batch.sum())
        batches.append(batch.tolist())
    epochs.append(batches)
seen, hosts = [None] * dist.get_world_size(), [None] * dist.get_world_size()
dist.all_gather_object(seen, epochs)
dist.all_gather_object(hosts, socket.gethostname())
"""


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small files."""
    folder = tmp_path_factory.mktemp("numbers")
    for number in range(SAMPLES):
        (folder / f"{number:03}.txt").write_text(str(number))
    return folder


@pytest.mark.parametrize("cloud", CLOUDS)
def test_two_hosts_read_each_sample_once(
    notebook: Kernel,  # noqa: F811
    pytorch: str,  # noqa: F811
    numbers: Path,
    cloud: str,
) -> None:
    scheme = CLOUDS[cloud].partition("=")[2][:2]
    packed = notebook.run(PACK.format(source=numbers, scheme=scheme))
    assert packed.text.startswith(f"{SAMPLES} samples in 1 shard"), packed
    head = HEAD.format(cloud=cloud, base=pytorch, options=CLOUDS[cloud])
    run_there(notebook, head + CELL)
    assert evaluated(notebook, "len(set(hosts))") == 2
    epochs = evaluated(notebook, "list(zip(*seen))")
    assert isinstance(epochs, list) and epochs[0] != epochs[1]
    for ranks in epochs:
        assert [len(batches) for batches in ranks] == [13, 13]
        read = [number for batches in ranks for batch in batches for number in batch]
        assert sorted(read) == list(range(SAMPLES))


SOUND = 100_000  # bytes of a file


@pytest.mark.parametrize(("cloud", "scheme"), [("vertex", "gs"), ("sagemaker", "s3")])
def test_packing_there_gives_the_same_shards(
    notebook: Kernel,  # noqa: F811
    without_docker: dict[str, str],  # noqa: F811
    base: str,
    cloud: str,
    scheme: str,
) -> None:
    bucket = Path(without_docker["DISTRAIN_HOME"]) / "rehearsal" / scheme / "sounds"
    content = random.Random(0)
    for number in range(40):
        path = bucket / "raw" / f"{number:02}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.randbytes(SOUND))
    words = "--size 1MB --shuffle 3"
    here = notebook.run(f"%distrain shard {bucket}/raw {bucket}/here {words}")
    assert here.text.startswith("40 samples in 5 shards"), here
    if cloud == "vertex":
        leave_unfinished(bucket / "here", bucket / "there")
    there = f"--on {cloud} --rehearse --wait --base {base}"
    places = f"{scheme}://sounds/raw {scheme}://sounds/there"
    run_there(notebook, f"%distrain shard {places} {words} {there}")
    assert files(bucket / "there") == files(bucket / "here")
    kept = 3 if cloud == "vertex" else 0
    found = evaluated(notebook, "[packed[name] for name in ('samples', 'shards', 'kept')]")
    assert found == [40, 5, kept]
    log = str(evaluated(notebook, "run.logs()"))
    assert "packing" in log and "40 samples in 5 shards" in log


def leave_unfinished(packed: Path, target: Path) -> None:
    """What a packing leaves that was killed when it had three shards."""
    index = json.loads((packed / "index.json").read_text())
    (target / ".packing").mkdir(parents=True)
    plan = {"fingerprint": index["fingerprint"]}
    (target / ".packing" / "plan.json").write_text(json.dumps(plan))
    for record in index["shards"][:3]:
        shutil.copyfile(packed / record["name"], target / record["name"])
        (target / ".packing" / f"{record['name']}.json").write_text(json.dumps(record))
    shutil.copyfile(packed / "shard-000004.tar", target / ".shard-000004.tar.0.draft")


def files(folder: Path) -> dict[str, bytes]:
    """All shards of a folder, and whatever else is there but the index."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    assert found.pop("index.json")
    return found
