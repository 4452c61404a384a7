"""What changed since an object learned the world is so in ranks too, or it is refused."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from distrain_nb.observed import Observer

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Place, Server

MADE = (
    "import os, argparse\nfrom types import SimpleNamespace",
    "args = SimpleNamespace(rank=int(os.environ.get('RANK', 0)), lr=1, tags=[])",
)
WAYS = {
    "vars": "vars(args).update(lr=2)",
    "another name": "b = args\nb.lr = 2",
    "a loop": "for k, v in {'lr': 2}.items():\n    setattr(args, k, v)",
    "a function's __dict__": "def f(a): a.__dict__['lr'] = 2\nf(args)",
    "a lambda": "(lambda a: setattr(a, 'lr', 2))(args)",
    "map": "list(map(lambda kv: setattr(args, *kv), [('lr', 2)]))",
    "a library": "args = argparse.Namespace(rank=int(os.environ.get('RANK', 0)))\n"
    "p = argparse.ArgumentParser()\np.add_argument('--lr', type=int)\n"
    "p.parse_args(['--lr', '2'], namespace=args)",
    "a container": "holder = [args]\nholder[0].lr = 2",
    "a method": "class T:\n    def tune(self, a): a.lr = 2\nT().tune(args)",
    "exec": "exec('args.lr = 2')",
    "by text": "globals()['args'].lr = 2",
    "object": "object.__setattr__(args, 'lr', 2)",
    "with": "with __import__('contextlib').suppress(OSError):\n    args.lr = 2",
    "if": "if args.lr == 1:\n    x = args; x.lr = 2",
    "two on a line": "y = args; vars(y).update(lr=2)",
    "what was emptied since": "new = {'lr': 2}\nvars(args).update(new)\nnew = {}",
    "an array": "import numpy as np\nheld = np.empty(1, object)\nheld[0] = args\nheld[0].lr = 2",
    "a closure": "def tuner(a):\n    def tune(): a.lr = 2\n    return tune\nt = tuner(args)\nt()",
    "a hook": "hooks = []\ndef tune(): args.lr = 2\nhooks.append(tune)\nfor hook in hooks: hook()",
    "a partial": "import functools\ndo = functools.partial(setattr, args, 'lr')\ndo(2)",
    "deep inside": "args.inner = {'a': [SimpleNamespace(lr=1)]}\nz = args.inner['a'][0]\nz.lr = 2\n"
    "vars(args).update(lr=args.inner['a'][0].lr)",
}
REFUSED = {
    "the other name is gone": ("b = args\nb.lr = 2\ndel b", "b"),
}


def as_rank_1(kernel: Kernel, server: Server, shown: str) -> str:
    program = kernel.capture(f"print({shown})")
    assert not [f for f in program.findings if str(f.severity) == "error"], program.findings
    return server.output(dataclasses.replace(program, variables={"RANK": "1"}))


# Of few objects all are compared after each statement, of more those to which it leads.
BESIDE = {
    "alone": "",
    "beside others": "".join(f"b{n} = {{'r': args.rank, 'n': {n}}}\n" for n in range(6)),
}


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("way", WAYS)
def test_what_changed_it_runs_again(way: str, beside: str, kernel: Kernel, server: Server) -> None:
    for cell in (*MADE, BESIDE[beside], WAYS[way]):
        kernel.run(cell)
    assert as_rank_1(kernel, server, "args.rank, args.lr") == "1 2\n"


def test_what_no_statement_leads_to_is_refused_by_its_cell(kernel: Kernel) -> None:
    """A package keeps a function that changes it, as one does that calls back."""
    for cell in (*MADE, BESIDE["beside others"], "import unittest"):
        kernel.run(cell)
    kernel.run("def tune(): args.lr = 2\nunittest.addModuleCleanup(tune)\ndel tune")
    kernel.run("unittest.doModuleCleanups()")
    assert kernel.namespace["args"].lr == 2
    errors = [f for f in kernel.capture("print(args)").findings if str(f.severity) == "error"]
    assert any(f"({kernel.cells[-1].label})" in f.message for f in errors), errors


def test_each_line_of_a_statement_that_asks(kernel: Kernel, server: Server) -> None:
    kernel.run(
        "import os\nclass A: n = 0\na, b = A(), A()\n"
        "def rank(): return int(os.environ.get('RANK', 0))\n"
        "def fill_a(): a.n = rank()\ndef fill_b(): b.n = rank()"
    )
    kernel.run("if True:\n    fill_a()\n    fill_b()")
    assert as_rank_1(kernel, server, "a.n, b.n") == "1 1\n"


def test_in_the_cell_that_made_it(kernel: Kernel, server: Server) -> None:
    kernel.run("\n".join((*MADE, WAYS["vars"])))
    assert as_rank_1(kernel, server, "args.rank, args.lr") == "1 2\n"


@pytest.mark.parametrize("way", REFUSED)
def test_refused(way: str, kernel: Kernel) -> None:
    cell, named = REFUSED[way]
    for each in (*MADE, cell):
        kernel.run(each)
    errors = [f for f in kernel.capture("print(args)").findings if str(f.severity) == "error"]
    assert errors and any(f"`{named}`" in f.message for f in errors)


def test_reading_and_training_are_no_changes(kernel: Kernel) -> None:
    kernel.run("\n".join(MADE))
    kernel.run("print(args)\nfirst = args.tags[:1]\ntext = repr(args)")
    program = kernel.capture("print(args)")
    assert "repr(args)" not in program.main and "print(args)\n\n" not in program.main


def test_what_is_not_compared_is_shown(kernel: Kernel) -> None:
    kernel.run("\n".join(MADE))
    kernel.run("parser = argparse.ArgumentParser()\nclass CFG:\n    rank = os.environ.get('RANK')")
    kernel.run("class Other:\n    lr = 1")
    shown = kernel.capture("print(args, parser, CFG, Other)").describe()
    part = shown.partition("Not compared with the notebook:\n")[2].partition("\n\n")[0]
    assert part.splitlines() == [
        "  args: SimpleNamespace, each rank makes its own, as it knows the world"
        " (os.environ['RANK'])",
        "  parser: ArgumentParser, which belongs to its process",
        "  CFG.rank: asks for the world or the machine",
    ]


ACCELERATE = (
    "import torch\nfrom accelerate import Accelerator\naccelerator = Accelerator(cpu=True)",
    "net = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)",
    "with torch.no_grad():\n    net.weight.fill_(1)",
    "net, optimizer = accelerator.prepare(net, optimizer)",
    "for p in net.parameters(): p.data.add_(1)\ngroup = optimizer.param_groups[0]",
    "group['lr'] = 0.01\nheld = {'net': net}\nfast = torch.optim.SGD(held['net'].parameters(), 1)",
)


@pytest.mark.slow
def test_prepared_models_have_their_weights(kernel: Kernel, place: Place) -> None:
    for cell in ACCELERATE:
        kernel.run(cell)
    text = "net.weight.tolist(), optimizer.param_groups[0]['lr'], net.bias.tolist()"
    shown = f"[{text}, held['net'] is net]"
    had = eval(shown, kernel.namespace)
    results = place.results(kernel.capture(f"import json\nprint('RESULT', json.dumps({shown}))"))
    assert results == had and had[0] == [[2, 2]] and had[1] == 0.01


@pytest.mark.slow
def test_settings_changed_unseen_are_refused_at_the_start(kernel: Kernel, place: Place) -> None:
    kernel.run("\n".join(ACCELERATE[:1]))
    kernel.observer = Observer(kernel.namespace, lambda *_: None)
    accelerator = kernel.namespace["accelerator"]
    accelerator.step_scheduler_with_optimizer = False
    done = place.start(kernel.capture("print(accelerator)"))
    assert (
        "`accelerator.step_scheduler_with_optimizer` is False in the notebook (Cell In[1], line 3)"
        " and True in the run" in done.stderr
    )


@pytest.mark.slow
def test_rates_of_the_world_are_no_settings(kernel: Kernel, place: Place) -> None:
    kernel.run("\n".join(ACCELERATE[:2]))
    kernel.run("import os\nworld = int(os.environ.get('SM_NUM_GPUS', 1))")
    kernel.run("optimizer = accelerator.prepare(torch.optim.SGD(net.parameters(), lr=0.1 * world))")
    program = kernel.capture("print('RESULT', optimizer.param_groups[0]['lr'])")
    assert place.results(dataclasses.replace(program, variables={"SM_NUM_GPUS": "4"})) == 0.4
