"""What the observer saw of statements decides what a rank runs again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

RANK = "int(os.environ.get('RANK', 0))"
# name: the notebook's cells (one may fail), what rank 1 prints of `u`
EQUAL = {
    "failed": (
        (f"u = {{'r': {RANK}}}", "u['n'] = 1; u.append(2); u['never'] = 3"),
        "{'r': 1, 'n': 1}",
    ),
    "behind one that failed": ((f"u = {RANK}", "1 / 0\nu = 5"), "1"),
    "replaced by a function": (
        (f"u = [{RANK}]", "def change():\n    global u\n    u = {}", "change()"),
        "{}",
    ),
    "bound since": ((f"u = [{RANK}]", "globals().update(u=[])", f"u = [{RANK}]"), "[1]"),
    "class changed by what knows the world": (
        ("class A: u = []", f"v = [{RANK}]", "A.u.append(v)\nu = A.u"),
        "[[1]]",
    ),
    "class of another one by now": (
        ("class A: x = 5", "class B(A): pass", f"class A: x = {RANK}", "def u(): return B.x"),
        "5",
    ),
    "class of one that is a value": (
        (
            f"class A: x = [A for A in ()]\nv = [{RANK}]",
            "A.x.append(A)",
            "class B(A): c = v\nu = B",
        ),
        "[1]",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_rank_1_has_what_a_kernel_of_rank_1_has(kernel: Kernel, server: Server, name: str) -> None:
    cells, shown = EQUAL[name]
    kernel.run("import os")
    for cell in cells:
        kernel.run(cell, quiet=True)
    program = kernel.capture("print(u() if hasattr(u, '__code__') else getattr(u, 'c', u))")
    assert not [f for f in program.findings if str(f.severity) == "error"]
    assert server.output(replace(program, variables={"RANK": "1"})) == f"{shown}\n"


def test_what_a_statement_took_is_made_again(kernel: Kernel, server: Server) -> None:
    kernel.run("import functools, os")
    kernel.run(
        "class A:\n    @functools.cached_property\n"
        f"    def r(self): return {RANK}\nu = A().r\nA.new = u"
    )
    kernel.run("u = 0.5")
    program = kernel.capture("print(A.new)")
    assert not [f for f in program.findings if str(f.severity) == "error"]
    assert server.output(replace(program, variables={"RANK": "1"})) == "1\n"


FAILS = "def say():\n    if int(os.environ.get('RANK', 0)) == 0: [].missing()"


@pytest.mark.parametrize("cell", ["say()\ndef g(): return 2", "say(); g = 2", "g = say()"])
def test_what_another_rank_sets_behind_a_failure_is_told(kernel: Kernel, cell: str) -> None:
    for text in ("import os", FAILS, "g = 1", cell):
        kernel.run(text, quiet=True)
    (warning,) = (f for f in kernel.capture("print(g)").findings if str(f.severity) == "warning")
    assert "goes on and sets `g`" in warning.message
    kernel.run("g = 3")
    assert not [f for f in kernel.capture("print(g)").findings if str(f.severity) == "warning"]


def test_a_failure_that_every_rank_has_is_told_of_no_name(kernel: Kernel) -> None:
    asks = "r = int(os.environ.get('RANK', 0))"
    for text in ("import os", "g = 1", f"{asks}; [].missing()\ng = 2"):
        kernel.run(text, quiet=True)
    assert not [f for f in kernel.capture("print(g, r)").findings if str(f.severity) == "warning"]
