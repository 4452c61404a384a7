"""Awkward notebooks: each cell of the notebook really runs, then the program of the last one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.program import Cell

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server


@dataclass(frozen=True)
class Case:
    """Cells that ran, the cell to capture (which sets `out`), and what `out` must be."""

    name: str
    cells: tuple[str, ...]
    cell: str
    out: Any


CASES = [
    Case(
        "redefinition in a later cell",
        ("def f(): return 1", "def g(): return f()", "def f(): return 2"),
        "out = g()",
        2,
    ),
    Case("rebinding before use", ("x = [1, 2]",), "x = x + [3]\nout = x", [1, 2, 3]),
    Case(
        "a local name shadows the notebook's",
        ("x = 1", "def f(x): return x + 1"),
        "out = [f(5), (lambda x: x)(7), [x for x in (8,)][0]]",
        [6, 7, 8],
    ),
    Case(
        "the cell shadows the notebook's function",
        ("def f(): return 1",),
        "def f(): return 'mine'\nout = f()",
        "mine",
    ),
    Case(
        "recursion between functions of two cells",
        (
            "def even(n): return n == 0 or odd(n - 1)",
            "def odd(n): return n != 0 and even(n - 1)",
        ),
        "out = [even(4), odd(4)]",
        [True, False],
    ),
    Case(
        "closure made by a factory",
        (
            "def adder(n):\n    def add(x):\n        return x + n\n    return add",
            "three = 3\nadd3 = adder(three)",
        ),
        "out = add3(4)",
        7,
    ),
    Case(
        "dataclass with a default from the notebook",
        (
            "from dataclasses import dataclass, field\nlr = 0.5",
            "@dataclass\nclass Conf:\n    lr: float = lr\n"
            "    xs: list = field(default_factory=list)",
            "conf = Conf(xs=[1])",
        ),
        "out = [conf.lr, conf.xs, Conf().xs, isinstance(conf, Conf)]",
        [0.5, [1], [], True],
    ),
    Case(
        "inheritance across cells, with super()",
        (
            "class Base:\n    def name(self): return 'base'",
            "class Mid(Base):\n    pass",
            "class Leaf(Mid):\n    def name(self): return 'leaf of ' + super().name()",
        ),
        "out = Leaf().name()",
        "leaf of base",
    ),
    Case(
        "a class that replaces itself",
        (
            "class Net:\n    def f(self): return 1",
            "class Net(Net):\n    def f(self): return super().f() + 1",
        ),
        "out = Net().f()",
        2,
    ),
    Case(
        "functions and classes made inside with and for",
        (
            "import contextlib\nclass Net:\n    def name(self): return 'old'",
            "with contextlib.nullcontext() as scope:\n"
            "    @contextlib.contextmanager\n    def plus(x): yield x + 1\n"
            "    class Net:\n        def name(self): return 'new'\n"
            "    twice = lambda x: 2 * x",
            "for n in (1, 2):\n    def last(n=n): return n\n"
            "    if n:\n        def deep(): return n",
        ),
        "with plus(1) as two:\n    out = [two, Net().name(), twice(4), last(), deep()]",
        [2, "new", 8, 2, 2],
    ),
    Case(
        "the cell sets what a function of the notebook reads",
        (
            "class Net:\n    def size(self): return width",
            "def build():\n    return Net()\ndef train():\n    return model.size() + step",
        ),
        "width, step = 3, 1\nmodel = build()\nout = train()",
        4,
    ),
    Case(
        "the cell's own value stands for the notebook's where it is set before the call",
        ("width = 1", "def size(): return width", "indirect = size"),
        "width = 5\nout = [size(), indirect()]",
        [5, 5],
    ),
    Case(
        "the notebook's value stands where the cell sets its own after the call",
        ("width = 1", "def size(): return width", "indirect = size"),
        "out = [indirect()]\nwidth = 5\nout.append(size())",
        [1, 5],
    ),
    Case(
        "decorator of the notebook",
        (
            "import functools\ncalls = []",
            "def logged(f):\n    @functools.wraps(f)\n    def inner(*a):\n"
            "        return ['logged', f(*a)]\n    return inner",
            "@logged\ndef double(x): return 2 * x",
        ),
        "out = double(4)",
        ["logged", 8],
    ),
    Case(
        "decorator with wraps, applied by assignment",
        (
            "import functools",
            "def twice(f):\n    @functools.wraps(f)\n    def inner(x):\n        return f(f(x))\n"
            "    return inner",
            "def inc(x): return x + 1",
            "inc = twice(inc)",
        ),
        "out = inc(1)",
        3,
    ),
    Case(
        "lru_cache and a parametrised decorator",
        (
            "from functools import lru_cache",
            "@lru_cache(maxsize=None)\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)",
        ),
        "out = fib(30)",
        832040,
    ),
    Case("lambda", ("square = lambda x: x * x",), "out = square(3)", 9),
    Case(
        "lambda that uses the notebook",
        ("k = 2", "scale = lambda x: k * x", "k = 5"),
        "out = scale(3)",
        15,
    ),
    Case(
        "lambdas in a container",
        ("ops = {'inc': lambda x: x + 1}",),
        "out = ops['inc'](1)",
        2,
    ),
    Case("alias of a function", ("def f(): return 1", "g = f"), "out = g()", 1),
    Case(
        "partial of a notebook function",
        ("from functools import partial", "def f(a, b): return a - b", "p = partial(f, 10)"),
        "out = p(3)",
        7,
    ),
    Case(
        "namedtuple whose name differs",
        ("from collections import namedtuple", "P = namedtuple('Point', 'x y')", "p = P(1, 2)"),
        "out = [p.x + p.y, P(3, 4).x]",
        [3, 3],
    ),
    Case(
        "enum member",
        ("import enum", "class Color(enum.Enum):\n    RED = 1", "c = Color.RED"),
        "out = [c is Color.RED, c.name]",
        [True, "RED"],
    ),
    Case(
        "async functions and await at the top level",
        ("import asyncio", "async def fetch(x):\n    await asyncio.sleep(0)\n    return x"),
        "async def both():\n    return [await fetch(1), await fetch(2)]\nout = await both()",
        [1, 2],
    ),
    Case(
        "global in a function",
        ("counter = 10", "def step():\n    global counter\n    counter += 1"),
        "step()\nstep()\nout = counter",
        12,
    ),
    Case(
        "global that the cell's own function sets",
        ("total = 1",),
        "def add(x):\n    global total\n    total += x\nadd(4)\nout = total",
        5,
    ),
    Case(
        "star import",
        ("from math import *",),
        "out = [floor(2.5), round(pi, 2)]",
        [2, 3.14],
    ),
    Case(
        "star import in the cell, over a name of the notebook",
        ("floor = 'mine'",),
        "from math import *\nout = floor(2.5)",
        2,
    ),
    Case(
        "main guard",
        ("def train(): return 'trained'",),
        "if __name__ == '__main__':\n    out = train()",
        "trained",
    ),
    Case(
        "names that are not ASCII",
        ("größe = 3\nﬁt = 4", "def 学習(x): return x * größe"),
        "out = [学習(2), fit]",
        [6, 4],
    ),
    Case(
        "imports with dots and renames",
        (
            "import os.path\nimport xml.etree.ElementTree as ET\nimport xml.dom\n"
            "from collections import OrderedDict as OD",
        ),
        "out = [os.path.basename('a/b'), ET.fromstring('<a/>').tag, list(OD(a=1)), "
        "xml.dom.Node.ELEMENT_NODE]",
        ["b", "a", ["a"], 1],
    ),
    Case(
        "import in try",
        ("try:\n    import a_faster_json as js\nexcept ImportError:\n    import json as js",),
        "out = js.loads('[1]')",
        [1],
    ),
    Case(
        "definition in if",
        ("fast = False", "if fast:\n    def f(): return 1\nelse:\n    def f(): return 2"),
        "out = f()",
        2,
    ),
    Case(
        "one statement on a line with others",
        ("a = 1; f = lambda: a; b = 2",),
        "out = f()",
        1,
    ),
    Case(
        "attributes set after the definition",
        (
            "class Net:\n    def f(self): return 1",
            "def better(self): return 'better'",
            "Net.f = better\nNet.kind = 'patched'",
        ),
        "out = [Net().f(), Net.kind]",
        ["better", "patched"],
    ),
    Case(
        "singledispatch with implementations in later cells",
        (
            "from functools import singledispatch",
            "@singledispatch\ndef show(x): return 'any'",
            "@show.register\ndef _(x: int): return 'int'",
        ),
        "out = [show(1), show('')]",
        ["int", "any"],
    ),
    Case(
        "instances that share an object",
        ("class Box: pass", "a, b = Box(), Box()\na.items = b.items = [1]"),
        "a.items.append(2)\nout = b.items",
        [1, 2],
    ),
    Case(
        "type variables and aliases",
        (
            "from typing import TypeVar, Generic, Dict\nT = TypeVar('T')\nTable = Dict[str, int]",
            "class Stack(Generic[T]):\n    items: Table = {}",
        ),
        "out = [Stack[int]().items, str(T)]",
        [{}, "~T"],
    ),
    Case(
        "a method and a bound method",
        (
            "class A:\n    def __init__(self, n): self.n = n\n    def get(self): return self.n",
            "get = A(3).get",
        ),
        "out = get()",
        3,
    ),
    Case(
        "class body that reads the notebook",
        ("width = 3", "class C:\n    sizes = [width] * 2\n    def f(self): return width"),
        "out = [C.sizes, C().f()]",
        [[3, 3], 3],
    ),
    Case(
        "property, static method, nested class",
        (
            "class A:\n    class Inner:\n        v = 1\n    @property\n    def p(self): return 2\n"
            "    @staticmethod\n    def s(): return 3",
            "inner = A.Inner()",
        ),
        "out = [inner.v, A().p, A.s()]",
        [1, 2, 3],
    ),
    Case(
        "future annotations of an earlier cell",
        ("from __future__ import annotations", "def f(x: NotThere) -> AlsoNot: return x"),
        "def g(y: Nowhere): return f(y)\nout = g(1)",
        1,
    ),
    Case(
        "future import in the cell, beside another statement",
        ("x = 1",),
        "from __future__ import annotations; y = x\nout = y",
        1,
    ),
    Case(
        "names in a pandas query",
        ("import pandas as pd", "df = pd.DataFrame({'a': [1, 2, 3]})", "limit = 1"),
        "out = len(df.query('a > @limit'))",
        2,
    ),
    Case(
        "del of what the notebook has",
        ("big = [0] * 1000",),
        "del big\nout = 'big' in globals()",
        False,
    ),
    Case("display", (), "display(1)\nout = 1", 1),
    Case(
        "walrus, match and comprehension",
        ("data = {'kind': 'a', 'n': 2}",),
        "match data:\n    case {'kind': k, **rest}:\n        out = [k, rest, (m := 3) + m, "
        "[y for y in range(rest['n'])]]",
        ["a", {"n": 2}, 6, [0, 1]],
    ),
    Case(
        "shadowed builtin",
        ("def sum(xs): return 'my sum'",),
        "out = sum([1])",
        "my sum",
    ),
    Case(
        "a name bound in a loop that may not run",
        ("last = 'before'",),
        "for last in []:\n    pass\nout = last",
        "before",
    ),
    Case(
        "class of which an earlier instance is left",
        ("class A:\n    v = 1", "a = A()", "class A:\n    v = 2"),
        "out = [a.v, isinstance(a, A)]",
        [1, False],
    ),
    Case(
        "decorator with a helper in a later cell",
        (
            "def logged(f): return wrap(f)",
            "def wrap(f): return lambda: ['w', f()]",
            "@logged\ndef g(): return 1",
        ),
        "out = g()",
        ["w", 1],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_program_does_what_the_cell_would(kernel: Kernel, server: Server, case: Case) -> None:
    for cell in case.cells:
        kernel.run(cell)
    program = kernel.capture(f"{case.cell}\nimport json\nprint('RESULT', json.dumps(out))")
    assert server.results(program) == case.out


def test_class_that_a_failed_cell_left_half_way(kernel: Kernel, server: Server) -> None:
    kernel.run("def f(): return 'first'")
    kernel.run("1 / 0\ndef f(): return 'never defined'", quiet=True)
    program = kernel.capture("print('RESULT', '\"' + f() + '\"')")
    assert server.results(program) == "first"


def test_class_of_a_failed_cell(kernel: Kernel, server: Server) -> None:
    kernel.run("class A:\n    def f(self): return 1")
    kernel.run("1 / 0\nclass A:\n    def f(self): return 2", quiet=True)
    assert server.results(kernel.capture("print('RESULT', A().f())")) == 1


def test_function_replaced_by_exec_is_refused(kernel: Kernel) -> None:
    kernel.run("def f(): return 1")
    kernel.run("exec('def f(): return 2')")
    (finding,) = kernel.capture("f()").findings
    assert finding.code == "capture.no-source"
    assert finding.where == "Cell In[3], line 2"


def test_value_set_since_a_class_was_made_of_it_is_told(kernel: Kernel) -> None:
    kernel.run("import collections\nbase = ['a']")
    kernel.run("P = collections.namedtuple('P', base)")
    kernel.run("base = ['b']")
    codes = [f.code for f in kernel.capture("P(1)").findings]
    assert "capture.rebound" in codes


def test_earlier_distrain_cells_ran_elsewhere(kernel: Kernel, server: Server) -> None:
    kernel.run("def f(): return 1")
    kernel.cells.append(Cell("Cell In[2]", "%%distrain\ndef f(): return 2"))
    assert server.results(kernel.capture("print('RESULT', f())")) == 1


def test_source_that_follows_a_cell_magic(kernel: Kernel, server: Server) -> None:
    kernel.run("\ndef f(): raise ValueError('here')")
    kernel.cells[0] = Cell("Cell In[1]", "%%time\n" + kernel.cells[0].source[1:])
    output = server.output(kernel.capture("f()"))
    assert "Cell In[1], line 2, in f" in output
