"""Objects of a class whose cell has run again are captured, with the class that they have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

DATA = "from dataclasses import dataclass, field\n@dataclass\nclass C:\n    a: int = 1\n"
# name: the cell that runs twice, what is made between, what it shows
AGAIN: dict[str, tuple[str, str, str, Any]] = {
    "data class": (DATA, "c = C(3)", "[c.a, isinstance(c, C), repr(c)]", [3, False, "C(a=3)"]),
    "frozen, with slots": (
        DATA.replace("@dataclass", "@dataclass(frozen=True, slots=True)"),
        "c = [C(3)]",
        "[c[0].a, isinstance(c[0], C)]",
        [3, False],
    ),
    "one of the other": (
        DATA + "@dataclass\nclass D(C):\n    b: int = 2\n    def sum(self): return self.a + self.b",
        "d = D(5)",
        "[d.sum(), isinstance(d, C), isinstance(d, type(d).__base__)]",
        [7, False, True],
    ),
    "an attribute that has changed": (
        DATA + "    n = 0\n",
        "C.n, c = 7, C()",
        "[type(c).n, C.n]",
        [7, 0],
    ),
    "inside another class": (
        DATA + "    @dataclass\n    class Opt:\n        lr: float = 1\n"
        "    opt: Opt = field(default_factory=Opt)",
        "c = C()\nc.opt.lr = 2",
        "[c.opt.lr, type(c).Opt is type(c.opt), isinstance(c.opt, C.Opt)]",
        [2, True, False],
    ),
    "named tuple": (
        "from collections import namedtuple\nP = namedtuple('P', 'x y')",
        "ps = [P(1, 2)]",
        "[list(ps[0]), isinstance(ps[0], P)]",
        [[1, 2], False],
    ),
    "typed named tuple": (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int = 2",
        "p = P(1)",
        "[p._asdict(), isinstance(p, P)]",
        [{"x": 1, "y": 2}, False],
    ),
    "enum": (
        "import enum\nclass M(enum.Enum):\n    A = 'a'\n    B = 'b'",
        "d = {M.A: 1}\nm = M.A",
        "[d[m], m is M.A, m is type(m).A]",
        [1, False, True],
    ),
    "flags": (
        "import enum\nclass F(enum.Flag):\n    A = enum.auto()\n    B = enum.auto()",
        "f = F.A | F.B",
        "[f.value, isinstance(f, F)]",
        [3, False],
    ),
    "made by a call": (
        "from dataclasses import make_dataclass\nimport enum\n"
        "D = make_dataclass('D', [('a', int, 1)])\nE = enum.Enum('E', 'RED GREEN')",
        "d, e = D(5), E.GREEN",
        "[d.a, e.name, isinstance(d, D)]",
        [5, "GREEN", False],
    ),
    "generic": (
        "from typing import Generic, TypeVar\nT = TypeVar('T')\n"
        "class S(Generic[T]):\n    def __init__(self): self.items = [1]",
        "s = S[int]()",
        "[s.items, isinstance(s, S)]",
        [[1], False],
    ),
    "metaclass": (
        "class M(type):\n"
        "    def __new__(m, n, b, d): return super().__new__(m, n, b, {**d, 'k': n})\n"
        "class A(metaclass=M):\n    v = 1",
        "a = A()",
        "[a.v, a.k, isinstance(a, A)]",
        [1, "A", False],
    ),
    "attrs": (
        "import attrs\n@attrs.define\nclass C:\n"
        "    a: float = attrs.field(default=1, converter=float)",
        "c = C(3)",
        "[c.a, isinstance(c, C)]",
        [3.0, False],
    ),
    "pydantic": (
        "from pydantic import BaseModel\nclass Inner(BaseModel):\n    lr: float = 0.1\n"
        "class Outer(BaseModel):\n    inner: Inner = Inner()\n    n: int = 3",
        "o = Outer(n=5, inner=Inner(lr=2))",
        "[o.model_dump(), isinstance(o, Outer)]",
        [{"inner": {"lr": 2.0}, "n": 5}, False],
    ),
    "a base that lists its classes": (
        "if 'Base' not in globals():\n    class Base:\n        known = {}\n"
        "        def __init_subclass__(cls): Base.known[cls.__name__] = cls\n" + DATA + "",
        "c = C(3)",
        "[c.a, isinstance(c, C)]",
        [3, False],
    ),
}


@pytest.mark.parametrize(("cell", "makes", "shows", "right"), AGAIN.values(), ids=list(AGAIN))
def test_an_object_made_before_has_its_older_class(
    kernel: Kernel, server: Server, cell: str, makes: str, shows: str, right: Any
) -> None:
    for package in ("attrs", "pydantic"):
        if f"import {package}" in cell or f"from {package}" in cell:
            pytest.importorskip(package)
    for text in (cell, makes, cell):
        kernel.run(text)
    assert json.loads(json.dumps(eval(shows, kernel.namespace))) == right
    program = kernel.capture(f"import json\nprint('RESULT', json.dumps({shows}))")
    assert server.results(program) == right


def test_each_of_several_versions_is_found(kernel: Kernel, server: Server) -> None:
    for number, body in enumerate(("a: int = 1", "a: int = 2\n    b: int = 2", "b: int = 3")):
        kernel.run(f"from dataclasses import dataclass\n@dataclass\nclass C:\n    {body}")
        kernel.run(f"c{number} = C()")
    program = kernel.capture(
        "import json\nprint('RESULT', json.dumps([vars(c) for c in (c0, c1, c2)]))"
    )
    assert server.results(program) == [{"a": 1}, {"a": 2, "b": 2}, {"b": 3}]


@pytest.mark.parametrize(
    ("before", "decorator", "default"),
    [
        ("x = {}", "", "x"),
        ("known = []\ndef note(cls):\n    known.append(cls)\n    return cls", "@note\n", "1"),
    ],
    ids=["a default that has changed", "a decorator that lists classes"],
)
def test_a_text_that_makes_another_class_is_refused(
    kernel: Kernel, before: str, decorator: str, default: str
) -> None:
    cell = f"{decorator}@dataclass\nclass C:\n    a: int = {default}"
    kernel.run("from dataclasses import dataclass")
    for text in (before.format(1), cell, "c = C()", before.format(2), cell):
        kernel.run(text)
    errors = [f.message for f in kernel.capture("print(c)").findings if str(f.severity) == "error"]
    assert len(errors) == 1
    assert "`c` (C) is of an older class `C`" in errors[0]
