"""Kinds of notebooks through a real kernel: ranks have what the kernel has, or it is refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.kernels import Kernel, kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

MODEL = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1, bias=False)
        self.act = lambda x: x * 2
class Numbers(torch.utils.data.Dataset):
    def __init__(self, n):
        self.x, self.transform = torch.arange(float(n)), lambda v: v * 10
    def __len__(self): return len(self.x)
    def __getitem__(self, i): return self.transform(self.x[i])
net, data = Net(), Numbers(4)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda epoch: 0.5**epoch)
"""
TRAINED = """
net.load_state_dict({"layer.weight": torch.full((1, 2), 7.0)})
data.x = data.x[data.x > 1] + 100
for _ in range(3):
    optimizer.step()
    schedule.step()
"""

# name: the notebook's cells, the training cell, what each rank prints
CASES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "class": (
        (
            "class CFG:\n    lr, tags, opts = 0.1, [], {}",
            "setattr(CFG, 'lr', 0.01)\nCFG.tags.append('night')\nCFG.opts['amp'] = True",
        ),
        "print(CFG.lr, CFG.tags, CFG.opts)",
        "0.01 ['night'] {'amp': True}",
    ),
    "dataclass and enum": (
        (
            "import enum\nfrom dataclasses import dataclass\n@dataclass\nclass CFG:\n"
            "    lr: int = 1\nclass E(enum.Enum):\n    X = 1",
            "for name in ('lr', 'new'): setattr(CFG, name, 2)\nE.X.extra = CFG()",
        ),
        "print(CFG.lr, CFG.new, E.X.extra)",
        "2 2 CFG(lr=1)",
    ),
    "registry": (
        (
            "MODELS = {}\ndef register(name):\n    def deco(cls):\n        MODELS[name] = cls\n"
            "        return cls\n    return deco",
            "@register('net')\nclass Net:\n    width = 4\n@register('wide')\nclass Wide(Net):\n"
            "    width = 64",
        ),
        "print(MODELS['wide'].width, sorted(MODELS), MODELS['net'] is Net)",
        "64 ['net', 'wide'] True",
    ),
    "model, data set and schedule with lambdas": (
        (MODEL, TRAINED),
        "print(net.layer.weight.tolist(), [data[i].item() for i in range(2)],\n"
        "      optimizer.param_groups[0]['lr'], schedule.last_epoch)",
        "[[7.0, 7.0]] [1020.0, 1030.0] 0.125 3",
    ),
    "source of classes": (
        ("class Net:\n    class Inner:\n        x = 1",),
        "import inspect\nprint([*map(inspect.getsource, (Net.Inner, Net))])",
        r"['    class Inner:\n        x = 1\n', 'class Net:\n    class Inner:\n        x = 1\n']",
    ),
    "views": (
        ("import torch\nsmall = torch.ones(6)\npart = small[:3]",),
        "small[0] = 5\nprint(part[0].item())",
        "5.0",
    ),
    "world": (
        (
            "import os\nclass A:\n    @property\n    def rank(self): return os.environ.get('RANK')",
            "ranks = [A().rank]\n%time ranks.append(len(ranks))",
        ),
        "print(int(ranks[0]) < 2, ranks[1])",
        "True 1",
    ),
    "cached results": (
        (
            "import functools\n@functools.cache\ndef cfg(name): return {'name': name}",
            "cfg('a')['lr'] = 5\nheld = cfg('a')",
        ),
        "print(cfg('a'), held is cfg('a'), cfg('b'))",
        "{'name': 'a', 'lr': 5} True {'name': 'b'}",
    ),
    "a variable that is gone": (
        ("import os\ndel os.environ['MY_GONE']\nos.environ['MY_NEW'] = 'new'",),
        "print(os.environ.get('MY_GONE'), os.environ['MY_NEW'])",
        "None new",
    ),
    "settings that functions and loops make": (
        (
            "import decimal, gc, logging, os, re, socket, sys, threading, warnings\n"
            "import numpy as np",
            "def setup():\n    print('set')\n    sys.setrecursionlimit(3210)\n"
            "    threading.excepthook = print_it\n    warnings.simplefilter('ignore')\n"
            "    decimal.getcontext().prec = 5\n    os.umask(0o027)\n"
            "    np.set_printoptions(precision=2)\n    socket.setdefaulttimeout(7)\n"
            "def print_it(a): print(a)\nsetup()\n"
            "for name in ('mine', 'other'):\n    logger = logging.getLogger(name)\n"
            "    logger.setLevel(7)\n    gc.set_threshold(900)",
        ),
        "print(sys.getrecursionlimit(), threading.excepthook is print_it, warnings.filters[0][0],\n"
        "      decimal.Decimal(1) / 3,\n"
        "      re.search('Umask:.*', open('/proc/self/status').read())[0],\n"
        "      np.array([1.2345]), logging.getLogger('other').level, gc.get_threshold()[0],\n"
        "      socket.getdefaulttimeout())",
        "3210 True ignore 0.33333 Umask:\t0027 [1.23] 7 900 7.0",
    ),
}
REFUSED = {
    "value that can't be read": (
        ("class O(dict):\n    __getattr__ = dict.get\no = O(lr=1)\no.extra = 2",),
        "print(o.lr)",
        "`o` (O) can be pickled but not read again",
    ),
    "attribute that can't travel": (
        (
            "from dataclasses import dataclass\n@dataclass\nclass A:\n    a: int = 1",
            "A.a = (x for x in [])",
        ),
        "print(A)",
        "`A.a` is a generator in the notebook",
    ),
    "program that starts its processes": (
        ("from accelerate import notebook_launcher\ndef train(): pass",),
        "notebook_launcher(train, num_processes=2)",
        "`notebook_launcher` starts processes itself",
    ),
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel for all, whose names are reset between them."""
    folder = tmp_path_factory.mktemp("kernel")
    variables = {"DISTRAIN_HOME": str(folder / "home"), "MY_GONE": "here"}
    with kernel(folder, {**os.environ, **variables}) as started:
        started.run("%load_ext distrain_nb")
        yield started


def error_of(running: Kernel, cells: tuple[str, ...], training: str) -> str:
    for cell in ("%reset -f", *cells):
        assert not running.run(cell).error
    return running.run(f"%%distrain -n 2\n{training}").error


@pytest.mark.parametrize("name", CASES)
def test_ranks_have_what_the_kernel_has(running: Kernel, name: str) -> None:
    cells, training, shown = CASES[name]
    assert not error_of(running, cells, training)
    logs = running.run("import distrain_nb\nprint(distrain_nb.runs()[0].logs())").text.split("\n")
    assert sorted(line for line in logs if line and "worked alone" not in line) == [
        f"[rank {n}] {shown}" for n in (0, 1)
    ]


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_the_start(running: Kernel, name: str) -> None:
    cells, training, message = REFUSED[name]
    assert message in error_of(running, cells, training)
