"""Notebooks by chance: definitions, and what notebooks do to them afterwards.

A cell that fails leaves what it had done, as in a notebook. `NOTEBOOK` defines `show`, by which the
training cell and the kernel say what a name stands for: plain texts, alike where objects are.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.program.sharing_habits import SHARES, SHARES_OF_THE_WORLD, SHOWN

MODULE = """
STATE, ITEMS, LR, calls = {}, [], 0.1, 0
MISSING, CONF = object(), {"lr": 1, "in": {"x": 2}}
def is_missing(x=MISSING): return x is MISSING
def conf(given=CONF): return CONF, given is CONF

class CFG:
    lr = 0.1
    tags = []

def bump(by=1):
    global calls
    calls += by
    ITEMS.append(calls)
    return calls

def rank():
    import os
    return int(os.environ.get("RANK", 0))

class Worker:
    def __init__(self, by=0): self.r, self.by = rank(), by
    def get(self): return self.r, self.by
"""
NOTEBOOK = """
import contextlib, copy, enum, functools, itertools, json, operator, os, random, string, threading
from collections import ChainMap
from types import SimpleNamespace
import state_module
random.seed(0)
from state_module import ITEMS

def show(x, depth=0, seen=None):
    seen = {} if seen is None else seen
    if x is None or isinstance(x, (int, float, str)):
        return repr(x)
    if isinstance(x, tuple) and depth < 5:  # which of them are one is no matter
        return "(" + ", ".join(show(part, depth + 1, seen) for part in x) + ")"
    if type(x).__module__ == "numpy":  # views become copies
        return repr(x.tolist())
    if id(x) in seen or depth > 4:
        return f"same {seen.get(id(x), ('',))[0]}"
    seen[id(x)] = len(seen), x
    inner = lambda part: show(part, depth + 1, seen)
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k!r}: {inner(v)}" for k, v in x.items()) + "}"
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(map(inner, x)) + "]"
    if isinstance(x, type):
        own = {k: v for k, v in sorted(vars(x).items()) if k[0] != "_" and k != "calls"}
        bases = [inner(b) for b in x.__bases__ if b is not object]
        return f"class {x.__qualname__} {bases} {inner(own)} {call(x, inner)}"
    if hasattr(type(x), "__next__"):
        return f"next {inner(next(x, None))}"
    if callable(x):
        had = getattr(x, "__defaults__", None) or ()
        name, held = getattr(x, "__name__", ""), getattr(x, "__dict__", {})
        return f"{name} {inner(held)} {inner(had)} {call(x, inner)}"
    get = getattr(x, "get", None)
    return f"{inner(type(x))} {inner(getattr(x, '__dict__', {}))} {call(get, inner)}"

def call(f, inner):
    try:
        given = f()
    except Exception as error:
        return type(error).__name__
    return inner(given) if not hasattr(type(given), "get") or isinstance(given, dict) else "object"
"""
# What there is at first, so that what changes something has something to change.
BEGINNING = """
class A:
    a, b = 1, []
    def get(self, x=0): return self.a, x
class B(A):
    b = []
class C:
    a = b = []
def f(x=0): return x
def g(x=1): return f(x)
h = lambda x=2: [x]
u, v, w = [], {}, A()
"""
_CLASS, _FUNCTION, _VALUE = ("A", "B", "C"), ("f", "g", "h"), ("u", "v", "w")
_C, _F, _V = map(st.sampled_from, (_CLASS, _FUNCTION, _VALUE))
_ANY = st.sampled_from((*_CLASS, *_FUNCTION, *_VALUE))
_LITERAL = st.sampled_from(("1", "0.5", "'x'", "None", "[]", "[1]", "{}", "{'k': 2}", "(3, 'y')"))
_NUMBER = st.integers(0, 9).map(str)

# Kinds of statements that public notebooks have.
_OF_PUBLIC_NOTEBOOKS = (
    "class {c}:\n    def __init__(self, n={n}): self.n = n\n    def get(self): return self.n\n"
    "class {d}({c}):\n    def __init__(self, *args):\n        super().__init__(*args)\n"
    "        self.m = {a}\n    def get(self): return super().get(), self.m\n{v} = {d}({n})",
    "from dataclasses import dataclass, field\n@dataclass\nclass {c}:\n    lr: float = {n}\n"
    "    tags: list = field(default_factory=lambda: [{n}])\n"
    "    def get(self): return self.lr, self.tags\n{v} = {c}(lr={n})\n{v}.tags.append({l})",
    "class {c}:\n    def __init__(self): self._p = {n}\n    @property\n"
    "    def p(self): return self._p\n"
    "    @p.setter\n    def p(self, x): self._p = x\n    def get(self): return self.p\n"
    "{v} = {c}()\n{v}.p = {l}",
    "class {c}:\n    __slots__ = ('s',)\n    def __init__(self): self.s = {n}\n"
    "    def get(self): return self.s\n{v} = {c}()\n{v}.s = {l}",
    "class {c}(enum.Enum):\n    x = {n}\n    y = 'y'\n    def get(self): return self.value\n"
    "{v} = {c}.x",
    "from typing import NamedTuple\nclass {c}(NamedTuple):\n    a: int = {n}\n"
    "    def get(self): return self.a\n{v} = [{c}()]",
    "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass {c}(Generic[T]):\n    a = {n}\n"
    "    def get(self): return self.a\n{v} = {c}[int]()",
    "class Meta(type):\n    made = []\n    def __init__(cls, *args):\n"
    "        super().__init__(*args)\n"
    "        Meta.made.append(cls.__name__)\nclass {c}(metaclass=Meta):\n"
    "    def get(self): return len(Meta.made)",
    "class {c}:\n    def __init__(self): self.n = 0\n"
    "    def __call__(self, *a):\n        self.n += 1\n"
    "        return self.n\n    def get(self): return self.n\n{f} = {c}()\n{f}()",
    "class {c}(state_module.CFG):\n    def get(self): return self.lr, self.tags",
    "{v} = state_module.CFG()\n{v}.lr = {n}",
    "old = {c}.get\n{c}.get = lambda self, *a: ('patched', old(self))",
    "{v}.get = __import__('types').MethodType({f}, {v})",
    "{c}.count = getattr({c}, 'count', 0) + 1",
    "def outer(n):\n    def inner(x={n}):\n        def leaf(): return n, x, {a}\n"
    "        return leaf()\n    return inner\n{f} = outer({l})",
    "{f} = functools.partial(lambda *a: (a, {g}, {n}), {l})",
    "@functools.lru_cache\ndef {f}(): return {n}\n{f}()",
    "@functools.singledispatch\ndef base(x): return {n}\n@base.register(int)\n"
    "def _(x): return 'int', {n}\ndef {f}(): return base(1), base('')",
    "@contextlib.contextmanager\ndef setting(x):\n    old = {c}.a\n    {c}.a = x\n    try: yield\n"
    "    finally: {c}.a = old\nwith setting({l}):\n    {v} = {c}.a\n    {w} = {c}()",
    "with contextlib.ExitStack() as stack:\n    stack.callback({v}.append, {n})\n    {w} = {l}",
    "{v} = __import__('collections').defaultdict(list)\n{v}['k'].append({a})",
    "{v} = __import__('collections').deque([{n}], maxlen=2)\n{v}.append({n})\n{v} = list({v})",
    "{v} = itertools.count({n})\nnext({v})",
    "{v} = iter([1, {n}, 3])\nnext({v})",
    "{v} = [lambda i=i: i * {n} for i in range(3)]",
    "{v} = [lambda: i for i in range(3)]",
    "if {n} > 4:\n    def {f}(): return {n}\nelse:\n    {f} = lambda: {a}",
    "try:\n    import nothing_there\nexcept ImportError:\n    def {f}(): return {n}",
    "for i in range({n}):\n    total = i\n    {v} = [i, {w}]\n    {c}.a = i",
    "{v}, {w} = [{n}], [{a}]",
    "{v}, *rest = [{a}, 1, {n}]\n{w} = rest",
    "{v} = {w} = [{n}]",
    "{v} += [{n}]",
    "{v} = copy.deepcopy({w})",
    "{v} = SimpleNamespace(x={n})\n{v} = SimpleNamespace(**vars({v}), y={a})",
    "globals()['{v}'] = {l}",
    "globals().update({v}={l})",
    "{v} = {c}()\nclass {c}:\n    def get(self): return {n}",
    "{v} = {f}()\ndef {f}(x={l}): return x, {n}",
    "del {v}['k{n}']",
    "{v}.clear()",
    "import numpy as np\n{v} = np.arange({n} + 2.0)\n{v}[0] = {n}",
    "import numpy as np\n{v} = {{'m': np.ones((2, 3))[:, 1]}}\n{v}['m'] *= {n}",
    "from state_module import *",
    "from state_module import CFG as {c}, bump as {f}",
    "import importlib\nimportlib.reload(state_module)",
    "import importlib\nopen(state_module.__file__, 'a').write('LR = {n}\\n')\n"
    "importlib.reload(state_module)",
    "open(state_module.__file__, 'a').write('LR = {n}; extra = [{n}]\\n')",
)

# Statements, with what stands for classes {c} and {d}, functions {f} and {g}, values {v} and {w},
# any name {a}, a literal {l}, a number {n}.
_STATEMENTS = (
    "{v} = {l}",
    "{v} = [{a}, {w}]",
    "{v} = {{'k': {a}, 'n': {l}}}",
    "{v}.append({a})",
    "{v}['k{n}'] = {a}",
    "{w} = {v}\n{w}.append({n})",
    "{v} = [*itertools.islice({v}, 9)]",
    "{w} = {v}.pop()",
    "{v} = {c}()",
    "{v}.x = {a}",
    "{v}.hook = lambda y=0: ({a}, y, {n})",
    "{v} = {{'f': {f}, 'l': lambda: {a}}}",
    "{v} = [{f}, {g}, lambda x={l}: (x, {n})]",
    "{v} = functools.partial({f})\n{v}.__name__ = 'part'\n{v}.__defaults__ = ()",
    "class {c}:\n    a = {l}\n    b = []\n    def get(self, x={n}): return self.a, x, {n}",
    "class {c}:\n    a = {l}\n    def __init__(self): self.i = {n}\n"
    "    def get(self): return self.a, {a}",
    "class {c}({d}):\n    c = {a}\n    def get(self): return super().get()",
    "class {c}:\n    made = []\n    def __init_subclass__(cls): {c}.made.append(cls.__name__)\n"
    "    def get(self): return len(self.made)",
    "class {c}:\n    __p = {l}\n    @property\n    def p(self): return self.__p\n"
    "    @staticmethod\n    def s(): return {n}\n    @classmethod\n    def k(cls): return cls.__p\n"
    "    def get(self): return self.p, self.s(), self.k()",
    "{c}.a = {l}",
    "{c}.new = {a}",
    "setattr({c}, 'a', {l})",
    "for name in ('a', 'z'): setattr({c}, name, {n})",
    "{c}.b.append({a})",
    "del {c}.a",
    "{c}.get = {f}",
    "for name in ('get',): setattr({c}, name, lambda self, x={n}: ('r', x))",
    "type.__setattr__({c}, 'b', [{n}])",
    "def {f}(x={l}): return x, {n}",
    "def {f}(x={n}, seen=[]):\n    seen.append(x)\n    return len(seen)",
    "def {f}(): return {a}",
    "{f} = lambda x={l}: ({n}, x)",
    "{f}.note = {l}",
    "{f}.__defaults__ = ({n},)",
    "{f}()",
    "{f} = {g}",
    "def make(start):\n    count = start\n    def up():\n        nonlocal count\n"
    "        count += 1\n        return count\n    def get(): return count\n    return up, get\n"
    "{f}, {g} = make({n})",
    "def make(given):\n    class Inner:\n        held = given\n        def get(self):\n"
    "            return given\n    return Inner\n{c} = make({l})",
    "def counted(f):\n    @functools.wraps(f)\n    def call(*args):\n        call.calls += 1\n"
    "        return f(*args)\n    call.calls = 0\n    return call\n"
    "@counted\ndef {f}(): return {n}\n{f}()",
    "{v} = {{}}\ndef register(x):\n    {v}[x.__name__] = x\n    return x\n"
    "@register\ndef {f}(): return {n}\n@register\nclass {c}:\n    def get(self): return {n}",
    "{v} = []\ndef hook(n):\n    def keep(x):\n        {v}.append((n, x))\n        x.n = n\n"
    "        return x\n    return keep\n@hook({n})\ndef {f}(x={l}): return {a}",
    "state_module.STATE['a'] = {a}",
    "state_module.LR = {n}",
    "for name in ('LR', 'extra'): setattr(state_module, name, {n})",
    "state_module.bump({n})",
    "state_module.CFG.lr = {n}",
    "setattr(state_module.CFG, 'lr', {n})",
    "state_module.CFG.tags.append({n})",
    "state_module.bump = {f}",
    "ITEMS.append({l})",
    "del {a}",
    "def change():\n    global {v}\n    {v} = {l}\nchange()",
    "with __import__('contextlib').suppress(Exception):\n    def {f}(x={n}): return x",
    "from dataclasses import dataclass\n@dataclass\nclass {c}:\n    lr: float = {n}\n"
    "    def get(self): return self.lr",
    "exec('def {f}(): return {n}')",
    *_OF_PUBLIC_NOTEBOOKS,
    *SHARES * 2,
)
_SHOWN_BESIDE = (
    *("state_module.STATE", "state_module.LR", "state_module.calls", "state_module.CFG", "ITEMS"),
    *("state_module.ITEMS", "ITEMS is state_module.ITEMS", "random.random()"),
    *("CFG", "LR", "STATE", "bump"),  # which a star brings
)


@st.composite
def _statement(draw: st.DrawFn) -> str:
    text: str = draw(st.sampled_from(_STATEMENTS))
    return text.format(
        c=draw(_C), d=draw(_C), f=draw(_F), g=draw(_F), v=draw(_V), w=draw(_V), a=draw(_ANY),
        l=draw(_LITERAL), n=draw(_NUMBER),
    )  # fmt: skip


# Ways to ask.
_ASKS = (
    "int(os.environ.get('RANK', 0))",
    "int(os.getenv('RANK') or 0)",
    "(int(os.environ['RANK']) if 'RANK' in os.environ else 0)",
    "int(dict(os.environ).get('RANK', 0))",
    "int(os.environ.copy().get('RANK', 0))",
    "int({{**os.environ}}.get('RANK', 0))",
    "int(os.environb.get(b'RANK', b'0'))",
    "int(os.path.expandvars('$RANK').replace('$RANK', '0'))",
    "sum(int(v) for k, v in os.environ.items() if k == 'RANK')",
    "eval(\"int(os.environ.get('RANK', 0))\")",
    "functools.reduce(lambda a, k: a + int(os.environ.get(k, 0)), ['RANK'], 0)",
    "max(['RANK'], key=os.environ.get) and int(os.environ.get('RANK', 0))",
    "functools.partial(os.environ.get, 'RANK')() and int(os.environ['RANK']) or 0",
    "(lambda: int(os.environ.get('RANK', 0)))()",
    "int(sorted(['RANK'], key=os.environ.get) and os.environ.get('RANK', 0))",
    "int(next(iter([os.environ.get('RANK', 0)])))",
    "int((os.environ | {{}}).get('RANK', 0))",
    "len([k for k in os.environ if k == 'RANK'])",
    "int('RANK' in os.environ)",
    "int('RANK' in [*os.environ.keys()])",
    "int(string.Template('0$RANK').safe_substitute(os.environ).replace('$RANK', ''))",
    "int(operator.itemgetter('RANK')(os.environ) if 'RANK' in os.environ else 0)",
    "int(getattr(os, 'environ').get('RANK', 0))",
    "int(vars(os)['environ'].get('RANK', 0))",
    "int(ChainMap(os.environ, {{'RANK': 0}})['RANK'])",
    "int([*map(os.environ.get, ['RANK'], ['0'])][0])",
    "int(os.environ.__getitem__('RANK') if os.environ.__contains__('RANK') else 0)",
    "int(json.loads(json.dumps(dict(os.environ))).get('RANK', 0))",
    "(lambda *, r=os.environ.get('RANK', 0): int(r))()",
    "len([v for v in map(os.getenv, ['RANK']) if v])",
    "int(os.popen('echo 0$RANK').read())",
    "state_module.rank()",
)
_MADE_OF_IT = (
    "{v} = {ask}",
    "{v} = {{'r': {ask}, 'n': {n}}}",
    "{v} = SimpleNamespace(rank={ask}, x={n}, tags=[])",
    "{v} = [{n}, {ask}]",
    "{v} = [1, 2, 3, 4][{ask}::2]",
    "{v}.append({ask})",
    "{v}['r'] = {ask}",
    "{v}.r = {ask}",
    "class {c}:\n    a = {ask}\n    def get(self): return self.a, {n}",
    "class {c}:\n    def __init__(self): self.r, self.i = {ask}, {n}\n"
    "    def get(self): return self.r, self.i\n{v} = {c}()",
    "class {c}:\n    @functools.cached_property\n    def r(self): return {ask}\n"
    "    def get(self): return self.r\n{v} = {c}().r",
    "class {c}:\n    def __iter__(self): yield {ask}\n    def get(self): return list(self)\n"
    "{v} = list({c}())",
    "class {c}:\n    def __getattr__(self, name): return {ask}\n{v} = {c}().rank",
    "class {c}:\n    @classmethod\n    def make(cls):\n        made = cls()\n"
    "        made.r = {ask}\n        return made\n    def get(self): return self.r\n"
    "{v} = {c}.make()",
    "def {f}(x={ask}): return x",
    "def join(o): o.r = {ask}\n{v} = SimpleNamespace(x={n})\njoin({v})",
    "{v} = {{}}\nt = threading.Thread(target=lambda: {v}.update(r={ask}))\nt.start(); t.join()",
    "exec('{v} = ' + repr(0))\n{v} = {{'r': {ask}}}",
    "{c}.a = {ask}",
    "setattr({c}, 'b', {ask})",
    "state_module.bump({ask})",
    "state_module.LR = {ask}",
    "from dataclasses import dataclass, field\n@dataclass\nclass {c}:\n"
    "    r: int = field(default_factory=lambda: {ask})\n"
    "    def get(self): return self.r\n{v} = {c}()",
    "class Base:\n    def __init__(self): self.r = {ask}\n"
    "class {c}(Base):\n    def __init__(self):\n"
    "        super().__init__()\n        self.i = {n}\n    def get(self): return self.r, self.i\n"
    "{v} = {c}()",
    "{f} = functools.partial(lambda a: (a, {n}), {ask})",
    "@contextlib.contextmanager\ndef ranked():\n    yield {ask}\nwith ranked() as {v}: pass",
    "def outer():\n    r = {ask}\n    def inner(): return r, {n}\n    return inner\n{f} = outer()",
    "def {f}(): return {ask}, {n}",
    "@functools.lru_cache\ndef {f}(): return {ask}\n{f}()",
    "class {c}:\n    @property\n    def r(self): return {ask}\n    def get(self): return self.r\n"
    "{v} = {c}()",
    "{v} = [i for i in range(8) if i % 2 == {ask}]",
    "if {ask} == 0:\n    {v} = 'first'\nelse:\n    {v} = 'other'",
    "{v} = 'first' if {ask} == 0 else ['other', {n}]",
    "for {v} in [{ask}]: pass",
    "try:\n    {v} = {ask}\nfinally:\n    pass",
    "{v} += [{ask}]",
    "{v}, {w} = {ask}, {n}",
    "{v} = {n}\n{v} += {ask}",
    "{v} = {f}() if {ask} else {n}",
    "import numpy as np\n{v} = np.arange(6)[{ask}::2]",
    "random.seed({ask})",
    "{v} = state_module.Worker({n})",
    "state_module.STATE['r'] = {ask}",
    "state_module.CFG.lr = {ask}",
    "state_module.ITEMS.append({ask})",
    "del {v}\n{v} = {ask}",
    "def deco(x):\n    x.n = {v}\n    return x\n{v} = {ask}\n@deco\ndef {f}(): return {n}",
    *SHARES_OF_THE_WORLD,
)
_CHANGES_IT = (
    "vars({v}).update(x={n})",
    "y = {v}\ny.x = {n}",
    "y = {v}\ny['n'] = {n}",
    "for k in ('x', 'z'): setattr({v}, k, {n})",
    "(lambda o: o.update(z={n}))({v})",
    "def tune(o): o.__dict__['x'] = {n}\ntune({v})",
    "held = [{v}]\nheld[0].x = {n}\ndel held",
    "{v}.tags.append({n})",
    "{v}.x = {ask} + {n}",
    "{w} = {v}",
    "{w} = {{'of': {v}}}",
    "del {v}.x",
    "{v}.x += 1",
    "{v}['n'] += 1",
    "{w} = copy.copy({v})",
    "{w} = SimpleNamespace(**vars({v}))",
    "with contextlib.suppress(Exception): {v}.x = {n}",
    "{w} = [{v}, {n}]",
    "{c}.a = {v}",
    "{f} = functools.partial(lambda a: (a, {n}), {v})",
)
# Cells whose statements read the world, or change what knows it.
READS_OF_THE_WORLD = tuple(m.replace("{ask}", a) for m in _MADE_OF_IT for a in _ASKS)


@st.composite
def _of_the_world(draw: st.DrawFn) -> str:
    text: str = draw(st.sampled_from((*READS_OF_THE_WORLD, *_CHANGES_IT * len(_ASKS))))
    text = text.replace("{ask}", draw(st.sampled_from(_ASKS)))
    return text.format(c=draw(_C), f=draw(_F), v=draw(_V), w=draw(_V), n=draw(_NUMBER))


def cells() -> st.SearchStrategy[list[str]]:
    """The cells of a notebook, of which every other one has something to do with the world."""
    statement = _statement() | _statement() | _of_the_world()
    cell = st.lists(statement, min_size=1, max_size=3).map("\n".join)
    seeded = _NUMBER.map("random.seed({})".format)
    return st.lists(cell | cell | cell | seeded, min_size=2, max_size=7)


def shown() -> st.SearchStrategy[list[str]]:
    """What the training cell looks at, as expressions; of names that the notebook may not have."""
    every = (*_CLASS, *_FUNCTION, *_VALUE, *_SHOWN_BESIDE, *SHOWN)
    return st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True)
