"""Definitions stand in an order that works, whatever they need of each other."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.program.gathering.arrange import ordered
from tests.fuzzing import several
from tests.program.notebooks import Kernel, Server


def test_what_is_needed_comes_before() -> None:
    assert ordered("abc", {"a": "c", "b": "a"}, {}) == ["c", "a", "b"]


def test_otherwise_the_order_stays() -> None:
    assert ordered("dacb", {}, {}) == ["d", "a", "c", "b"]


def test_what_a_decorator_calls_comes_before_what_it_decorates() -> None:
    assert ordered("gdh", {"g": "d"}, {"d": "h"}) == ["h", "d", "g"]


def test_cycles_of_calls_keep_what_must_hold() -> None:
    order = ordered("abc", {"a": "b"}, {"b": "c", "c": "a"})
    assert order.index("b") < order.index("a")


@settings(max_examples=several(100), deadline=None)
@given(st.data())
def test_any_graph(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    names = st.integers(0, size - 1)
    rank = data.draw(st.permutations(range(size)))  # hard needs go down, so they have no cycle
    pairs = data.draw(st.lists(st.tuples(names, names)))
    before = {k: {d for a, d in pairs if a == k and rank[d] < rank[k]} for k in range(size)}
    sometime = {k: set(data.draw(st.lists(names, max_size=3))) for k in range(size)}
    order = ordered(range(size), before, sometime)
    place = {k: position for position, k in enumerate(order)}
    assert sorted(order) == list(range(size))
    assert all(place[d] < place[k] for k in before for d in before[k])


@st.composite
def notebooks(draw: st.DrawFn) -> list[str]:
    """Cells that define v0, v1, …; functions may call later ones, the rest needs earlier ones."""
    size = draw(st.integers(1, 8))
    kinds = draw(st.lists(st.sampled_from("vfcda"), min_size=size, max_size=size))
    cells = []
    for n, kind in enumerate(kinds):
        earlier = [m for m in range(n) if kinds[m] != "c"]
        classes = [m for m in range(n) if kinds[m] == "c"]
        other = f"str(n{draw(st.sampled_from(earlier))})[:2]" if earlier else "'-'"
        base = f"n{draw(st.sampled_from(classes))}" if classes else "object"
        late = f"n{draw(st.integers(0, size - 1))}"
        body = f"return '{n}' if depth > 2 else show({late}, depth + 1)"
        cells.append(
            {
                "v": f"n{n} = {n}",
                "f": f"def n{n}(depth=0):\n    {body}",
                "c": f"class n{n}({base}):\n    x{n} = {other}\n    def go(self, depth=0): {body}",
                "d": f"@keep({other})\ndef n{n}(depth=0):\n    {body}",
                "a": f"n{n} = lambda depth=0, o={other}: [o, show({late}, depth + 1) if depth < 2"
                " else 0]",
            }[kind]
        )
    return cells


TOOLS = """
def show(x, depth=0):
    if isinstance(x, type):
        return [x().go(depth), sorted(n for n in dir(x) if n[0] == 'x')]
    return x(depth) if callable(x) else x
def keep(tag):
    def decorate(f):
        def inner(depth=0): return [tag == '', f(depth)]
        return inner
    return decorate
"""


@settings(max_examples=several(60), deadline=None)
@given(notebooks(), st.randoms())
def test_random_notebooks_do_the_same_as_programs(
    server: Server, cells: list[str], random: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kernel = Kernel(Path(folder))
        kernel.run(TOOLS)
        for cell in cells:
            kernel.run(cell)
        wanted = random.sample(range(len(cells)), random.randint(1, len(cells)))
        cell = f"out = [show(x) for x in ({', '.join(f'n{n}' for n in wanted)},)]"
        program = kernel.capture(f"{cell}\nprint(out)")
        kernel.run(cell)
    assert not [f for f in program.findings if str(f.severity) == "error"]
    assert server.output(program) == f"{kernel.namespace['out']}\n"
