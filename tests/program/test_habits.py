"""Habits of notebooks: ranks have what the kernel has, or are refused, or a warning says what is
lost."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

_TORCH = "import torch, types\nfrom torch import nn"
_NET = f"{_TORCH}\nnet = nn.Linear(2, 1)"
_BACKWARD = "net(torch.ones(1, 2)).sum().backward()"
_STAGE = "import os\nos.environ['STAGE'] = 'a'"
_CHANGED = "os.environ['STAGE'] = 'b'"
_CACHED = "import functools\nn = [0]\n@functools.cache\ndef f(x):\n    n[0] += 1\n    return n[0]"
_RUN = "import os\nclass R: pass\nr = R()"
_RANK = "r.rank = int(os.environ.get('RANK', 0))"
_SEED = (
    "import random\ndef seed_all(s):\n    print(s)\n    random.seed(s)\nseed_all(3)\n"
    "random.random()"
)

# The cells, of which the last is what the training cell shows.
EQUAL: dict[str, tuple[str, ...]] = {
    "a variable that has changed": (_STAGE, "s = os.environ.get('STAGE')", _CHANGED, "s"),
    "by a function": (
        *(_STAGE, "def env(k): return os.environ.get(k)\ns = env('STAGE')", _CHANGED, "s"),
    ),
    "in a class": (_STAGE, "class C:\n    s = os.environ.get('STAGE')", _CHANGED, "C.s"),
    "as a default": (_STAGE, "def f(x=os.environ.get('STAGE')): return x", _CHANGED, "f()"),
    "a variable that is gone": (
        *(_STAGE, "s = os.environ.get('STAGE')", "del os.environ['STAGE']", "s"),
    ),
    "a variable that its statement changes": (
        "import os\nos.environ['N'] = '1'",
        "os.environ['N'] = n = str(int(os.environ['N']) + 1)",
        "n",
    ),
    "gradients": (_NET, _BACKWARD, "net.weight.grad.tolist()"),
    "a gradient that another name has": (
        f"{_NET}\nnet.weight.grad = g = torch.ones(1, 2)",
        "net.weight.grad is g",
    ),
    "a hook of a tensor": (
        f"{_NET}\nnet.weight.register_hook(lambda g: g * 0)",
        f"({_BACKWARD}, net.weight.grad.tolist())[1]",
    ),
    "a parametrized module": (
        f"{_TORCH}\nnet = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))",
        "net.weight.tolist()",
    ),
    "a method that an object was given": (
        f"{_NET}\ndef forward(self, x): return x * 0",
        "net.forward = types.MethodType(forward, net)",
        "net(torch.ones(2)).tolist(), net.forward.__self__ is net",
    ),
    "a method of a list that its name has left": (
        "u = [1]\nadd = u.append\nboth = [u]\nu = [2]",
        "(add(3), u, both)",
    ),
    "a method that another one calls in its place": (
        f"{_NET}\nold = net.forward\nnet.forward = lambda x: old(x) * 0",
        "net(torch.ones(2)).tolist(), old.__self__ is net, old.__func__ is nn.Linear.forward",
    ),
    "a small view of a tensor": (
        "import torch\na = torch.zeros(100)\nb = a[:2]",
        "b.add_(1), a[:3].tolist()",
    ),
    "views of an array": (
        "import numpy as np\nb = (a := np.zeros((9, 9)))[1]\nc = np.asfortranarray(a)[::2].T",
        "(b.__iadd__(1), a[1, 0], np.shares_memory(a, c), c.strides)",
    ),
    "weights that share a part of a buffer": (
        f"{_TORCH}\nbuffer, a, b = torch.zeros(99), nn.Linear(2, 1), nn.Linear(2, 1)\n"
        "a.weight.data = buffer[5:7].view(1, 2)\nb.weight.data = a.weight.data\n"
        "i, h = buffer.view(torch.int32)[5:6], buffer[50:52].half()\ndel buffer",
        "(a.weight.data.fill_(1), b.weight.tolist(), i.item(), h.tolist())",
    ),
    "windows of an array": (
        "import numpy as np\na = np.arange(99.0)\nb = [a[i:i + 3] for i in (0, 2, 50)]\n"
        "c, d = a[30:40][::-1], a[32:36]\ndel a",
        "(b[0].__setitem__(2, 9), c.__setitem__(5, 8), b, d.tolist())",
    ),
    "columns of an array": (
        "import numpy as np\na = np.arange(400.0).reshape(100, 4)\nb, c = a[:, 0], a[:, 1]\ndel a",
        "(b.__setitem__(0, 9), b.sum(), c.sum())",
    ),
    "an array that allows no change": (
        "import numpy as np\na = np.broadcast_to(np.array([1]), (3,))",
        "a.strides, a.flags.writeable, a.tolist()",
    ),
    "switches of PyTorch": (
        "import torch\nfrom torch.distributions import Distribution",
        "torch.backends.opt_einsum.enabled = False\ntorch.backends.mha.set_fastpath_enabled(False)"
        "\ntorch.backends.cudnn.allow_tf32 = False\ntorch.jit.enable_onednn_fusion(True)\n"
        "Distribution.set_default_validate_args(False)",
        "torch.backends.opt_einsum.enabled, torch.backends.mha.get_fastpath_enabled(), "
        "torch.backends.cudnn.allow_tf32, torch.jit.onednn_fusion_enabled(), "
        "Distribution._validate_args",
    ),
    "a compiled function that was used": (
        "import torch\n@torch.compile(backend='eager')\ndef f(x): return x * 2",
        "f(torch.ones(1))",
        "f(torch.ones(2)).tolist()",
    ),
    "a weak reference": (
        "import weakref\nclass A: pass\na, k = A(), A()\nr, lost = weakref.ref(a), weakref.ref(k)",
        "r() is a, lost() is None",
    ),
    "weak collections": (
        "import weakref\nclass A:\n    every = weakref.WeakSet()\na = A()\nA.every.add(a)\n"
        "d = weakref.WeakKeyDictionary({a: 1})\nv = weakref.WeakValueDictionary(k=a)",
        "a in A.every, d[a], v['k'] is a",
    ),
    "a descriptor that keeps values by their objects": (
        "import weakref\nclass D:\n    def __init__(self): self.of = weakref.WeakKeyDictionary()\n"
        "    def __get__(self, obj, cls=None): return self.of.get(obj)\n"
        "    def __set__(self, obj, value): self.of[obj] = value\nclass A: x = D()",
        "a = A()\na.x = 3",
        "a.x",
    ),
    "a cache of numbers": (_CACHED, "f(1), f(2)", "f(2), f(3)"),
    "a method by two underscores": (
        "class A:\n    def __str__(self): return 'old'",
        "A.__len__ = lambda self: 5\ndel A.__str__",
        "len(A()), '__str__' in vars(A)",
    ),
    "a function's text": ("def f(): 'old'", "f.__doc__ = 'new'", "f.__doc__"),
    "a generator that a function seeds": (_SEED, "random.random()"),
    "a context that is open": (
        "import torch\nc = torch.autocast('cpu', dtype=torch.bfloat16)\nc.__enter__()",
        "(torch.ones(2, 2) @ torch.ones(2, 2)).dtype",
    ),
    "kernels that a function turns off": (
        "import torch\ndef off(k):\n    print(k)\n    k.enable_flash_sdp(False)",
        "off(torch.backends.cuda)\ntorch.backends.mkldnn.set_flags(False)",
        "torch.backends.cuda.flash_sdp_enabled(), torch.backends.mkldnn.enabled",
    ),
    "a class that counts as a number": (
        "import numbers\nclass M: pass",
        "numbers.Number.register(M)",
        "isinstance(M(), numbers.Number)",
    ),
    "an object that decorates a function, and counts": (
        "class Count:\n    def __init__(self, f): self.f, self.n = f, 0\n"
        "    def __call__(self):\n        self.n += 1\n        return self.f()",
        "@Count\ndef g(): return 1",
        "g()",
        "g(), g.n",
    ),
    "a time that an object keeps": (f"{_RUN}\nr.t = __import__('time').time()", _RANK, "r.t"),
    "a run's id": (
        "import os, uuid\ncfg = {'id': uuid.uuid4().hex, 'k': [1]}",
        "cfg['rank'] = int(os.environ.get('RANK', 0))",
        "cfg['id'], cfg['k']",
    ),
}
REFUSED: dict[str, tuple[str, ...]] = {
    "a variable beside the rank": (
        *(_STAGE, "c = os.environ['STAGE'], os.environ.get('RANK')", _CHANGED, "c"),
        "`c` is made again with the present os.environ['STAGE'], which has changed since: run",
    ),
    "a module that the notebook has made": (
        "import sys, types\nsys.modules['made_here'] = types.ModuleType('made_here')",
        "import made_here",
        "made_here",
        "`made_here` was made in the notebook and has no file that a run can import: write",
    ),
    "a dataclass of a variable": (
        f"{_STAGE}\nfrom dataclasses import dataclass",
        "@dataclass\nclass C:\n    s: str = os.environ.get('STAGE')",
        _CHANGED,
        "C().s",
        "`C.s` is 'a' in the notebook (Cell In[2], line 1) and None in the run",
    ),
    "an array that was drawn": (
        *(f"{_RUN}\nr.w = __import__('numpy').random.rand(3)", _RANK, "r.w"),
        "`r.w` is ndarray of float64, (3,): ",
    ),
    "a forked process and a pipe": (
        "import os\nr, w = os.pipe()\npid = os.fork()\n"
        "if not pid:\n    os.write(w, os.environ.get('RANK', '0').encode())\n    os._exit(0)",
        "os.waitpid(pid, 0)\nv = int(os.read(r, 9))",
        "v",
        "asked by a thread or process that went on beside other statements",
    ),
    "a process and shared memory": (
        "import os, multiprocessing\nmp = multiprocessing.get_context('fork')\n"
        "x = mp.Value('i', 0)\ndef ask(x): x.value = int(os.environ.get('RANK', 0))\n"
        "p = mp.Process(target=ask, args=(x,))\np.start()\np.join()",
        "v = x.value",
        "v",
        "asked by a thread or process that went on beside other statements",
    ),
}
# What the warning says of a part that pickle drops.
LOST: dict[str, tuple[str, str, str]] = {
    "__getstate__": (
        "class A:\n    def __getstate__(self): return {}\na = [A()]\na[0].x = 1",
        "a",
        "`a[0].x` is 1 in the notebook but nothing in the run",
    ),
    "__reduce__": (
        "class A:\n    n = 0\n    def __reduce__(self): return A, ()\na = A()\na.n = 5",
        "a",
        "`a.n` is 5 in the notebook but nothing in the run",
    ),
    "a graph": (
        "import torch\nx = torch.ones(2, requires_grad=True)\ny = x * 2",
        "y",
        "`y` is tensor of torch.float32, (2,), with the graph that computed it",
    ),
    "an attribute of a frame": (
        "import pandas as pd\nd = pd.DataFrame({'a': [1]})\nobject.__setattr__(d, 'src', 'x')",
        "d",
        "`d.src` is 'x' in the notebook but nothing in the run",
    ),
}
KEPT = {
    "a schedule": f"{_NET}\na = torch.optim.SGD(net.parameters())\n"
    "s = torch.optim.lr_scheduler.StepLR(a, 1)",
    "a frame's column": "import pandas as pd\nd = pd.DataFrame({'b': [1]})\na = d['b']",
    "a pruned model": f"{_NET}\nimport torch.nn.utils.prune as p\na = net\n"
    "p.l1_unstructured(net, 'weight', 1)",
    "an error": "class E(Exception): pass\ntry: raise E('x')\nexcept E as e: a = e",
}


def shown_by(kernel: Kernel, server: Server, cells: tuple[str, ...], shown: str) -> tuple[str, str]:
    """What the kernel shows, and what the run, with what is said of it."""
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in cells:
            kernel.run(cell)
    program = kernel.capture(f"print('SHOWN', {shown})")
    said = "\n".join(f.message for f in program.findings if str(f.severity) != "info")
    if not any(str(f.severity) == "error" for f in program.findings):
        said += server.output(program)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        kernel.run(f"print('SHOWN', {shown})")
    return out.getvalue(), said


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STAGE", "N"):
        monkeypatch.setenv(name, "")  # so that it's as before in the end


@pytest.mark.parametrize("name", EQUAL)
def test_equal(kernel: Kernel, server: Server, name: str) -> None:
    *cells, shown = EQUAL[name]
    has, run = shown_by(kernel, server, tuple(cells), shown)
    assert run == has


@pytest.mark.parametrize("name", REFUSED)
def test_refused(kernel: Kernel, server: Server, name: str) -> None:
    *cells, shown, message = REFUSED[name]
    _, said = shown_by(kernel, server, tuple(cells), shown)
    assert message in said
    assert "SHOWN" not in said


@pytest.mark.parametrize("name", LOST)
def test_what_pickle_drops_is_said(kernel: Kernel, name: str) -> None:
    cell, shown, message = LOST[name]
    kernel.run(cell)
    (finding,) = kernel.capture(f"print({shown})").findings
    assert (finding.code, str(finding.severity)) == ("capture.lost-part", "warning")
    assert finding.message.startswith(message)


@pytest.mark.parametrize("name", KEPT)
def test_what_packages_drop_is_no_alarm(kernel: Kernel, name: str) -> None:
    kernel.run(KEPT[name])
    assert not kernel.capture("print(a)").findings


def test_state_of_a_module_that_is_no_text(
    kernel: Kernel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{_CACHED}\nimport os\nSTAGE = os.environ.get('STAGE')"
    (kernel.folder / "habits_module.py").write_text(text)
    monkeypatch.syspath_prepend(kernel.folder)
    cells = (_STAGE, "import habits_module as m\nm.f(1), m.f(2)", _CHANGED)
    has, run = shown_by(kernel, server, cells, "m.f(2), m.STAGE")
    assert run == has


def test_what_a_module_has_cached_of_the_rank_is_each_ranks_own(
    kernel: Kernel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import functools, os\ndef get(): return os.environ.get('RANK')\n"
    (kernel.folder / "cached_rank.py").write_text(
        f"{text}@functools.cache\ndef rank(): return get()\n"
    )
    monkeypatch.syspath_prepend(kernel.folder)
    kernel.run("import cached_rank as m")
    kernel.run("m.rank()")
    program = replace(kernel.capture("print('SHOWN', m.rank())"), variables={"RANK": "1"})
    assert server.output(program) == "SHOWN 1\n"


@pytest.mark.parametrize(
    "call", ["{'k': r}['k']()", "globals()['r']()", "list(map(lambda f: f(), L))", "p()"]
)
def test_what_a_function_has_cached_of_the_rank_is_each_ranks_own(
    kernel: Kernel, server: Server, call: str
) -> None:
    kernel.run("import functools, os\ndef get(): return os.environ.get('RANK')")
    kernel.run("@functools.cache\ndef r(): return get()\nL, p = [r], functools.partial(r)")
    kernel.run(call)
    program = replace(kernel.capture("print('SHOWN', r())"), variables={"RANK": "1"})
    assert server.output(program) == "SHOWN 1\n"
