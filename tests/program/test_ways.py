"""Ways by which a rank gets into a name, and is not there for all to see: equal, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.program.test_equal import outcome

if TYPE_CHECKING:
    from tests.program.notebooks import Server

RANK = "int(os.environ.get('RANK', 0))"
_CLASS = "class A:\n    __slots__ = ('r',)\n    def get(self): return self.r\na = A()\na.r = 5"
_REGISTRY = (
    "R = {}\ndef reg(r):\n    def d(f):\n        R[f.__name__] = (r, f)\n        return f\n"
    "    return d"
)
_HOOKS = (
    "class Hooks:\n    def __init__(self): self.f = []\n    def on(self, f): self.f.append(f)\n"
    "    def fire(self): return [f() for f in self.f]\n    def get(self): return self.last\n"
    "hooks = Hooks()"
)
_CLOSURE = (
    "def make():\n    r = None\n    def g():\n        nonlocal r\n        if r is None: r = RANK\n"
    "        return r\n    return g\ng = make()"
)
# The cells, of which the last is what the training cell shows.
WAYS = {
    "a default that keeps it": (
        "def rank(_c=[]):\n    if not _c: _c.append(RANK)\n    return _c[0]\nrank()",
        "rank",
    ),
    "a closure that keeps it": (_CLOSURE, "g()", "g"),
    "a definition's name that is a list by now": (
        "h = lambda: 1",
        "import heapq\nh = [5]",
        "heapq.heappush(h, RANK)",
        "h",
    ),
    "a global of a function": (
        "v = 0\ndef setup():\n    global v\n    v = RANK",
        "setup()",
        "w = v + 1",
        "v",
        "w",
    ),
    "one of two branches": ("v = 5", "if RANK == 0: v = 6", "v"),
    "one of three": ("v = 5", "if RANK == 0: v = 6", "if RANK == 2: v = 7", "v"),
    "a loop that never turns": ("class A: n = 1\nv = A()", "for i in range(RANK): v = [i]", "v"),
    "an attempt that fails": (
        "v = 5",
        "try: v = [1 / (1 - RANK)]\nexcept ZeroDivisionError: pass",
        "v",
    ),
    "a member of an enum": ("class A(enum.Enum):\n    r = RANK\nv = A.r.value", "v"),
    "a field of a tuple": (
        "from typing import NamedTuple\nclass A(NamedTuple):\n    r: int = RANK\nv = A().r",
        "v",
    ),
    "an attribute of a class that is another by now": (
        "class A:\n    r = RANK",
        "v = A.r",
        "A.r = 5",
        "v",
    ),
    "an attribute of a base": (
        "class A:\n    r = RANK\nclass B(A):\n    def get(self): return self.r",
        "B",
    ),
    "a class of its own name": ("v = [6, RANK]", "class C(C):\n    c = v", "C"),
    "an item that is another by now": ("l = [RANK]", "w = l[0]", "l[0] = 5", "w"),
    "a name that is deleted": ("r = RANK", "v = {'seed': r + 1}", "del r", "v"),
    "a loop": ("total = 0\nfor i in range(3): total += RANK + i", "total"),
    "a loop over its name": ("r = RANK", "total = 0", "for i in range(3): total += r", "total"),
    "the target of a loop": ("for v in [RANK]: pass", "v"),
    "a registry filled by a decorator": (_REGISTRY, "@reg(RANK)\ndef f(): return 1", "R", "f"),
    "a generator seeded by it": (
        "g = random.Random(RANK)",
        "x = [1, 2, 3, 4, 5]",
        "g.shuffle(x)",
        "x",
    ),
    "an array's fill": ("import numpy as np\na = np.zeros(2)", "a.fill(RANK)", "a"),
    "an array as `out`": ("import numpy as np\na = np.zeros(2)", "np.add(a, RANK, out=a)", "a"),
    "a slot set by a function": (_CLASS, "def put(o): o.r = RANK\nput(a)", "a"),
    "a list filled by a function": ("R = []\ndef put(x): R.append(x)", "put(RANK)", "R"),
    "an attribute set by a function": ("class A: r = 0\ndef put(x): A.r = x", "put(RANK)", "A"),
    "what was used before it knew": (
        _HOOKS,
        "hooks.on(lambda: RANK)",
        "hooks.last = hooks.fire()",
        "hooks",
    ),
    "a value drawn in two steps": ("a = RANK", "b = [a]", "c = b[0]", "b = None", "c"),
    "a deque that is turned": (
        "d = __import__('collections').deque([1, 2, 3])",
        "d.rotate(RANK)",
        "list(d)",
    ),
    "a view of bytes": ("b = bytearray(3)\nm = memoryview(b)", "m[0] = RANK", "list(b)"),
    "a view of an array": ("import numpy as np\na = np.zeros(4)", "v = a[:2]", "v += RANK", "a"),
    "a list's iterator": ("i = iter([1, 2, 3])", "for _ in range(RANK + 1): next(i)", "list(i)"),
    "a counter that has counted since": (
        "c = itertools.count(RANK)",
        "def turn(c): next(c)",
        "turn(c)",
        "next(c)",
    ),
    "a generator": (
        "def go(r):\n    for n in range(9): yield r, n",
        "i = go(RANK)\nnext(i)",
        "for n in i:\n    if n[1] == 4: break",
        "i",
    ),
    "an expression that gives one": (
        "i = {'of': (n * 2 for n in range(RANK, 9))}",
        "next(i['of'])",
        "next(i['of'])",
    ),
    "a cache beside what a name of before knew": (
        "f = h if RANK == 0 else len",
        "@functools.cache\ndef h(x=3): return [x, 5]\nu = h()\nu.append(3)",
        "h",
    ),
    "a name that a text sets": (
        "class A: pass\nw = A()\nA.a = int(os.popen('echo 0$R' 'ANK').read())",
        "globals()['w'] = (3, 'y')",
        "w",
    ),
    "a name that a keyword sets": (
        "class A: pass\nw = A()\nA.a = int(os.popen('echo 0$R' 'ANK').read())",
        "globals().update(w=(3, 'y'))",
        "w",
    ),
    "a text in memory": ("t = __import__('io').StringIO()", "t.write(str(RANK))", "t.getvalue()"),
    "what is printed": (
        "import io\nt = io.StringIO()",
        "with contextlib.redirect_stdout(t): print(RANK)",
        "v = t.getvalue()",
        "v",
    ),
    "the parts of what a loop goes over": (
        "class O: pass\no = O()\no.groups = [{'lr': 1}]\nw = 1 + RANK",
        "for g in o.groups: g['lr'] *= w",
        "o.groups",
    ),
    "a class that a decorator fills": (
        "def deco(c):\n    c.r = RANK\n    return c\n@deco\nclass A: pass",
        "A.r + 0",
    ),
    "a class whose namespace has it": (
        "class M(type):\n    @classmethod\n    def __prepare__(m, n, b): return {'r': RANK}\n"
        "class A(metaclass=M): pass",
        "A.r + 0",
    ),
    "a seed whose name is another by now": (
        "s = 5 + RANK",
        "random.seed(s)\ns = 0",
        "random.random()",
    ),
    "a counter in C": ("c = __import__('collections').Counter()", "c.update({'r': RANK})", "c"),
}


@pytest.mark.parametrize("way", WAYS)
def test_equal_or_refused(server: Server, way: str) -> None:
    """Every rank had the kernel's, in silence."""
    cells = [cell.replace("RANK", RANK) for cell in WAYS[way]]
    names = [cell for cell in cells if cell.isidentifier()] or cells[-1:]
    rank, run = outcome(server, [c for c in cells if c not in names], names)
    assert run in ("", rank)


def test_what_was_drawn_after_a_seed_of_the_rank_is_drawn_in_each(server: Server) -> None:
    cell = f"import os, random\nrandom.seed({RANK})\nx = random.random()\ny = 3"
    kernel_of_the_rank, run = outcome(server, [cell], ["x"])
    assert run == kernel_of_the_rank != ""
