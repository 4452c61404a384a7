"""What was made of a name that knows the world, also through the user's code, is made again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from distrain_nb.program import Cell, capture

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel

WORLD = "import os, functools\nWORLD = int(os.environ.get('WORLD_SIZE', 1))"
THROUGH = {
    "a function": ("def scale(lr): return lr * WORLD", "x = scale(0.1)"),
    "a function that another calls": (
        "def scale(lr): return lr * WORLD\ndef rate(): return scale(0.1)",
        "x = rate()",
    ),
    "a partial function": ("def scale(lr): return lr * WORLD", "x = functools.partial(scale, 1)()"),
    "a decorated function": (
        "def plain(f):\n    @functools.wraps(f)\n    def call(*args): return f(*args)\n"
        "    return call\n@plain\ndef scale(lr): return lr * WORLD",
        "x = scale(0.1)",
    ),
    "a constructor": (
        "class Share:\n    def __init__(self, items): self._take(items)\n"
        "    def _take(self, items): self.items = items[::WORLD]",
        "x = Share([1, 2])",
    ),
    "a base's constructor": (
        "class Base:\n    def __init__(self): self.items = [WORLD]\nclass Share(Base): pass",
        "x = Share()",
    ),
    "a method": (
        "class Rate:\n    def of(self): return 0.1 * WORLD\nrate = Rate()",
        "x = rate.of()",
    ),
    "a cached property": (
        "class Rate:\n    @functools.cached_property\n    def now(self): return 0.1 * WORLD\n"
        "rate = Rate()",
        "x = rate.now",
    ),
    "an object of a package": ("from mpi4py import MPI", "x = MPI.COMM_WORLD.Get_rank()"),
    "a function that asks such an object": (
        "from mpi4py import MPI\ndef rank(): return MPI.COMM_WORLD.Get_rank()",
        "x = rank()",
    ),
}


@pytest.mark.parametrize("cells", THROUGH.values(), ids=THROUGH)
def test_made_again_through_the_users_code(kernel: Kernel, cells: tuple[str, str]) -> None:
    if "mpi4py" in cells[0]:
        pytest.importorskip("mpi4py.MPI")
    for cell in (WORLD, *cells):
        kernel.run(cell)
    program = kernel.capture("print(x)")
    (told,) = (f.message for f in program.findings if f.message.startswith("`x` "))
    assert told.startswith("`x` depends on the world (")
    assert cells[1] in program.main


NOT_THROUGH = {
    "a function that is only given": (
        "def log(): print(WORLD)\nclass Loop:\n    def __init__(self, f): self.f = f",
        "x = Loop(log)",
    ),
    "a method that was not called": (
        "class Net:\n    lr = 1\n    def log(self): print(WORLD)",
        "x = Net()",
    ),
    "an attribute of the same name": (
        "class Net:\n    def __init__(self): self.WORLD = 3",
        "x = Net()",
    ),
}


@pytest.mark.parametrize("cells", NOT_THROUGH.values(), ids=NOT_THROUGH)
def test_captured_where_no_name_leads_to_the_world(kernel: Kernel, cells: tuple[str, str]) -> None:
    for cell in (WORLD, *cells):
        kernel.run(cell)
    program = kernel.capture("print(x)")
    assert "x" in {value.name for value in program.values}


def test_without_an_observer_the_text_counts(kernel: Kernel) -> None:
    kernel.observer.unseen = frozenset({"Cell In[1]", "Cell In[2]", "Cell In[3]"})
    kernel.run("import os\nimport torch.distributed as dist\ndef rank(): return os.getenv('RANK')")
    kernel.run("a = rank() or 0\nb = dist.is_initialized()")
    kernel.run("c = int('1')")
    program = kernel.capture("print(a, b, c)")
    assert "a = rank() or 0" in program.main
    assert "b = dist.is_initialized()" in program.main
    assert "c = 1" in program.main
    (unseen,) = (f.message for f in program.findings if f.code == "capture.unseen")
    assert unseen.endswith("run its cell again: `c` (Cell In[3], line 1)")


def test_of_a_script_it_is_said_that_nobody_saw_it(kernel: Kernel) -> None:
    kernel.run("import os\nrank = os.environ.get('RANK', '0')\nrows = len('abc')\nlr = 0.1")
    notebook = replace(kernel.notebook(), observer=None)
    program = capture(Cell("Cell In[2]", "print(rank, rows, lr)"), 1, notebook)
    assert "rank = os.environ.get('RANK', '0')" in program.main
    (unseen,) = (f for f in program.findings if f.code == "capture.unseen")
    assert unseen.message.startswith("a script isn't watched")
    assert unseen.message.endswith(": `rows` (Cell In[1], line 3)")


def test_what_the_user_sets_by_a_views_name_is_made_again(kernel: Kernel) -> None:
    kernel.run("import os, argparse\nargs = argparse.Namespace(r=os.environ.get('RANK'), lr=1)")
    kernel.run("vars(args).update(lr=2)\nfor k in ('a', 'b'): setattr(args, k, 3)")
    program = kernel.capture("print(args)")
    assert "vars(args).update(lr=2)" in program.main
    assert "setattr(args, k, 3)" in program.main


@pytest.fixture(autouse=True)
def _no_world(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
