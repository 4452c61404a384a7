"""Ranks have what the notebook has, whatever has changed since it was defined or made."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.program.notebooks import Kernel, Place, Server

# name: the notebook's cells, and what the training cell prints
EQUAL: dict[str, tuple[tuple[str, ...], str]] = {
    "list that stands in another twice": (("u = []\nu = [u, u]",), "u[0] is u[1]"),
    "attributes of a class": (
        (
            """
            class CFG:
                lr = 0.1
                tags = []
                opts = {}
                gone = 1
            """,
            """
            for name in ('lr', 'new'):
                setattr(CFG, name, 0.01)
            CFG.tags.append('night')
            CFG.opts['amp'] = True
            delattr(CFG, 'gone')
            """,
        ),
        "CFG.lr, CFG.new, CFG.tags, CFG.opts, hasattr(CFG, 'gone'), CFG().lr",
    ),
    "registry of classes": (
        (
            """
            MODELS = {}
            def register(name):
                def deco(cls):
                    MODELS[name] = cls
                    return cls
                return deco
            """,
            """
            @register('net')
            class Net:
                width = 4
            @register('wide')
            class Wide(Net):
                width = 64
            """,
        ),
        "MODELS['wide'].width, sorted(MODELS), MODELS['net'] is Net, Wide.__mro__[1] is Net",
    ),
    "class of a registry": (
        (
            """
            MODELS = {}
            def register(cls):
                MODELS[cls.__name__] = cls
                return cls
            """,
            """
            @register
            class Net:
                width = 4
            """,
        ),
        "Net.width",
    ),
    "registry of functions": (
        (
            """
            HOOKS = []
            def hook(f):
                HOOKS.append(f)
                f.number = len(HOOKS)
                return f
            """,
            """
            @hook
            def a(x): return x + 1
            @hook
            def b(x): return a(x) * 2
            """,
        ),
        "[f(1) for f in HOOKS], HOOKS[0] is a, b.number",
    ),
    "classes that a base has counted": (
        (
            """
            class Base:
                subs = []
                def __init_subclass__(cls, **options): Base.subs.append(cls)
            """,
            """
            class A(Base): y = 1
            class B(Base): y = 2
            """,
        ),
        "[c.__name__ for c in Base.subs], Base.subs[0] is A, B.y",
    ),
    "calls that a decorator has counted": (
        (
            """
            import functools
            def counted(f):
                @functools.wraps(f)
                def call(*args):
                    call.calls += 1
                    return f(*args)
                call.calls = 0
                return call
            @counted
            def add(a, b): return a + b
            """,
            """
            add(1, 2)
            add(3, 4)
            """,
        ),
        "add.calls, add(5, 6)",
    ),
    "closures with one variable": (
        (
            """
            def make(start):
                count = start
                def up():
                    nonlocal count
                    count += 1
                    return count
                def get(): return count
                return up, get
            up, get = make(10)
            """,
            """
            up()
            """,
        ),
        "up(), get()",
    ),
    "recursive closure": (
        (
            """
            def make():
                def factorial(n): return 1 if n < 2 else n * factorial(n - 1)
                return factorial
            f = [make()]
            """,
        ),
        "f[0](5)",
    ),
    "lambdas on one line": (
        (
            """
            k = 3
            fs = [lambda x: x + k, lambda x: x - k]
            fs.append(lambda: fs)
            """,
        ),
        "fs[0](1), fs[1](1), fs[2]() is fs",
    ),
    "object with a lambda": (
        (
            """
            class Net:
                def __init__(self):
                    self.__factor = 5
                    self.act = lambda x: x * self.__factor
                    self.weight = 1
            net = Net()
            """,
            """
            net.weight = 7
            net._Net__factor = 2
            """,
        ),
        "net.weight, net.act(2)",
    ),
    "default values": (
        (
            """
            lr = 0.1
            def f(x, lr=lr, *, seen=[]):
                return x * lr, seen
            """,
            """
            lr = 5
            f.__kwdefaults__['seen'].append(2)
            """,
        ),
        "f(2), lr",
    ),
    "method replaced in a loop": (
        (
            """
            class A:
                def f(self): return 1
            """,
            """
            for name in ['f']:
                setattr(A, name, lambda self: 2)
            """,
        ),
        "A().f()",
    ),
    "instance of an earlier class": (
        (
            """
            class A:
                def f(self): return 'old'
            class B(A): pass
            a, b = A(), B()
            """,
            """
            class A:
                def f(self): return 'new'
            """,
        ),
        "a.f(), b.f(), A().f(), isinstance(b, A), isinstance(b, B)",
    ),
    "earlier function": (
        (
            """
            def f(): return 1
            hooks = [f]
            """,
            """
            def f(): return 2
            """,
        ),
        "hooks[0](), f()",
    ),
    "class inside a function": (
        (
            """
            def make():
                class A:
                    tags = ['x']
                    def __init__(self): super().__init__(); self.v = 1
                    def show(self): return self.tags, __class__.__name__
                return A()
            a = make()
            """,
            """
            a.v = 9
            type(a).tags.append('y')
            """,
        ),
        "a.v, a.show()",
    ),
    "kinds of methods": (
        (
            """
            import functools
            class A:
                log = []
                @property
                def p(self): return self.log
                @functools.cached_property
                def c(self): return len(self.log)
                @staticmethod
                def s(): return 's'
                @classmethod
                def k(cls): return cls.log
            A.log.append(1)
            a = A()
            """,
        ),
        "a.p, a.c, a.s(), A.k()",
    ),
    "abstract class and slots": (
        (
            """
            import abc
            class Base(abc.ABC):
                @abc.abstractmethod
                def f(self): ...
            class A(Base):
                __slots__ = ('a',)
                log = []
                def f(self): return super().__repr__()[:10]
            a = A()
            a.a = 4
            A.log.append(3)
            """,
        ),
        "a.a, A.log, a.f()",
    ),
    "functions that a statement registers": (
        (
            """
            import functools
            @functools.singledispatch
            def kind(x): return 'any'
            def of_int(x): return 'int'
            kind.register(int, of_int)
            """,
            "_ = kind.register(str, lambda x: 'str')",
        ),
        "kind(1), kind(''), kind([])",
    ),
    "arguments changed by another name": (
        (
            """
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument('--lr', default=0.1)
            args = parser.parse_args([])
            """,
            """
            vars(args).update(lr=0.5)
            other = args
            other.new = 1
            """,
        ),
        "args",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_ranks_have_what_the_notebook_has(
    kernel: Kernel, server: Server, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cells, shown = EQUAL[name]
    for cell in cells:
        kernel.run(textwrap.dedent(cell))
    program = kernel.capture(f"print({shown})")
    assert not [f for f in program.findings if str(f.severity) != "info"]
    capsys.readouterr()
    output = server.output(program)
    kernel.run(f"print({shown})")
    assert output == capsys.readouterr().out


STATE_MODULE = """
ITEMS, LR, calls = [], 0.1, 0
NOTHING = object()

class CFG:
    lr = 0.1
    tags = []

def bump(by=NOTHING):
    global calls
    calls += 1 if by is NOTHING else by
    ITEMS.append(calls)
"""


def test_state_of_a_module_beside_the_notebook(
    kernel: Kernel, server: Server, capsys: pytest.CaptureFixture[str], beside: Path
) -> None:
    (beside / "beside_notebook.py").write_text(STATE_MODULE)
    kernel.run("import beside_notebook as m\nfrom beside_notebook import ITEMS\nm.bump()")
    kernel.run("for name in ('LR', 'new'): setattr(m, name, 3)\nm.CFG.tags.append(2)")
    kernel.run("setattr(m.CFG, 'lr', 7)")
    cell = "m.bump(); print(ITEMS, ITEMS is m.ITEMS, m.LR, m.new, m.calls, m.CFG.lr, m.CFG.tags)"
    program = kernel.capture(cell)
    output = server.output(program)
    kernel.run(cell)
    assert output == capsys.readouterr().out == "[1, 2] True 3 3 2 7 [2]\n"


@pytest.fixture
def beside(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(kernel.folder))
    yield kernel.folder
    sys.modules.pop("beside_notebook", None)


# name: the notebook's cells, what the training cell reads, what the run says of it
REFUSED = {
    "dataclass of a name that was set since": (
        (
            "from dataclasses import dataclass\nlr = 0.1",
            "@dataclass\nclass CFG:\n    lr: float = lr",
            "lr = 5",
        ),
        "CFG.lr",
        "`CFG.lr` is 0.1 in the notebook (Cell In[2], line 1) and 5 in the run",
    ),
    "defaults of a named tuple": (
        (
            "from collections import namedtuple\nB = namedtuple('B', 'x y', defaults=[0])",
            "B.__new__.__defaults__ = (9,)",
        ),
        "B(1)",
        "`the default of y in B.__new__` is 9 in the notebook (Cell In[1], line 2) and 0 in",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_text_makes_otherwise_ends_the_run_before_the_cell(
    kernel: Kernel, server: Server, name: str
) -> None:
    cells, read, message = REFUSED[name]
    for cell in cells:
        kernel.run(cell)
    output = server.output(kernel.capture(f"print('began', {read})"))
    assert f"NotAsInNotebook: {message}" in output
    assert "began" not in output


def test_classes_and_tools_as_they_were_made_are_no_alarm(kernel: Kernel, server: Server) -> None:
    kernel.run(
        "import abc, argparse, enum, functools, logging, os, threading, typing\n"
        "from dataclasses import dataclass, field\n"
        "@dataclass(frozen=True)\nclass D:\n    a: int = 1\n"
        "    b: list = field(default_factory=list)\n"
        "class E(enum.Enum):\n    A = 1\n    B = object()\n"
        "class N(typing.NamedTuple):\n    a: int = 1\n"
        "class P(typing.Protocol):\n    def f(self): ...\n"
        "T = typing.TypeVar('T')\nclass G(typing.Generic[T]):\n    kinds = [T]\n"
        "    lock = threading.Lock()\n    nan = float('nan')\n"
        "class H(dict):\n    __getattr__ = dict.get\n"
        "@functools.lru_cache\ndef f(x): return x\nf(1)\n"
        "@functools.singledispatch\ndef show(x): return 'o'\n"
        "@show.register(int)\ndef _(x): return 'i'\n"
        "log = logging.getLogger('a')\nparser = argparse.ArgumentParser()\n"
        "rank = int(os.environ.get('RANK', 0))\nclass R:\n    rank = rank\n    pid = os.getpid()\n"
    )
    cell = (
        "print(D(), E.A, N(), P, G.kinds, H(a=1).a, f(1), show(1), log, parser.prog and 1, R.rank)"
    )
    assert server.output(kernel.capture(cell)).startswith("D(a=1, b=[]) E.A N(a=1)")


@pytest.mark.parametrize(
    ("made", "path"),
    [
        (
            "class O(dict):\n    __getattr__ = dict.get\nv = O(a=1)\nv.b = 1",
            "`v` (O) can be pickled",
        ),
        (
            "class E(Exception):\n    def __init__(self, a, b): super().__init__(a)\nv = [E(1, 2)]",
            "`v[0]` (E) in `v` can be pickled but not read again (TypeError",
        ),
    ],
)
def test_what_can_not_be_read_again_is_refused(kernel: Kernel, made: str, path: str) -> None:
    kernel.run(made)
    (finding,) = kernel.capture("print(v)").findings
    assert (finding.code, finding.where) == ("capture.not-portable", "Cell In[2], line 2")
    assert path in finding.message


def test_a_lambda_that_fails_names_its_cell_and_line(kernel: Kernel, server: Server) -> None:
    kernel.run(
        "class Net:\n    def __init__(self):\n        self.act = lambda x: x / 0\nnet = Net()"
    )
    output = server.output(kernel.capture("net.act(1)"))
    assert "  Cell In[1], line 3, in <lambda>\n    self.act = lambda x: x / 0\n" in output


def test_source_of_classes_is_known(kernel: Kernel, server: Server) -> None:
    kernel.run("class Net:\n    def f(self, x):\n        return x")
    program = kernel.capture("import inspect\nprint(inspect.getsource(Net))")
    assert server.output(program) == "class Net:\n    def f(self, x):\n        return x\n\n"


def test_what_asks_its_machine_or_environment_asks_again(
    kernel: Kernel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "here")
    kernel.run("import os\nclass A:\n    place = os.environ.get('PLACE', 'there')\n    n = [1]")
    kernel.run("def f(place=os.getenv('PLACE', 'there')): return place\nname = os.environ['PLACE']")
    program = kernel.capture("print(A.place, A.n, f())")
    assert server.output(program) == "there [1] there\n"


@pytest.mark.slow
def test_weights_of_a_keras_model_with_a_lambda(kernel: Kernel, place: Place) -> None:
    kernel.run(
        "import keras, numpy as np\nnet = keras.Sequential([keras.Input((2,)),"
        " keras.layers.Dense(1, use_bias=False), keras.layers.Lambda(lambda x: x * 2)])"
    )
    kernel.run("net.set_weights([np.full((2, 1), 7.0)])")
    program = kernel.capture("print('RESULT', float(net(np.ones((1, 2)))[0, 0]))")
    assert place.results(program) == 28.0
