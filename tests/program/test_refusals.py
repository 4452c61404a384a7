"""What can't travel is named, with the place that uses it and what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from distrain_nb import api

if TYPE_CHECKING:
    from distrain_nb.findings import Finding
    from tests.program.notebooks import Kernel


def only_error(kernel: Kernel, cell: str) -> Finding:
    (finding,) = [f for f in kernel.capture(cell).findings if str(f.severity) == "error"]
    return finding


@pytest.mark.parametrize(
    "cell",
    [
        "def f(): return v\nf()",
        "f = lambda: v\nprint(f())",
        "print((lambda: v)())",
        "sorted([2, 1], key=lambda n: (v, n))",
        "class A:\n    def get(self): return v\nA().get()",
    ],
)
def test_a_function_that_the_cell_calls_needs_what_it_reads(kernel: Kernel, cell: str) -> None:
    """It was said that the cell sets its own, and each rank ended with a NameError."""
    kernel.run("v = (i for i in 'ab')")
    assert "`v` (generator) is a generator" in only_error(kernel, cell).message
    findings = kernel.capture(f"v = 1\n{cell}").findings
    assert not [f for f in findings if str(f.severity) == "error"]


@pytest.mark.parametrize(
    ("setup", "expression", "path", "advice"),
    [
        ("import os; v = open(os.devnull)", "v", "`v` (TextIOWrapper)", "open it in the cell"),
        ("import os; v = open(os.devnull, 'rb')", "v", "an open file", "capture its path"),
        ("v = (i for i in 'ab')", "v", "is a generator", "make a list"),
        ("async def f(): ...\nv = f()\nv.close()", "v", "is a coroutine", "create it in the cell"),
        ("import socket; v = socket.socket()", "v", "'socket' object", "create it in the cell"),
        ("import threading; v = [threading.Lock()]", "v", "`v[0]` (lock)", "create it in the cell"),
        ("import threading; v = threading.Thread()", "v", "`v` (Thread)", "create it in the cell"),
        ("import queue; v = queue.Queue()", "v", "`v` (Queue)", "create it in the cell"),
        (
            "import sqlite3; v = sqlite3.connect(':memory:')",
            "v",
            "sqlite3.Connection",
            "create it in the cell",
        ),
        (
            "import weakref; x = {*()}; v = weakref.finalize(x, print)",
            "v",
            "`v` (finalize) waits for the end of an object in one process",
            "create it in the cell",
        ),
        ("import ipywidgets; v = ipywidgets.IntSlider()", "v", "a widget", "capture its .value"),
        (
            "from concurrent.futures import ThreadPoolExecutor as E; v = (E(),)",
            "v",
            "`v[0]` (ThreadPoolExecutor) in `v`",
            "create it in the cell",
        ),
        (
            "import types; v = types.MappingProxyType({})",
            "v",
            "`v` (mappingproxy) is not picklable",
            "create it in the",
        ),
    ],
)
def test_refused(kernel: Kernel, setup: str, expression: str, path: str, advice: str) -> None:
    kernel.run(setup)
    finding = only_error(kernel, f"x = 1\nprint({expression})")
    kernel.namespace.clear()
    assert finding.code == "capture.not-portable"
    assert finding.where == "Cell In[2], line 3"
    assert path in finding.message
    assert advice in finding.message


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("{'a': 1, 'lock': lock}", "`v['lock']` (lock) in `v`"),
        ("[1, (2, lock)]", "`v[1][1]` (lock) in `v`"),
        ("Trainer(lock)", "`v.parts['x']` (lock) in `v`"),
        ("partial(print, lock)", "`v.args[0]` (lock) in `v`"),
        ("{Trainer(1): lock}", "`v[<Trainer>]` (lock) in `v`"),
    ],
)
def test_the_path_inside_a_container_is_named(kernel: Kernel, value: str, path: str) -> None:
    kernel.run("import threading\nfrom functools import partial\nlock = threading.Lock()")
    kernel.run("class Trainer:\n    def __init__(self, x): self.parts = {'x': x}")
    kernel.run(f"v = {value}")
    assert path in only_error(kernel, "print(v)").message


def test_an_optimizer_on_another_device_is_made_in_the_cell(kernel: Kernel) -> None:
    """`meta` counts as the host's, so the parameter says that it is elsewhere."""
    kernel.run(
        "import torch\nclass There(torch.nn.Parameter):\n    device = torch.device('cuda:0')"
    )
    kernel.run("net = torch.nn.Linear(2, 2)\nnet.weight = There(net.weight.data)")
    kernel.run("opt = torch.optim.Adam(net.parameters())\nboth = {'lr': 0.1, 'opt': opt}")
    message = only_error(kernel, "print(both)").message
    assert "`both['opt']` (Adam) in `both` is an optimizer of parameters on cuda:0" in message
    assert "create it in the cell" in message and "state_dict()" in message


def test_a_module_inside_a_model_is_named_as_one_writes_it(kernel: Kernel) -> None:
    kernel.run("import torch, threading\nmodel = torch.nn.Sequential(torch.nn.Linear(2, 2))")
    kernel.run("model[0].lock = threading.Lock()")
    assert "`model.0.lock` (lock) in `model`" in only_error(kernel, "model").message


def test_used_in_a_definition_that_comes_along(kernel: Kernel) -> None:
    kernel.run("import threading\nlocks = [threading.Lock()]")
    kernel.run("\ndef save():\n    with locks[0]: pass")
    assert only_error(kernel, "save()").where == "Cell In[2], line 3"


def test_what_the_cell_sets_itself_need_not_travel(kernel: Kernel) -> None:
    kernel.run("import threading\nlock = threading.Lock()")
    program = kernel.capture("for lock in [1]:\n    pass\nprint(lock)")
    assert [f.code for f in program.findings] == ["capture.not-carried"]
    assert "lock" not in [value.name for value in program.values]


def test_undefined_names(kernel: Kernel) -> None:
    kernel.run("model = 1")
    program = kernel.capture("modle\n\ndef f():\n    return nowhere\nprnt(1)")
    assert [(f.code, str(f.severity), f.where) for f in program.findings] == [
        ("capture.undefined-name", "error", "Cell In[2], line 2"),
        ("capture.undefined-name", "error", "Cell In[2], line 6"),
        ("capture.undefined-name", "warning", "Cell In[2], line 5"),
    ]
    assert "did you mean `model`?" in program.findings[0].message
    assert "did you mean `print`?" in program.findings[1].message


@pytest.mark.parametrize(
    "cell",
    [
        "model = opt = 1\ntrain()",  # read by a function of the notebook
        "def setup():\n    global rank\n    rank = 1\nsetup()\nprint(rank)",
        "begin()\nprint(world, show())",  # set by a function of the notebook
        "from schedules_of_mine import *\nprint(cosine)",
        "exec('size = 1')\nprint(size)",
        "globals()['size'] = 1\nprint(size)\nglobals().update(depth=2)\nprint(depth)",
        "from __future__ import annotations\n\ndef f():\n    class A: pass\n"
        "    def g(a: A, b: NotYet) -> A: return a\n    return g\nf()",
        "if __name__ == '__main__':\n    def helper(): return later\n    later = 1\n    helper()",
    ],
)
def test_what_the_cell_defines_before_the_call_is_not_undefined(kernel: Kernel, cell: str) -> None:
    kernel.run("def train():\n    return model + opt")
    kernel.run("def begin():\n    global world\n    world = 2\ndef show(): return world")
    codes = {f.code for f in kernel.capture(cell).findings}
    assert codes <= {"capture.unknown-module"}


@pytest.mark.parametrize("name", ["In", "Out", "get_ipython"])
def test_what_belongs_to_the_prompt(kernel: Kernel, name: str) -> None:
    kernel.namespace[name] = {}
    assert f"`{name}` belongs to the notebook" in only_error(kernel, f"print({name})").message


@pytest.mark.parametrize(
    ("cell", "line", "text"),
    [("x = (1,", 2, "'(' was never closed"), ("x = 1\nreturn x", 3, "'return' outside function")],
)
def test_syntax_errors(kernel: Kernel, cell: str, line: int, text: str) -> None:
    finding = only_error(kernel, cell)
    assert finding.code == "capture.syntax-error"
    assert finding.where == f"Cell In[1], line {line}"
    assert text in finding.message


def test_nothing_more_is_said_of_a_cell_that_python_refuses(home: object) -> None:
    found = api.check("x = (1,\nweights = x", result="weights", args="--lr 3", ranks_per_replica=2)
    assert [finding.code for finding in found] == ["capture.syntax-error"]


def test_relative_import(kernel: Kernel) -> None:
    finding = only_error(kernel, "x = 1\nfrom .tools import f")
    assert (finding.code, finding.where) == ("capture.relative-import", "Cell In[1], line 3")


def test_too_large_names_the_largest_and_the_way_out(kernel: Kernel) -> None:
    kernel.run("import numpy as np\nX = np.zeros(300_000)\ny = list(range(5))\nz = np.ones(1000)")
    finding = only_error_of(kernel.capture("X, y, z", limit=2**21))
    assert finding.code == "capture.too-large"
    assert "2.297 MiB, more than the limit of 2 MiB" in finding.message
    assert "`X` (ndarray, 2.289 MiB), `z` (ndarray, " in finding.message
    assert "--data" in finding.message
    assert "%distrain config carry_limit=MIB" in finding.message


def test_a_huge_list_is_not_pickled_to_its_end(kernel: Kernel) -> None:
    kernel.run("xs = list(range(10**6))")
    finding = only_error_of(kernel.capture("xs", limit=2**20))
    assert "`xs` (list, more than 1" in finding.message


def only_error_of(program: object) -> Finding:
    (finding,) = program.findings  # type: ignore[attr-defined]
    return finding  # type: ignore[no-any-return]


def test_results_must_be_set(kernel: Kernel) -> None:
    kernel.run("seen = 1")
    assert not kernel.capture("history = []", results=["history", "seen"]).findings
    finding = only_error_of(kernel.capture("history = []", results=["histroy"]))
    assert finding.code == "capture.unknown-result"
    assert "`histroy`" in finding.message
    assert "history" in finding.message


def test_options_that_have_no_effect(kernel: Kernel) -> None:
    kernel.run("lr = 1")
    kernel.given = {"lr": 2, "unused": 3}
    program = kernel.capture("lr = 0.1")
    assert [(f.code, f.where) for f in program.findings] == [
        ("capture.unused-name", "lr"),
        ("capture.unused-name", "unused"),
    ]


@pytest.mark.parametrize(
    ("cell", "repaired"),
    [
        ("import os\ndef train(n=1):\n    return n", "train()"),
        ("N = 3\ndef fit(n):\n    return n", ""),
        ("def train():\n    return 1\ntrain()", None),
        ("@run\ndef train():\n    return 1", None),
        ("total = 3", None),
    ],
)
def test_a_cell_that_calls_nothing_is_named(
    kernel: Kernel, cell: str, repaired: str | None
) -> None:
    kernel.run("def run(function): return function()")
    found = [f for f in kernel.capture(cell).findings if f.code == "capture.nothing-called"]
    assert bool(found) is (repaired is not None)
    if repaired:
        assert found[0].fixes[0].apply(f"%%distrain\n{cell}").endswith(f"\n{repaired}\n")


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ("v = torch.empty(2, device='cuda')", "is a tensor on cuda:0"),
        ("v = torch.nn.Module(); v.w = torch.nn.Buffer(torch.empty(2, device='cuda'))", "a model"),
    ],
)
def test_what_lies_on_a_gpu(kernel: Kernel, setup: str, message: str) -> None:
    kernel.run("import torch\nfrom torch._subclasses.fake_tensor import FakeTensorMode")
    kernel.run(f"with FakeTensorMode():  # tensors on devices that are not there\n    {setup}")
    finding = only_error(kernel, "print(v)")
    assert message in finding.message
    assert "cpu()" in finding.message
