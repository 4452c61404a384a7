"""What learned a world of one in the kernel is made again in every rank, or refused."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.program.notebooks import of_rank

if TYPE_CHECKING:
    from distrain_nb.findings import Finding
    from tests.program.notebooks import Kernel, Server

pytestmark = pytest.mark.slow

MODULE = """
import os
import torch.distributed as dist

WORLD = int(os.environ.get("WORLD_SIZE", 1))

def join(args):
    args.rank = int(os.environ.get("RANK", 0))
    setattr(args, "world", WORLD)

def rank():
    return dist.get_rank() if dist.is_initialized() else int(os.getenv("RANK", "0"))

class Share:
    def __init__(self, data):
        self._take(data)

    def _take(self, data):
        self.items = data[rank()::WORLD]
"""


@dataclass(frozen=True)
class Case:
    """Cells that ran in a world of 1, and what `out` must be as rank 1 of 4."""

    name: str
    cells: tuple[str, ...]
    out: str
    value: Any


RIGHT = [
    Case("a variable", ("import os\nrank = int(os.environ.get('RANK', 0))",), "rank", 1),
    Case("by getenv", ("from os import getenv as e\nw = int(e('WORLD_SIZE') or 1)",), "w", 4),
    Case(
        "a conditional expression",
        ("import os\nw = int(os.environ['WORLD_SIZE']) if 'WORLD_SIZE' in os.environ else 1",),
        "w",
        4,
    ),
    Case("all of the environment", ("import os\nenv = dict(os.environ)",), "env.get('RANK')", "1"),
    Case(
        "a number divided in place",
        ("import os\nsize = 64", "size //= int(os.environ.get('WORLD_SIZE', 1))"),
        "size",
        16,
    ),
    Case(
        "a number of a number",
        ("import os\nw = int(os.environ.get('WORLD_SIZE', 1))", "lr = 0.5 * w", "cfg = {'lr': lr}"),
        "cfg",
        {"lr": 2.0},
    ),
    Case(
        "a namespace, changed since",
        (
            "import os\nfrom types import SimpleNamespace as N",
            "args = N(rank=int(os.environ.get('RANK', 0)), lr=1)",
            "args.lr = 2\nprint(args)",
        ),
        "[args.rank, args.lr]",
        [1, 2],
    ),
    Case(
        "a dict that was given the rank later",
        ("import os\ncfg = {'lr': 1}", "cfg.update(rank=int(os.environ.get('RANK', 0)))"),
        "cfg",
        {"lr": 1, "rank": 1},
    ),
    Case(
        "a list that a function fills by its name",
        (
            "import os\nfound = []\ndef look():\n    found.append(int(os.environ.get('RANK', 0)))",
            "look()",
        ),
        "found",
        [1],
    ),
    Case(
        "arguments that a function of a module joined to the job",
        (
            "import argparse\nfrom world_module import join",
            "parser = argparse.ArgumentParser()\ngroup = parser.add_argument_group('all')",
            "group.add_argument('--lr', type=float, default=3.0)",
            "args = parser.parse_args([])\njoin(args)",
        ),
        "[args.lr, args.rank, args.world]",
        [3.0, 1, 4],
    ),
    Case(
        "a module's variable under another name",
        ("import world_module as m\nshare = 12 // m.WORLD",),
        "share",
        3,
    ),
    Case(
        "an object whose constructor calls a method that shares out",
        ("from world_module import Share\ndata = list(range(8))", "mine = Share(data)"),
        "mine.items",
        [1, 5],
    ),
    Case(
        "a dataclass with a default factory",
        (
            "import os\nfrom dataclasses import dataclass, field",
            "@dataclass\nclass Config:\n    lr: float = 0.1\n"
            "    rank: int = field(default_factory=lambda: int(os.environ.get('RANK', 0)))",
            "config = Config(lr=0.2)",
        ),
        "[config.lr, config.rank]",
        [0.2, 1],
    ),
    Case(
        "a name that a function set as a global",
        (
            "import os\ndef setup():\n    global rank\n    rank = int(os.environ.get('RANK', 0))",
            "setup()",
        ),
        "rank",
        1,
    ),
    Case(
        "a pair that a function gave",
        (
            "def who():\n    import os\n    return int(os.environ.get('RANK', 0)), 'gloo'",
            "rank, backend = who()\nname = f'{backend}-{rank}'",
        ),
        "name",
        "gloo-1",
    ),
    Case(
        "a partial of a function",
        (
            "import os\nfrom functools import partial\ndef key(n): return os.environ.get(n, '0')",
            "asked = partial(key, 'RANK')\nrank = asked()",
        ),
        "rank",
        "1",
    ),
    Case(
        "the rank from a property",
        (
            "import os\nclass Job:\n    @property\n    def rank(self):\n"
            "        return int(os.environ.get('RANK', 0))",
            "job = Job()\nseed = 10 + job.rank",
        ),
        "seed",
        11,
    ),
    Case(
        "made in a with statement, from an expression with a walrus",
        (
            "import os, contextlib\nwith contextlib.nullcontext():\n"
            "    first = (r := int(os.environ.get('RANK', 0))) == 0",
        ),
        "[first, r]",
        [False, 1],
    ),
    Case(
        "an index of a shared dataset",
        (
            "import torch\nfrom torch.utils.data import DataLoader, DistributedSampler as Sampler",
            "import os\nr = int(os.environ.get('RANK', 0))",
            "w = int(os.environ.get('WORLD_SIZE', 1))",
            "data = list(range(8))\nsampler = Sampler(data, w, r, shuffle=False)",
            "loader = DataLoader(data, batch_size=2, sampler=sampler)\nholder = [loader]",
        ),
        "[b.tolist() for b in holder[0]]",
        [[1, 5]],
    ),
    Case(
        "an optimizer of a model that trained, with a rate of its own",
        (
            "import os, torch\nnet = torch.nn.Linear(1, 1)",
            "with torch.no_grad(): net.weight.fill_(7)",
            "lr = 1.0 * int(os.environ.get('WORLD_SIZE', 1))",
            "opt = torch.optim.SGD(net.parameters(), lr=lr)\ngroup = opt.param_groups[0]",
        ),
        "[net.weight.item(), opt.param_groups[0]['lr'], group['params'][0] is net.weight]",
        [7.0, 4.0, True],
    ),
]


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_made_again_in_every_rank(
    kernel: Kernel, server: Server, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _program(kernel, case, monkeypatch)
    program = replace(program, variables={"RANK": "1", "WORLD_SIZE": "4"})
    assert server.results(program) == case.value


def _program(kernel: Kernel, case: Case, monkeypatch: pytest.MonkeyPatch) -> Any:
    for variable in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    _bring_module(kernel, monkeypatch)
    for cell in case.cells:
        kernel.run(cell)
    return kernel.capture(f"import json\nprint('RESULT', json.dumps({case.out}))")


def _bring_module(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel.folder / "world_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(kernel.folder))
    monkeypatch.delitem(sys.modules, "world_module", raising=False)


@pytest.mark.parametrize(
    "cell",
    [
        "match 'b':\n    case 'a':\n        import nowhere_at_all",
        "import importlib\nif len('a') > 1:\n    importlib.import_module('nowhere_at_all')",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import nowhere_at_all",
    ],
)
def test_a_module_that_a_condition_asks_for_may_be_missing(kernel: Kernel, cell: str) -> None:
    assert not kernel.capture(cell).findings


@pytest.mark.parametrize(
    ("cells", "cell"),
    [
        (("import world_module as m\nshare = 12 // m.WORLD",), "print(share)"),
        (("from world_module import Share", "mine = Share([1])"), "print(mine)"),
        (("import world_module",), "import world_module\nprint(world_module.WORLD)"),
    ],
)
def test_a_module_whose_file_is_gone_is_told_of(
    kernel: Kernel, cells: tuple[str, ...], cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _bring_module(kernel, monkeypatch)
    for each in cells:
        kernel.run(each)
    (kernel.folder / "world_module.py").unlink()
    told = [f.message for f in kernel.capture(cell).findings if f.code == "capture.unknown-module"]
    where = f"`world_module` was loaded from {kernel.folder}/world_module.py, which is gone: put"
    assert [message.startswith(where) for message in told] == [True]


def test_a_module_in_another_encoding_is_read(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "# coding: latin-1\n# gr\xfc\xdfe\nimport os\nW = int(os.environ.get('WORLD_SIZE', 1))\n"
    (kernel.folder / "latin_module.py").write_text(text, encoding="latin-1")
    monkeypatch.syspath_prepend(str(kernel.folder))
    kernel.run("import latin_module as m\nshare = 12 // m.W")
    program = kernel.capture("print(share)")
    assert "12 // m.W" in program.main


@dataclass(frozen=True)
class Refusal:
    """Cells that ran, the name that the cell reads, and the places that the error must give."""

    name: str
    cells: tuple[str, ...]
    reads: str
    says: tuple[str, ...]


RANK = "import os, torch\nrank = int(os.environ.get('RANK', 0))\nx = torch.ones(1, 1)"
REFUSED = [
    Refusal(
        "a model that trained since",
        (
            RANK,
            "net = torch.nn.Linear(1, 1 + rank)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
            "def train(model, steps):\n    for _ in range(steps):\n"
            "        model(x).sum().backward()\n        opt.step()",
            "train(net, 2)",
        ),
        "net",
        ("`net` (Linear)", "(rank, Cell In[2]", "Cell In[4], line 1 has changed it", "Cell In[2]"),
    ),
    Refusal(
        "a model that trained since, in a dict of another class",
        (
            f"{RANK}\nfrom collections import OrderedDict",
            "nets = OrderedDict(net=torch.nn.Linear(1, 1 + rank))",
            "def train():\n    nets['net'](x).sum().backward()",
            "train()",
        ),
        "nets",
        ("`nets` (OrderedDict)", "(rank, Cell In[2]", "Cell In[4], line 1 has changed it"),
    ),
    Refusal(
        "a model that the statement which makes it trains",
        (
            RANK,
            "def trained():\n    net = torch.nn.Linear(1, 1 + rank)\n"
            "    net(x).sum().backward()\n    return net",
            "net = trained()",
        ),
        "net",
        ("also trains", "move Cell In[3], line 1 into the cell"),
    ),
    Refusal(
        "an object that no statement makes",
        ("import torch.utils.data as d\nexec('s = d.DistributedSampler([1], 1, 0)')",),
        "s",
        ("`s` (DistributedSampler)", "no executed statement is known to create it"),
    ),
    Refusal(
        "a list that was given a sampler where nobody can see it",
        (
            "import torch.utils.data as d\nclass Box:\n    items = []\nbox = Box.items",
            "Box.items.append(d.DistributedSampler([1], 1, 0))",
        ),
        "box",
        ("`box` (list)", "DistributedSampler", "create it in the cell"),
    ),
]


GROUP = (
    "import torch, torch.distributed as dist\nstore = dist.HashStore()",
    "if not dist.is_initialized():\n"
    "    dist.init_process_group('gloo', store=store, rank=0, world_size=1)",
)


@pytest.mark.parametrize(
    "made",
    [
        "dist.device_mesh.init_device_mesh('cpu', (1,))",
        "dist.new_group([0])",
        "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))",
        "dist.tensor.distribute_tensor(torch.ones(2), dist.init_device_mesh('cpu', (1,)))",
    ],
)
def test_what_needs_a_process_group_is_refused_with_its_line(kernel: Kernel, made: str) -> None:
    import torch.distributed as dist

    for cell in (*GROUP, f"import torch.distributed.tensor\nmade = {made}"):
        kernel.run(cell)
    try:
        (error,) = _errors(kernel.capture("print(made)").findings)
    finally:
        dist.destroy_process_group()
    assert error.code == "capture.process-bound"
    assert "move Cell In[3], line 2 into the cell" in error.message


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_refused_where_it_cannot_be_made_again(kernel: Kernel, case: Refusal) -> None:
    for cell in case.cells:
        kernel.run(cell)
    (error,) = _errors(kernel.capture(f"print({case.reads})").findings)
    assert error.code in ("capture.process-bound", "capture.rebound")
    assert all(said in error.message for said in case.says), error


def test_a_name_that_has_changed_since_is_read_as_it_was(kernel: Kernel, server: Server) -> None:
    for cell in ("import os\nbase = 1", "rank = base + int(os.environ.get('RANK', 0))", "base = 5"):
        kernel.run(cell)
    program = kernel.capture("print('RESULT', [rank, base])")
    assert not _errors(program.findings)
    assert server.results(replace(program, variables={"RANK": "1"})) == [2, 5]


def _errors(findings: tuple[Finding, ...]) -> list[Finding]:
    return [f for f in findings if str(f.severity) == "error"]


def test_what_work_measured_travels_and_is_told(kernel: Kernel) -> None:
    kernel.run(RANK)
    kernel.run(
        "def evaluate():\n    losses = []\n    for _ in range(2):\n        w = x * (rank + 1)\n"
        "        losses.append(w.requires_grad_().sum().backward() or 0.5)\n    return losses"
    )
    kernel.run("losses = evaluate()\nscore = {'loss': losses[0], 'n': 2}")
    program = kernel.capture("print(losses)")
    assert [f.code for f in program.findings] == ["capture.measured"]
    assert "losses = [0.5, 0.5]" in program.main


@pytest.mark.parametrize(
    "cell",
    [
        "import torch\nnet = torch.nn.Linear(1, 1)\n"
        "net.to('cuda' if torch.cuda.is_available() else 'cpu')",
        "import os\nnet = {'home': os.environ['HOME']}",
        "import os\ndef f(): return os.environ.get('RANK')\nnet = 1",
        "net = [1.5] * 3",
        "losses = []\nimport torch\nfor _ in range(2):\n"
        "    if not torch.cuda.is_available():\n        losses.append(1.0)\nnet = losses",
    ],
)
def test_what_knows_nothing_of_the_world_travels_as_it_is(kernel: Kernel, cell: str) -> None:
    kernel.run(cell)
    program = kernel.capture("print(net)")
    assert not program.findings
    assert [value.name for value in program.values] == ["net"]


SHARDED = {
    "FSDP": "net = FSDP(torch.nn.Linear(2, 1), device_id=torch.device('cpu'))",
    "fully_shard": "net = torch.nn.Linear(2, 1)\nfully_shard(net)",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", SHARDED)
def test_models_that_the_kernel_sharded_are_refused(kernel: Kernel, way: str) -> None:
    kernel.run(
        "import torch, torch.distributed as dist\n"
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard\n"
        "dist.init_process_group('gloo', rank=0, world_size=1, store=dist.HashStore())"
    )
    try:
        kernel.run(SHARDED[way])
        program = kernel.capture("print(net)")
    finally:
        kernel.run("dist.destroy_process_group()")
    (finding,) = (f for f in program.findings if f.code == "capture.process-bound")
    assert "belongs to a process group of the notebook" in finding.message
    assert "move Cell In[2], line 1 into the cell" in finding.message


LOST = {
    "a subclass": ("class A: pass\nclass B(A): pass", "A", "B", "B.a"),
    "an instance": ("class A: pass\nw = A()", "A", "w", "w.a"),
    "an inner class": ("class A:\n    class In: pass\nw = [A.In()]", "A.In", "w", "w[0].a"),
    "a function": ("def A(): pass\nw = {'f': A}", "A", "w", "w['f'].a"),
}
ASKS = "int(os.environ.get('RANK', 0))"


@pytest.mark.parametrize("since", ["class A:\n    a = 0", "A = 3", "del A"])
@pytest.mark.parametrize("kind", LOST)
def test_a_definition_that_knows_the_world_and_lost_its_name_is_made_again_or_refused(
    kernel: Kernel, server: Server, kind: str, since: str
) -> None:
    """Each rank had the kernel's 0 in it."""
    first, lost, read, value = LOST[kind]
    for way in (f"{lost}.a = {ASKS}", f"setattr({lost}, 'a', {ASKS})"):
        for cell in (f"import os\n{first}", way):
            kernel.run(cell)
        where = f"{kernel.cells[-1].label}, line 1"
        kernel.run(since)
        program = kernel.capture(f"print('RESULT', {value})")
        if errors := _errors(program.findings):
            assert errors[0].message.startswith(f"`{read}")
            known = f"needs `{lost}`, which {where} made depend on the world"
            rebound = f"with the present `{lost}`, which {kernel.cells[-1].label}, line 1 has set"
            assert known in errors[0].message or rebound in errors[0].message
        else:
            program = replace(program, variables={"RANK": "1"})
            assert server.results(program) == of_rank(kernel, 1, value) == 1
