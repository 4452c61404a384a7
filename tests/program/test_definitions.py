"""Definitions that only their text can make have what the notebook has given them since."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from distrain_nb.observed import Observer

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

DATACLASS = (
    "from dataclasses import dataclass, field\n@dataclass{}\nclass A:\n    lr: float = 0.1\n"
)
ENUM = "import enum\nclass E(enum.{}):\n    X = 1\n    Y = 2"
META = "class M(type):\n    table = {}\n    def __init__(cls, *of):\n        M.table[of[0]] = cls\n"
RANK = "int(os.environ.get('RANK', 0))"

# name: the notebook's cells, and what the training cell prints
EQUAL = {
    "dataclass, set": ((DATACLASS.format(""), "setattr(A, 'lr', 0.01)"), "A.lr, A().lr"),
    "dataclass, set by a statement": ((DATACLASS.format(""), "A.lr = 0.01"), "A.lr, A().lr"),
    "dataclass, new": ((DATACLASS.format(""), "for n in 'ab': setattr(A, n, [n])"), "A.a, A.b"),
    "dataclass, gone": ((DATACLASS.format(""), "del A.lr"), "hasattr(A, 'lr'), A()"),
    "dataclass, filled": (
        (DATACLASS.format("") + "    tags: 'ClassVar' = ()\nA.tags = []", "A.tags.append(A)"),
        "A.tags[0] is A",
    ),
    "dataclass, method": ((DATACLASS.format(""), "A.get = lambda self: self.lr"), "A().get()"),
    "dataclass, frozen": ((DATACLASS.format("(frozen=True)"), "A.lr = 3"), "A.lr, A()"),
    "dataclass, slots": ((DATACLASS.format("(slots=True)"), "A.new = 3"), "A.new, A()"),
    "class inside": (
        (DATACLASS.format("") + "    class Inner:\n        x = 1", "A.Inner.x = 2"),
        "A.Inner.x",
    ),
    "member of an enum": ((ENUM.format("Enum"), "E.X.extra = [5]"), "E.X.extra, E(1) is E.X"),
    "member of an enum of numbers": ((ENUM.format("IntEnum"), "E.X.extra = 5"), "E.X.extra + E.X"),
    "enum": ((ENUM.format("Enum"), "E.note = {E.X: 1}\nE.Y.note = E.note"), "E.note, E.Y.note"),
    "metaclass": ((META + "class A(metaclass=M): pass", "A.lr = 1"), "A.lr, M.table['A'] is A"),
    "metaclass, bases": (
        (META + "class A(metaclass=M): pass\nclass B(A): pass", "M.table['C'] = 3"),
        "sorted(M.table), M.table['B'] is B",
    ),
    "metaclass that sets itself": (
        (
            "class M(type):\n    def __setattr__(cls, *of): raise AttributeError(of[0])\n"
            "class A(metaclass=M):\n    lr = 1",
            "type.__setattr__(A, 'lr', 2)",
        ),
        "A.lr",
    ),
    "singleton": (
        (
            "class S(type):\n    made = {}\n    def __call__(cls):\n"
            "        if cls not in cls.made: cls.made[cls] = super().__call__()\n"
            "        return cls.made[cls]\nclass A(metaclass=S): pass",
            "A().lr = 7",
        ),
        "A().lr",
    ),
    "named tuple": (
        ("from typing import NamedTuple\nclass N(NamedTuple):\n    a: int = 1", "N.new = 4"),
        "N.new, N()",
    ),
    "protocol": (("from typing import Protocol\nclass P(Protocol):\n    a = 1", "P.a = 2"), "P.a"),
    "cached function": (
        ("import functools\n@functools.lru_cache\ndef f(x): return x", "f.note = [3]"),
        "f.note, f(1)",
    ),
    "classes of functions": (
        (
            "import enum\nfrom collections import namedtuple\n"
            "from dataclasses import make_dataclass\nD = make_dataclass('D', [('a', int, 1)])\n"
            "P = namedtuple('P', 'a')\n"
            "E = enum.Enum('E', 'A B')",
            "D.a = 5\nP.note = [P(2)]\nE.A.width = 3",
        ),
        "D.a, D(), P.note, E.A.width",
    ),
    "registered subclasses": (
        ("import abc\nclass S(abc.ABC): pass\nclass T: pass", "S.register(T)\nS.n = 1"),
        "isinstance(T(), S), S.n",
    ),
    "what packages keep": (
        ("import pydantic\nclass C(pydantic.BaseModel):\n    lr: int = 1", "c = C()\nc.lr = 2"),
        "c",
    ),
    "classes that packages make": (
        (
            "import torch\nfor n in range(999): type('G', (torch.autograd.Function,), {})",
            "class F(torch.autograd.Function):\n    lr = 1\nF.lr = 2",
        ),
        "F.lr, F._backward_cls.__name__",
    ),
    "attributes by items": (
        ("class O(dict):\n    def __getattr__(self, name): return self[name]\no = O(a=1)",),
        "o.a",
    ),
    "registry of dataclasses": (
        (
            "MODELS = {}\ndef register(cls):\n    MODELS[cls.__name__] = cls\n    return cls",
            DATACLASS.format("").replace("@", "@register\n@"),
            "MODELS['other'] = 5",
        ),
        "MODELS['A'] is A, A(), MODELS['other']",
    ),
    "registry that is an object": (
        (
            "class Registry:\n    def __init__(self): self.of = {}\n    def add(self, cls):\n"
            "        self.of[cls.__name__] = cls\n        return cls\nREGISTRY = Registry()",
            DATACLASS.format("").replace("@", "@REGISTRY.add\n@"),
        ),
        "REGISTRY.of['A'] is A, A()",
    ),
    "registry by a metaclass": (
        (
            "ALL = []\nclass M(type):\n    def __init__(cls, *of): ALL.append(cls)\n"
            "class A(metaclass=M): pass\nclass B(A): pass",
            "ALL.append(3)",
        ),
        "ALL[0] is A, ALL[1] is B, ALL[2:]",
    ),
    "class, what its text computes": (("tmp = [1]\nclass C:\n    x = tmp\ndel tmp",), "C.x"),
    "class, a constant of a package": (
        ("import math\nclass C:\n    x = math.pi", "C.x = 3"),
        "C.x",
    ),
    "class that holds its former self, an attribute of the base put back": (
        (
            "class C: a = 1\nclass B:\n    tags = []\nclass C(B):\n    old = C",
            "old = C.tags\nC.tags = [1]\nC.tags = old",
        ),
        "C.tags is B.tags, 'tags' in vars(C), C.old.a",
    ),
    "class, method": (
        ("class C:\n    def get(self): return 1", "for n in 'ab': setattr(C, n, lambda self: n)"),
        "C().get(), C().a()",
    ),
    "function, attribute": (("def f(): return f.n", "f.n = 1"), "f()"),
    "function, defaults": (
        ("def f(x=1, seen=[]):\n    seen.append(x)\n    return seen", "f()\nf(2)"),
        "f(3)",
    ),
    "function in the place of a lambda": (
        ("def f(): return 1\nh = lambda: 2", "def change():\n    global h\n    h = f\nchange()"),
        "h(), h is f",
    ),
}


def shows(kernel: Kernel, cell: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        kernel.run(cell)
    return output.getvalue()


@pytest.mark.parametrize("name", EQUAL)
def test_equal(kernel: Kernel, server: Server, name: str) -> None:
    cells, shown = EQUAL[name]
    for cell in cells:
        kernel.run(cell)
    program = kernel.capture(f"print({shown})")
    assert not [f for f in program.findings if str(f.severity) == "error"], program.findings
    assert server.output(program) == shows(kernel, f"print({shown})")


def test_a_changed_class_stays_text(kernel: Kernel) -> None:
    kernel.run("class C:\n    lr = 0.1\n    tags = []")
    kernel.run("setattr(C, 'lr', 0.01)\nC.tags.append(1)")
    program = kernel.capture("print(C)")
    assert "class C:\n    lr = 0.1" in program.main
    assert 'restored("C.lr", "C.tags")' in program.main


def test_equal_though_nobody_saw_its_statement(kernel: Kernel, server: Server) -> None:
    kernel.run(DATACLASS.format("") + "    other: list = field(default_factory=list)")
    kernel.run("setattr(A, 'lr', 0.01)\nsetattr(A, 'new', [A])")
    kernel.observer = Observer(kernel.namespace, lambda *_: None, frozenset({"Cell In[1]"}))
    shown = "print(A.lr, A.new[0] is A, A())"
    assert server.output(kernel.capture(shown)) == shows(kernel, shown)


def test_equal_though_nobody_saw_an_instance_of_its_own(kernel: Kernel, server: Server) -> None:
    kernel.run("class C: pass\nC.me = C()\nC.me.tags = [1]")
    kernel.observer = Observer(kernel.namespace, lambda *_: None, frozenset({"Cell In[1]"}))
    shown = "print(C.me.tags, type(C.me) is C)"
    assert server.output(kernel.capture(shown)) == shows(kernel, shown)


def test_what_has_not_changed_is_its_text_alone(kernel: Kernel) -> None:
    kernel.run(DATACLASS.format("") + ENUM.format("Enum"))
    kernel.run("class M(type): pass\nclass B(metaclass=M):\n    of = [M]")
    kernel.run("a = A()\nprint(E.X, B)")
    assert "restored" not in kernel.capture("print(A(), E.X, B)").main


# name: the notebook's cells, and what rank 1 prints of `A.rank, A.tags`
WORLD = {
    "set since": ((f"    rank = {RANK}", "A.rank = 3\nA.tags.append(2)"), "3 [2]"),
    "filled": (("    rank = 0", f"A.rank = {RANK}", "A.tags.append(2)"), "1 [2]"),
    "filled by text": (
        ("    rank = 0", f"for n in ['rank']: setattr(A, n, {RANK})", "A.tags.append(2)"),
        "1 [2]",
    ),
    "filled in a list": (("    rank = 0", f"all = [A]\nall[0].rank = {RANK}"), "1 []"),
}


@pytest.mark.parametrize("name", WORLD)
@pytest.mark.parametrize("made", ["", "@functools.total_ordering\n"])
def test_classes_that_know_the_world(kernel: Kernel, server: Server, name: str, made: str) -> None:
    (first, *cells), shown = WORLD[name]
    beside = "    tags = []\n    def __eq__(self, _): return True\n    __lt__ = __eq__\n"
    kernel.run(f"import functools, os\n{made}class A:\n{beside}{first}")
    for cell in cells:
        kernel.run(cell)
    program = kernel.capture("print(A.rank, A.tags)")
    assert server.output(replace(program, variables={"RANK": "1"})) == f"{shown}\n"


REFUSED = {
    "generator": (
        (DATACLASS.format(""), "A.lr = (x for x in [])"),
        "`A.lr` is a generator in the notebook (Cell In[1], line 2) and 0.1 in the run",
    ),
    "registered by another name": (
        (
            "import functools\n@functools.singledispatch\ndef A(x): return x",
            "for f in [A]: f.register(int, print)",
        ),
        "`len(A.registry)` is 2 in the notebook (Cell In[1], line 2) and 1 in the run",
    ),
    "an attribute of the base, kept and put back": (
        (
            "class B:\n    tags = []\nclass A(B):\n    def __init__(self, x): pass",
            "old = A.tags\nA.tags = [1]\nA.tags = old",
        ),
        "`A.tags` is the same list as `B.tags` in the notebook",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_the_kernel(kernel: Kernel, name: str) -> None:
    cells, message = REFUSED[name]
    for cell in cells:
        kernel.run(cell)
    (finding,) = (f for f in kernel.capture("A(1)").findings if str(f.severity) == "error")
    assert finding.code == "capture.not-portable" and message in finding.message


def test_a_docstring_and_annotations_that_were_given_since(kernel: Kernel, server: Server) -> None:
    kernel.run("class A:\n    'old'\n    x: int = 1")
    kernel.run("A.__doc__ = 'new'\nA.__annotations__['y'] = str")
    text = "import json\nprint('RESULT', json.dumps([A.__doc__, [*A.__annotations__]]))"
    assert server.results(kernel.capture(text)) == ["new", ["x", "y"]]
