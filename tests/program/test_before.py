"""What an object was before it knew the world is the same in a rank that makes it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.program.test_equal import REFUSED, outcome

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

RANK = "int(os.environ.get('RANK', 0))"
_ADDS = "w.append(RANK)"
_CHANGES = "w = [1, 2]\ndef change(): w.append(7)"
WAYS = {
    "a list of a list": ("w = [0]\nw.append(0)\nw = list(w)", _ADDS),
    "sorted in place": ("w = [3, 1]", "w.sort()", "w = tuple(w)", "w = [*w, RANK]"),
    "a heap": ("import heapq\nw = [3, 1]", "heapq.heappush(w, 0)", "w = list(w)", _ADDS),
    "what was taken": ("w = [1, 2]", "x = w.pop()", _ADDS),
    "what was taken, of a list": ("w = [1, 2]", "x = w.pop()", "w = list(w)", _ADDS),
    "what was deleted": ("w = [1, 2]", "del w[0]", "w = list(w)", _ADDS),
    "another name": ("w = [1, 2]", "y = w", "y.append(5)", _ADDS),
    "another name, of a list": ("w = [1, 2]", "y = w", "y.append(5)", "w = list(w)", _ADDS),
    "a function": (_CHANGES, "change()", _ADDS),
    "a function, of a list": (_CHANGES, "change()", "w = list(w)", _ADDS),
    "a loop": ("w = [1]\nfor i in range(3): w.append(i)", "w = list(w)", _ADDS),
    "a branch": ("w = [1, 2]\nif len(w) > 1: w.insert(0, 9)", "w = [*w, RANK]"),
    "an item": ("w = {'a': 1, 'b': 2}", "old = w.popitem()", "w['r'] = RANK"),
    "an attribute": (
        "w = SimpleNamespace(a=1)\ndef tune(o): vars(o).update(a=2)",
        "tune(w)",
        "w.r = RANK",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_equal_or_refused(server: Server, way: str) -> None:
    """Each rank had made it without the change, in silence."""
    rank, run = outcome(server, [cell.replace("RANK", RANK) for cell in WAYS[way]], ["w"])
    assert rank and run in ("", rank)


_JOIN = "def join(o): o.r = RANK\nw = SimpleNamespace(x=0)"
HOLDERS = {
    "a list": "w = [1, w]",
    "an object": "w = SimpleNamespace(w=w)",
    "what a function gives": "w = list([w])",
    "a copy": "import copy\nw = copy.copy(w)",
    "one after another": "w = [1, w]\nw = (w, 2)",
    "two names at once": "v = SimpleNamespace(x=5)\nw, v = v, w\nw = (w, v)",
    "a loop": "for w in [[w]]: pass",
}


@pytest.mark.parametrize("fills", ["join(w)", "w.r = RANK"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_a_name_now_holds_what_it_was(server: Server, holder: str, fills: str) -> None:
    """What had filled the object under its name before was forgotten."""
    cells = [cell.replace("RANK", RANK) for cell in (_JOIN, fills, HOLDERS[holder])]
    rank, run = outcome(server, cells, ["w"])
    assert rank == run != ""


def test_a_function_reads_the_name_that_its_call_binds(server: Server) -> None:
    cells = [f"w = {RANK}\ndef f(): return [w]", "w = f()"]
    rank, run = outcome(server, cells, ["w"])
    assert rank == run != ""


def test_both_values_are_told(kernel: Kernel, server: Server) -> None:
    kernel.run("import os\nw = [1]\ny = w\ny.append(5)")
    log = str(kernel.folder / "log.txt")
    kernel.run(f"open({log!r}, 'w').close(); w.append({RANK})")  # which no fork tries
    output = server.output(kernel.capture("print(w)"))
    told = "`w[1]` is 5 in the notebook (before Cell In[2], line 1) and nothing in the run"
    assert REFUSED in output and told in output


@pytest.mark.parametrize(
    "change",
    ["args.name = 'x'\n    args.rank = RANK", "args.rank = RANK\n    args.name = 'x'"],
)
def test_what_the_statement_itself_sets_is_no_difference(
    kernel: Kernel, server: Server, change: str
) -> None:
    kernel.run("import json, os\nfrom argparse import Namespace\nargs = Namespace(lr=1)")
    kernel.run("args.lr = 2\nargs.device = 'cpu'")
    kernel.run(f"def setup(args):\n    {change.replace('RANK', RANK)}\nsetup(args)")
    kernel.run("args.name = 'y'")
    program = kernel.capture("print('RESULT', json.dumps(vars(args)))")
    assert server.results(program) == {"lr": 2, "device": "cpu", "name": "y", "rank": 0}


ASKS = """import os
calls = []
class Sampler:
    n = 8
    def __len__(self):
        calls.append("len")
        return self.n // int(os.environ.get("WORLD_SIZE", 1))
class Options(dict):
    def items(self):
        calls.append("items")
        return super().items()
    def __iter__(self):
        calls.append("iter")
        return super().__iter__()
    def __len__(self):
        calls.append("len")
        return super().__len__()
sampler, options = Sampler(), Options(a=1)"""


def test_looking_at_an_object_calls_no_method_of_its_own(kernel: Kernel) -> None:
    """`x` was made of the answer to a question that only the look had asked."""
    kernel.run(ASKS)
    kernel.run("x = [sampler.n, options['a']]")
    assert kernel.namespace["calls"] == []
    assert not kernel.capture("print(x[0], calls)").findings
