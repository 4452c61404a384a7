"""What code needs and binds, compared with what running it really looks up."""

from __future__ import annotations

import ast
import builtins
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.program.python.names import names_of
from tests.fuzzing import several


def needs(source: str) -> set[str]:
    """Needed names that are not Python's own."""
    return {n for n in names_of(ast.parse(source).body).needs if not hasattr(builtins, n)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("model = model.to(device)", {"model", "device"}),
        ("x = 1\nprint(x)", set()),
        ("x += 1", {"x"}),
        ("x[0] = y", {"x", "y"}),
        ("x.a = y", {"x", "y"}),
        ("del x", {"x"}),
        ("x: int = y\nz: Kind", {"y", "Kind"}),
        ("from __future__ import annotations\nx: Kind = y", {"y", "Kind"}),
        ("if a:\n  x = 1\nelse:\n  x = 2\nx", {"a"}),
        ("if a:\n  x = 1\nx", {"a", "x"}),
        ("if a:\n  raise E\nelse:\n  x = 1\nx", {"a", "E"}),
        ("for i in xs:\n  y = i\ny", {"xs", "y"}),
        ("for i in xs:\n  if i: break\n  y = 1\nelse:\n  y = 2", {"xs"}),
        ("while x := f():\n  pass\nx", {"f"}),
        ("try:\n  x = f()\nexcept E as e:\n  x = e\nx", {"f", "E"}),
        ("try:\n  x = f()\nexcept E:\n  pass\nx", {"f", "E", "x"}),
        ("try:\n  pass\nexcept E as e:\n  pass\ne", {"E", "e"}),
        ("try:\n  f()\nfinally:\n  x = 1\nx", {"f"}),
        ("with open(p) as f:\n  t = f.read()\nt", {"p"}),
        ("match v:\n  case [a, *b]: a, b\n  case {'k': C(x=1) as c, **r}: c, r", {"v", "C"}),
        ("[x for x in xs if x > low]", {"xs", "low"}),
        ("[y for x in xs for y in x]", {"xs"}),
        ("{k: v for k, v in d.items()}", {"d"}),
        ("any((hit := x) for x in xs)\nhit", {"xs", "hit"}),
        ("(lambda a, b=c: a + b + d)(1)", {"c", "d"}),
        ("a and (b := c)\nb", {"a", "b", "c"}),
        ("def f(a, *b, c=d, **e) -> g: return a + h", {"d", "g", "h"}),
        ("def f():\n  x = 1\n  def g():\n    nonlocal x\n    x += y\n  return g", {"y"}),
        ("def f():\n  global x\n  x = 1", set()),
        ("def f():\n  global x\n  x = 1\nf()\nx", {"x"}),
        ("def f(): return x\nx = 1\nf()", set()),
        ("def f(): return x\nf()\nx = 1", {"x"}),
        ("def f(): return g()\ndef g(): return x\nf()\nx = 1", {"x"}),
        ("y = sorted(xs, key=lambda v: v * k)\nk = 1", {"xs", "k"}),
        ("class A(B, metaclass=M):\n  x = y\n  z = x\n  def f(self): return x", set("BMyx")),
        ("class A:\n  def f(self): return __class__, super().f()", set()),
        ("class A:\n  x = 1\n  y = [x for _ in r]", {"x", "r"}),
        ("def f():\n  class A:\n    x = x\n", {"x"}),
        ("@d(1)\ndef f(): ...\n@e\nclass C: ...", {"d", "e"}),
        ("async def f():\n  async for x in y:\n    await z(x)\nawait f()", {"y", "z"}),
        ("a = (lambda b: a)(b)", {"a", "b"}),
        ("class A:\n  def f(): return x\n  f()\nx = 1", {"x"}),
        ("f'{a!r:{w}}'", {"a", "w"}),
        ("import a.b, c as d\nfrom e import f as g\na, d, g", set()),
        ("df.query('x > @low and y < @high')", {"df", "low", "high"}),
        ("ﬁ = 1\nfi", set()),
    ],
)
def test_needs(source: str, expected: set[str]) -> None:
    assert needs(source) == expected


@pytest.mark.parametrize(
    ("source", "name", "certain"),
    [
        ("x", "x", True),
        ("for i in r:\n  x = 1\nx", "x", False),
        ("for i in r:\n  if i: x\n  x = 1", "x", False),
        ("try:\n  x\nexcept NameError:\n  x = 1", "x", False),
        ("try:\n  x\nexcept ValueError:\n  x = 1", "x", True),
        ("def f(): return x", "x", True),
        ("g = (x for _ in r)\nx = 1\nlist(g)", "x", False),
    ],
)
def test_certainty_decides_whether_a_missing_name_is_an_error(
    source: str, name: str, certain: bool
) -> None:
    assert names_of(ast.parse(source).body).needs[name].certain is certain


def test_places_are_those_of_the_first_use() -> None:
    found = names_of(ast.parse("def f():\n    return a\n\nb\na").body).needs
    assert {name: use.line for name, use in found.items()} == {"b": 4, "a": 5}


# -- random programs ------------------------------------------------------------------------------

EXAMPLES = several(120)
NAMES = st.sampled_from(["a", "b", "c", "d"])
EXPRESSIONS = st.recursive(
    st.one_of(NAMES, st.sampled_from(["0", "1"])),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("({0[0]} + {0[1]})".format),
        st.tuples(inner, inner, inner).map("({0[0]} if {0[1]} else {0[2]})".format),
        st.tuples(NAMES, inner).map("({0[0]} := {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} and {0[1]})".format),
        st.tuples(inner, NAMES, inner).map("sum([{0[0]} for {0[1]} in range({0[2]} % 3)])".format),
        st.tuples(NAMES, inner, inner).map("(lambda {0[0]}: {0[1]})({0[2]})".format),
    ),
    max_leaves=5,
)


def indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for text in lines for line in text.split("\n"))


def statements(blocks: Any) -> Any:
    body = st.lists(blocks, min_size=1, max_size=3).map(indented)
    return st.one_of(
        st.tuples(EXPRESSIONS, body, body).map("if {0[0]}:\n{0[1]}\nelse:\n{0[2]}".format),
        st.tuples(EXPRESSIONS, body).map("if {0[0]}:\n{0[1]}".format),
        st.tuples(NAMES, EXPRESSIONS, body).map("for {0[0]} in range({0[1]} % 3):\n{0[2]}".format),
        st.tuples(body, body).map(
            "try:\n{0[0]}\n    1 / 0\nexcept ZeroDivisionError:\n{0[1]}".format
        ),
        st.tuples(body, body).map("try:\n{0[0]}\nfinally:\n{0[1]}".format),
        st.tuples(NAMES, NAMES, body).map("def {0[0]}({0[1]}=1):\n{0[2]}\n    return 1".format),
        st.tuples(NAMES, NAMES, body).map(
            "def f():\n    global {0[0]}\n{0[2]}\n    return {0[1]}\n{0[1]} = f()".format
        ),
        st.tuples(NAMES, body).map("class {0[0]}:\n{0[1]}".format),
    )


SIMPLE = st.one_of(
    st.tuples(NAMES, EXPRESSIONS).map("{0[0]} = {0[1]}".format),
    st.tuples(NAMES, EXPRESSIONS).map("{0[0]} += {0[1]}".format),
    EXPRESSIONS,
    NAMES.map("del {}".format),
    NAMES.map("{}()".format),
)
PROGRAMS = st.lists(st.recursive(SIMPLE, statements, max_leaves=8), min_size=1, max_size=5).map(
    "\n".join
)


class Number(int):
    """A value that can be added, called and iterated, whatever a random program does."""

    def __add__(self, other: object) -> Number:
        return self

    __radd__ = __mod__ = __add__

    def __call__(self) -> Number:
        return self


def compiles(source: str) -> bool:
    try:
        compile(source, "program", "exec")
    except SyntaxError:
        return False
    return True


class Watched(dict[str, Any]):
    """A namespace that notes which of its first names are asked for before they are set."""

    def __init__(self, initial: dict[str, Any]) -> None:
        super().__init__(initial)
        self.untouched = set(initial)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name in self.untouched:
            self.asked.add(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.untouched.discard(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        if name in self.untouched:
            self.asked.add(name)
        self.untouched.discard(name)
        super().__delitem__(name)


@settings(max_examples=EXAMPLES, deadline=None)
@given(PROGRAMS)
def test_whatever_runs_with_all_names_runs_with_the_needed_ones(source: str) -> None:
    if not compiles(source):
        return
    every = {name: Number(1) for name in "abcd"}
    found = names_of(ast.parse(source).body).needs
    needed = {name: value for name, value in every.items() if name in found}
    assert outcome(source, needed) == outcome(source, every)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(SIMPLE, min_size=1, max_size=6).map("\n".join))
def test_straight_code_needs_exactly_what_it_looks_up(source: str) -> None:
    if not compiles(source):
        return
    watched = Watched({name: Number(1) for name in "abcd"})
    try:
        exec(source, {"__builtins__": builtins}, watched)
    except (NameError, TypeError):
        return  # the rest did not run
    found = names_of(ast.parse(source).body).needs
    hidden = {n for n in found if not found[n].certain}  # conditions hid them from this run
    assert watched.asked <= set(found)
    assert {n for n in found if n in "abcd"} - hidden - conditional(source) <= watched.asked


def conditional(source: str) -> set[str]:
    """Names in parts of expressions that may not run."""
    inside: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.IfExp, ast.BoolOp, ast.ListComp, ast.Lambda)):
            inside |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return inside


def outcome(source: str, namespace: dict[str, Any]) -> str:
    """How a run ends: with an error, or with these names."""
    space: dict[str, Any] = {**namespace, "__builtins__": builtins, "__name__": "program"}
    try:
        exec(compile(source, "program", "exec"), space)
    except RecursionError:
        return "RecursionError"
    except Exception as error:
        return repr(error)
    return "done"
