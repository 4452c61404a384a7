"""What of the notebook reaches ranks that stay: all that has changed, and parts that are shared."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from distrain_nb.program import Cell
from tests.program.conftest import kernel, no_others_memory, process_state
from tests.program.notebooks import Kernel
from tests.session.random_notebooks import Ranks

__all__ = ["kernel", "no_others_memory", "process_state"]

MODEL = (
    "import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(2, 1)\n"
    "opt = torch.optim.SGD(model.parameters(), lr=0.1)"
)
TRAIN = (
    "before = model.weight.detach().clone()\nmodel(torch.ones(1, 2)).sum().backward()\n"
    "opt.step()\nout = bool((before != model.weight).any())"
)


@dataclass
class Lab:
    """A notebook and one rank that stays; both are in this process."""

    kernel: Kernel
    ranks: Ranks

    def here(self, text: str) -> None:
        self.kernel.run(text)

    def there(self, text: str) -> object:
        """Return what a cell in the rank leaves as `out`, or the code by which it is refused."""
        cell = Cell(f"Cell In[{len(self.kernel.cells) + 1}]", f"%%distrain --in lab\n{text}")
        self.kernel.cells.append(cell)
        main = sys.modules["__main__"]
        try:
            return self.ranks.run(cell, self.kernel.notebook()) or vars(self.ranks.main)["out"]
        finally:
            sys.modules["__main__"] = main


@pytest.fixture
def lab(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr(sys, "path", [str(kernel.folder), *sys.path])
    monkeypatch.setattr(sys, "argv", ["kernel"])
    (tmp_path / "rank").mkdir()
    yield Lab(kernel, Ranks(tmp_path / "rank"))
    sys.modules.pop("beside", None)


@pytest.mark.parametrize(
    ("first", "change", "read", "expected"),
    [
        ("x = [*range(5000)]", "x[4000] = -1", "x[4000]", -1),
        ("x = [*range(5000)]", "x.append(7)", "x[-1]", 7),
        ("x = [{'id': i} for i in range(3000)]", "x[2999]['id'] = 'a'", "x[2999]['id']", "a"),
        ("import pathlib\nx = {pathlib.Path('a'): 1}", "x[pathlib.Path('a')] = 2", "[*x.values()]",
         [2]),
        ("import pathlib\nx = {pathlib.Path('a')}", "x.add(pathlib.Path('b'))", "len(x)", 2),
        ("import collections\nx = collections.OrderedDict(a=1, b=2)", "x.move_to_end('a')",
         "[*x]", ["b", "a"]),
        ("import collections\nx = collections.deque([1])", "x.append(2)", "[*x]", [1, 2]),
        ("a, b = [1] * 90, [2] * 90\nx = [a, b, a]", "x[2] = b", "x[2][0]", 2),
        ("import io\nx = io.StringIO('a')", "x.write('b')", "x.getvalue()", "b"),
        ("import torch\nx = torch.nn.Linear(1, 1)", "x.requires_grad_(False)",
         "x.weight.requires_grad", False),
        ("import torch\nx = torch.eye(2).to_sparse()", "x.mul_(3)", "x.to_dense()[0, 0].item()", 3),
        ("import torch\nx = torch.ones(1, requires_grad=True)", "(x * 3).backward()",
         "x.grad.item()", 3),
        ("import pandas as pd\nx = pd.Series([1, 2])", "x[0] = 5", "int(x[0])", 5),
        ("import pandas as pd\nx = pd.DataFrame({'a': [[1]], 'n': [0]})", "x.loc[0, 'n'] = 5",
         "int(x.n[0])", 5),
        ("import pandas as pd\nx = pd.DataFrame({'a': [1]})", "x['a'] = x['a'].astype('int8')",
         "str(x.a.dtype)", "int8"),
        ("class A:\n    x = 1", "A.x = 2", "A.x", 2),
    ],
)  # fmt: skip
def test_what_has_changed_in_place_is_sent(
    lab: Lab, first: str, change: str, read: str, expected: object
) -> None:
    lab.here(first)
    assert lab.there(f"out = {read}" if "grad.item" not in read else "out = x.grad") != expected
    lab.here(change)
    assert lab.there(f"out = {read}") == expected


@pytest.mark.parametrize(
    ("first", "look", "use", "expected"),
    [
        (MODEL, "out = model.training", TRAIN, True),
        (MODEL, "out = len(opt.param_groups)", TRAIN, True),
        ("import numpy as np\nx = np.zeros(9)\nv = x[:6]", "out = x.size",
         "v[0] = 5\nout = int(x[0])", 5),
        ("x = [1]\nv = {'x': x}", "out = len(x)", "v['x'].append(2)\nout = x", [1, 2]),
        ("class A:\n    n = 0\n    def add(self): self.n += 1\na = A()\nadd = a.add", "out = a.n",
         "add()\nout = a.n", 1),
    ],
    ids=["model", "optimizer", "view", "list", "method"],
)  # fmt: skip
def test_what_is_sent_shares_parts_with_what_was(
    lab: Lab, first: str, look: str, use: str, expected: object
) -> None:
    lab.here(first)
    lab.there(look)
    assert lab.there(use) == expected


def test_what_shares_parts_with_what_ranks_have_set_is_refused(lab: Lab) -> None:
    lab.here(MODEL)
    lab.there("with torch.no_grad(): out = model.weight.fill_(1)")
    assert lab.there(TRAIN) == "both-set"
    lab.here("cfg = {'a': 1}\nrun = [cfg, 2]")
    assert lab.there("cfg = {'a': 2}\nout = 0") == 0
    assert lab.there("out = run[0]['a']") == 1, "a plain value of its own"


@pytest.mark.parametrize(
    ("first", "change", "undo", "read"),
    [
        ("class A:\n    x = 1", "A.x = 2", "A.x = 1", "A.x"),
        ("class A:\n    x = []", "A.x.append(1)", "A.x.clear()", "A.x"),
        ("class A:\n    x = 1", "A.y = 2", "del A.y", "hasattr(A, 'y')"),
        ("def f(): pass", "f.x = 1", "del f.x", "hasattr(f, 'x')"),
        ("import beside", "beside.X = 2", "beside.X = 1", "beside.X"),
        ("import functools\nk = 1\n@functools.cache\ndef f(): return k", "f()\nk = 2",
         "f.cache_clear()\nk = 1", "f()"),
    ],
)  # fmt: skip
def test_what_is_again_as_its_text_gives_it_is_so_in_the_ranks(
    lab: Lab, first: str, change: str, undo: str, read: str
) -> None:
    (lab.kernel.folder / "beside.py").write_text("X = 1\n")
    lab.here(first)
    lab.here(f"{change}\nnow = {read}")
    assert lab.there(f"out = {read}") == lab.kernel.namespace["now"]
    lab.here(f"{undo}\nnow = {read}")
    assert lab.there(f"out = {read}") == lab.kernel.namespace["now"]


def test_an_attribute_is_sent_again_with_a_class_that_is_made_anew(lab: Lab) -> None:
    lab.here("class A: x = 1")
    lab.here("A.x = 2")
    assert lab.there("out = A.x") == 2
    lab.here("class A: x, y = 1, 1")
    assert lab.there("out = A.x") == 1
    lab.here("A.x = 2")
    assert lab.there("out = A.x") == 2


def test_an_object_that_gives_its_keys_as_attributes_ends_no_rank(lab: Lab) -> None:
    lab.here("class D(dict):\n    __getattr__ = dict.__getitem__\nd = D(lr=1)")
    assert lab.there("e = d\nout = e.lr") == 1


@pytest.mark.parametrize(
    "makes",
    ["class A:\n    def get(self): return n\na = A()", "import types\n"
     "a = types.SimpleNamespace(get=0)\na = [lambda: n]\nget = a[0]"],
    ids=["object", "list"],
)  # fmt: skip
def test_what_objects_of_the_ranks_read_is_sent(lab: Lab, makes: str) -> None:
    lab.here("n = 1")
    call = "a.get()" if "class" in makes else "a[0]()"
    assert lab.there(f"{makes}\nout = {call}") == 1
    lab.here("n = 2")
    assert lab.there(f"out = {call}") == 2


def test_who_has_an_edited_class_itself_has_all_that_is_new(lab: Lab) -> None:
    text = "class A:\n    x = {0}\n    @property\n    def p(self): return {0}\n"
    lab.here(text.format(1))
    assert lab.there("B = A\nout = (B.x, B().p)") == (1, 1)
    lab.here(text.format(2) + "    def new(self): return 2")
    assert lab.there("A\nout = (B.x, B().p, B().new())") == (2, 2, 2)
