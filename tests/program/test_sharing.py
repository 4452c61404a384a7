"""Short lists, dicts and sets that the notebook has in two places are one object in a run too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from distrain_nb.program.values.shared import shared_names

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

HOLDING = {
    "a dict": ("b = {'a': a}", "b['a']"),
    "a tuple": ("b = (a, a)", "b[1]"),
    "deep inside": ("b = {'k': ({'a': a},)}", "b['k'][0]['a']"),
    "an object": ("class H:\n    pass\nb = H()\nb.x = a", "b.x"),
    "a class": ("class H:\n    x = a\na.append(4)", "H.x"),
    "a default": ("def f(x=a): return x\na.append(4)", "f()"),
    "a closure": ("def make(x):\n    def f(): return x\n    return f\nf = make(a)", "f()"),
    "another name": ("b = a", "b"),
}


@pytest.mark.parametrize("how", HOLDING)
def test_it_is_one_object(kernel: Kernel, server: Server, how: str) -> None:
    """Each was written out by itself, and so was another one: `b` never saw what `a` got."""
    cell, expression = HOLDING[how]
    kernel.run(f"a = [1]\n{cell}")
    program = kernel.capture(f"import json\nprint('RESULT', json.dumps({expression} is a))")
    assert server.results(program) is True


def test_what_nothing_else_holds_is_written_out(kernel: Kernel) -> None:
    """The watch holds what knows the world, which is no other place in the notebook."""
    kernel.run("import os\nrank = int(os.environ.get('RANK', 0))\ndef f(): return [0.5 * rank] * 2")
    kernel.run("losses = f()")
    kernel.run("tags = ['x', ('y', [1])]\noptions = {'k': {'n': [2]}}\nd = tags[0]")
    assert "losses" not in shared_names(kernel.namespace, kernel.observer.holds())
    assert "losses" in shared_names(kernel.namespace)
    main = kernel.capture("print(tags, options)").main
    assert "tags = ['x', ('y', [1])]\noptions = {'k': {'n': [2]}}\n" in main


NANS = {
    "NumPy's": "import numpy as np\na, b = ['?', np.nan], {'k': np.nan}",
    "Python's": "import math\na, b = (math.nan, -math.nan), {'k': math.nan}\nb['k'] is a[0]",
    "an own one": "x = float('inf') - float('inf')\na, b = [x, 'NA'], {'k': x}",
}


@pytest.mark.parametrize("whose", NANS)
def test_a_nan_is_one_object(kernel: Kernel, server: Server, whose: str) -> None:
    """Else `b["k"] in a` is false in the ranks: a NaN equals nothing."""
    kernel.run(NANS[whose])
    program = kernel.capture("import json\nprint('RESULT', json.dumps(b['k'] in a))")
    assert server.results(program) is True


def test_a_nan_of_numpy_is_numpy_s(kernel: Kernel, server: Server) -> None:
    kernel.run("import numpy as np\nmissing = [None, np.nan, float('nan')]")
    cell = "import json, numpy\nprint('RESULT', json.dumps([x is numpy.nan for x in missing]))"
    assert server.results(kernel.capture(cell)) == [False, True, False]


def test_the_context_of_decimal_numbers_is_that_of_a_rank(kernel: Kernel, server: Server) -> None:
    kernel.run("import decimal\ncontext = decimal.getcontext()\ncontext.prec = 7")
    cell = "context.prec -= 2\nprint('RESULT', f'\"{decimal.Decimal(1) / 3}\"')"
    assert server.results(kernel.capture(cell)) == "0.33333"
