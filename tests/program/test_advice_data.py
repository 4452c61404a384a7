"""Advice about a loader's data by the kind of its dataset, and what PyTorch says of these kinds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from distrain_nb.program.advice import findings

pytestmark = pytest.mark.slow

HEAD = """\
import os, torch, torch.distributed as dist, webdataset as wds, datasets, distrain_nb.data
from datasets import load_dataset
from torch.utils.data import ChainDataset, ConcatDataset, DataLoader, Dataset, IterableDataset
from torchdata.datapipes.iter import IterableWrapper
from torchvision.datasets import MNIST
from streaming import StreamingDataset
import litdata
from project import Theirs, theirs
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(Net())
class Lines(IterableDataset):
    def __iter__(self): return iter(range(9))
class Rows(Dataset):
    def __getitem__(self, index): return self.rows[index]
class Pages(StreamingDataset): pass
def make(data): return data
def both(): return Lines(), Rows()
"""
SAMPLER = "sampler=torch.utils.data.DistributedSampler(dataset)"
SPLIT = "takes no sampler: in its __iter__ write itertools.islice"
BY_NODE = "write dataset = datasets.distributed.split_dataset_by_node(dataset, rank="

ITERATED = {
    "chained": ("DataLoader(ChainDataset([Lines(), theirs]))", SPLIT),
    "added": ("DataLoader(Lines() + Lines())", SPLIT),
    "returned": ("DataLoader(make(Lines()))", SPLIT),
    "one of two returned": ("data, rows = both()\nDataLoader(data)", SPLIT),
    "parameter": ("def loader(data): return DataLoader(data)\nloader(data=Lines())", SPLIT),
    "default": ("def loader(data=Lines()): return DataLoader(data)\nloader()", SPLIT),
    "attribute": (
        "data = Lines()\nclass Part:\n    def __init__(self): self.data = data\n"
        "    def loader(self): return DataLoader(self.data)",
        SPLIT,
    ),
    "annotated": ("data: object = Lines()\nDataLoader(data)", SPLIT),
    "one of two": ("data, rows = Lines(), Rows()\nDataLoader(data)", SPLIT),
    "walrus": ("DataLoader(data := Lines())", SPLIT),
    "condition": ("DataLoader(Lines(1) if small else Lines(2))", SPLIT),
    "loop": ("for data in (Lines(1), Lines(2)):\n    DataLoader(data)", SPLIT),
    "item": ("parts = {'train': Lines()}\nDataLoader(parts['train'])", SPLIT),
    "arm": ("if small: data = Rows()\nelse:\n    data = Lines()\n    DataLoader(data)", SPLIT),
    "set again": ("data = Rows()\ndata = Lines()\nDataLoader(data)\ndata = Rows()", SPLIT),
    "in a loop": ("data = Lines()\nwhile True: data = data.map(f)\nDataLoader(data)", SPLIT),
    "streamed": ("DataLoader(load_dataset('c4').to_iterable_dataset())", BY_NODE),
    "generated": ("DataLoader(datasets.IterableDataset.from_generator(lines))", BY_NODE),
    "streamed by a name": ("S = True\nDataLoader(load_dataset('c4', streaming=S))", BY_NODE),
    "Hugging Face": ("DataLoader(load_dataset('c4')['train'].map(f))", BY_NODE),
    "streamed or not": ("DataLoader(load_dataset('c4', streaming=args.stream))", BY_NODE),
    "one or the other": ("DataLoader(Lines() if small else Rows())", SPLIT),
}
OTHERS = {
    "class": "DataLoader(Rows())",
    "torchvision": "DataLoader(MNIST('x').train())",
    "list": "DataLoader([make(each) for each in range(9)])",
    "concatenated": "DataLoader(ConcatDataset([theirs, theirs]))",
    "imported": "DataLoader(Theirs())",
    "not bound": "DataLoader(train_set)",
    "parameter": "def loader(data): return DataLoader(data)",
    "circle of classes": "class A(B): pass\nclass B(A): pass\nDataLoader(A())",
    "circle of calls": "def f(data): return g(data)\ndef g(data): return f(data)\nDataLoader(f(x))",
    "shuffled": "DataLoader(theirs, shuffle=True)",
}
SHARED = {
    "ours": "DataLoader(distrain_nb.data.shards('x', 32), batch_size=None)",
    "MosaicML's": "DataLoader(StreamingDataset(local='x'))",
    "class of theirs": "DataLoader(Pages(local='x'))",
    "litdata's": "data = litdata.StreamingDataset('x')\nDataLoader(data)",
    "one of ours": "DataLoader(distrain_nb.data.shards('x', 32) if packed else Rows())",
    "pipe": "DataLoader(IterableWrapper(range(9)).sharding_filter())",
}


def said(code: str) -> list[str]:
    return [
        f"{f.code.rpartition('.')[2]}: {f.message}" for f in findings(HEAD + code, "Cell In[1]")
    ]


@pytest.mark.parametrize(("code", "write"), ITERATED.values(), ids=ITERATED)
def test_what_is_iterated_over_is_told_wherever_it_comes_from(code: str, write: str) -> None:
    (found,) = said(code)
    assert found.startswith("iterable: ")
    assert write in found
    assert SAMPLER not in found


@pytest.mark.parametrize("code", OTHERS.values(), ids=OTHERS)
def test_other_data_get_what_is_right_for_each_kind(code: str) -> None:
    (found,) = said(code)
    assert found.startswith("sampler: every rank reads all")
    assert SAMPLER in found
    assert SPLIT in found


@pytest.mark.parametrize("code", SHARED.values(), ids=SHARED)
def test_data_that_share_themselves_out_need_nothing(code: str) -> None:
    assert said(code) == []


FACTS = """
import json, sys
import torch.distributed as dist, torch.multiprocessing as mp
from torch.utils.data import ChainDataset, DataLoader, IterableDataset
from torch.utils.data.datapipes.iter import IterableWrapper

class Lines(IterableDataset):
    def __iter__(self): return iter(range(9))

def refused():
    try:
        DataLoader(Lines(), shuffle=True)
    except ValueError as error:
        return str(error)

def read(rank):
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=2)
    pipe = IterableWrapper(range(4))
    lists = [list(DataLoader(p, batch_size=None)) for p in (pipe, pipe.sharding_filter())]
    if rank == 1:
        chained = isinstance(Lines() + Lines(), ChainDataset)
        print(json.dumps([*lists, chained, refused()]), flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(read, nprocs=2)
"""


def test_pytorch_reads_these_kinds_as_the_advice_says(tmp_path: Path) -> None:
    program = tmp_path / "facts.py"
    program.write_text(FACTS, encoding="utf-8")
    run = [sys.executable, str(program), str(tmp_path / "store")]
    ran = subprocess.run(run, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    whole, shared, chained, refused = json.loads(ran.stdout.splitlines()[-1])
    assert (whole, shared, chained) == ([0, 1, 2, 3], [1, 3], True)
    assert "expected unspecified shuffle option" in refused
