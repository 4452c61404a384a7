"""Ways of IPython to set names: ranks have what the kernel has, or are refused, or it is said."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.kernels import Kernel, kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

_RANK = "int(os.environ.get('RANK', 0))"
_MAGICS = (
    "from IPython.core.magic import register_cell_magic, register_line_magic\n"
    "@register_cell_magic\ndef doing(line, cell): get_ipython().run_cell(cell)\n"
    "@register_cell_magic\ndef skipping(line, cell): pass\n"
    "@register_line_magic\ndef giving(line): return eval(line, get_ipython().user_ns)"
)
_TWICE = (
    "import ast\nclass Twice(ast.NodeTransformer):\n    def visit_Constant(self, node):\n"
    "        return ast.Constant(node.value * 2) if node.value == 5 else node"
)
_HOOK = "import os\ndef hook(_):\n    global heard\n    heard = [{}]"
_EVENTS = "get_ipython().events.{}('post_run_cell', hook)"
_FILE = "%%writefile {}.py\nK = {}\nclass A:\n    def f(self): return K\ndef g(): return K + 1"
_RELOADING = "%load_ext autoreload\n%autoreload 2"

# The cells, of which the last is what the training cell shows.
EQUAL: dict[str, tuple[str, ...]] = {
    "a script": (_FILE.format("ways_a", 3), "%run ways_a.py", "K, A().f(), g()"),
    "a script in the notebook's names": (
        *("x = 5", "%%writefile ways_b.py\ny = x + 1\ndef g(): return x + y"),
        *("%run -i ways_b.py", "x = 9", "y, g()"),
    ),
    "a file that is loaded again": (
        *(_FILE.format("ways_c", 1), _RELOADING, "from ways_c import A, K, g\na = A()\na.s = 5"),
        *(_FILE.format("ways_c", 2222), "b = g()", "%autoreload 0", "K, a.f(), g(), a.s, b"),
    ),
    "captured output": ("%%capture out\nx = 3\nprint('hello')", "x, out.stdout.strip()"),
    "a variable": (
        *("%env WAYS_A=5", "import os\nos.environ['WAYS_B'] = os.environ['WAYS_A'] + '1'"),
        "os.environ['WAYS_A'], os.environ['WAYS_B']",
    ),
    "what is stored": ("x = [1]\n%store x", "x = lambda: 2", "%store -r x", "x"),
    "names of pylab": ("%pylab inline", "int(sum(arange(3))), float(np.pi)"),
    "a macro": (
        *("def f(): return 1", "get_ipython().define_macro('again', 'def f(): return 22\\n')"),
        *("again", "f()"),
    ),
    "cells again": ("x = [1]", "x.append(2)", "%rerun", "x"),
    "profiled and timed": (
        *(
            "n = []\ndef f(): n.append(1)",
            "%prun -q f()\n%timeit -n 3 -r 2 f()",
            "%time x = len(n)",
        ),
        "n, x",
    ),
    "outputs": ("[1, 2]", "y = _", "y.append(3)", "y"),
    "a statement that failed": ("f = lambda: 1", "f = lambda: 2; 1 / 0; f = lambda: 3", "f()"),
    "a text that runs": ("get_ipython().run_cell('z = [5]')", "z[0] += 1", "z"),
    "a name that is pushed": (
        *("import re\np = re.compile('a')", "get_ipython().push({'p': re.compile('b')})"),
        "p.pattern",
    ),
    "a cell magic": (_MAGICS, "n = 1", "%%doing\nn += 1", "%%skipping\nn = 7", "n"),
    "a thread": (
        "import threading, time\nhf = lambda: 1\ndef go():\n    global hf\n    time.sleep(.1)\n"
        "    hf = lambda: 4",
        *("threading.Thread(target=go).start()", "time.sleep(.3)", "hf()"),
    ),
    "a callback of the kernel": (
        *(_HOOK.format("lambda: 5"), _EVENTS.format("register"), _EVENTS.format("unregister")),
        "heard[0]()",
    ),
    "tasks": (
        "import asyncio\nasync def later():\n    global task\n    await asyncio.sleep(.1)\n"
        "    task = lambda: 3",
        *("t = asyncio.ensure_future(later())", "await asyncio.sleep(.3)", "task()"),
    ),
}
# What the refusal, or the warning, says.
TOLD: dict[str, tuple[str, ...]] = {
    "the rank in a cell magic": (
        *(f"{_MAGICS}\nimport os", f"%%doing\nr0 = [{_RANK}]", "r0"),
        "asked by a magic or a callback of the kernel, which ranks don't repeat",
    ),
    "the rank in a magic": (
        *(f"{_MAGICS}\nimport os", f"r1 = %giving [{_RANK}]", "r1"),
        "is IPython syntax, not Python",
    ),
    "the rank in a callback": (
        *(_HOOK.format(_RANK), _EVENTS.format("register"), _EVENTS.format("unregister"), "heard"),
        "on the world (os.environ['RANK'], Cell In[",
    ),
    "the rank in a shell's text": (
        *("%%bash --out r3\necho ${RANK:-0}", "r3"),
        "depends on the world (os.environ['RANK'], Cell In[",
    ),
    "the rank in a shell's line": ("r4 = %sx echo ${RANK:-0}", "r4", "asked by a shell command"),
    "the rank in a variable": (
        *(f"import os\nk = {_RANK}", "%env WAYS_K=$k", "os.environ['WAYS_K']"),
        "WAYS_K in the environment: every rank has the notebook's",
    ),
    "the rank in a line for a shell": (
        *(f"import os\nk = {_RANK}", "r8 = !echo $k", "r8", "depends on the world (k, Cell In["),
    ),
    "the rank in a result": (
        *("import os", f"[{_RANK}]", "r9 = Out[max(Out)]", "r9"),
        "`Out` belongs to the notebook",
    ),
    "the rank in a statement that failed": (
        *("import os\nr5 = []", f"for i in range(3):\n    r5.append({_RANK})\n    1 / 0", "r5"),
        "asked by a statement that failed",
    ),
    "a time and the rank": (
        *("import os, time", f"r6 = [time.time(), {_RANK}]", "r6"),
        "`time.time()` gives something else than in the notebook",
    ),
    "a draw and the rank": (
        *(
            "import os, numpy as np\ng = np.random.default_rng()",
            f"r7 = [g.random(), {_RANK}]",
            "r7",
        ),
        "`g.random()` gives something else than in the notebook",
    ),
    "identities": (
        *("x = [[1], [2]]\nnames = {id(part): n for n, part in enumerate(x)}", "names"),
        "`names` has the `id` of an object, which is another one in a run",
    ),
    "a tree that is changed": (
        *(_TWICE, "get_ipython().ast_transformers.append(Twice())", "5"),
        "`Twice` of IPython's `ast_transformers` changes cells, but not this one",
    ),
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel for all, whose names are reset between them."""
    folder = tmp_path_factory.mktemp("kernel")
    home = {"DISTRAIN_HOME": str(folder / "home"), "IPYTHONDIR": str(folder)}
    with kernel(folder, {**os.environ, **home}) as started:
        started.run("%load_ext distrain_nb")
        yield started


def start(running: Kernel, cells: tuple[str, ...], shown: str) -> str:
    """Run the cells and the training cell; return what the notebook says of it."""
    for cell in ("%reset -f", "get_ipython().ast_transformers.clear()", *cells):
        running.run(cell)
    outcome = running.run(f"%%distrain -n 2\nprint({shown})")
    return outcome.text + outcome.error


@pytest.mark.parametrize("name", EQUAL)
def test_equal(running: Kernel, name: str) -> None:
    *cells, shown = EQUAL[name]
    said = start(running, tuple(cells), shown)
    has = running.run(f"print({shown})").text
    logs = running.run("import distrain_nb\nprint(distrain_nb.runs()[0].logs())").text.split("\n")
    ranks = sorted(
        line for line in logs if line.startswith("[rank ") and "worked alone" not in line
    )
    assert ranks == [f"[rank {n}] {has.strip()}" for n in (0, 1)], said


@pytest.mark.parametrize("name", TOLD)
def test_told(running: Kernel, name: str) -> None:
    *cells, shown, message = TOLD[name]
    assert message in start(running, tuple(cells), shown)


def test_after_a_reset_nothing_is_asked_for_by_magics_of_before(running: Kernel) -> None:
    """Ranks registered them again, by names that were gone."""
    start(running, TOLD["the rank in a magic"][:-2], "5")
    *cells, shown = EQUAL["captured output"]
    assert "Error" not in start(running, tuple(cells), shown)


def test_a_name_that_was_deleted_owes_nothing_to_a_question_of_before(running: Kernel) -> None:
    """A callback set it by the rank; then it was deleted, and a callback set it anew."""
    for what in (_RANK, "lambda: 5"):
        cells = (_HOOK.format(what), _EVENTS.format("register"), _EVENTS.format("unregister"))
        said = start(running, cells, "heard[0]()" if what != _RANK else "heard")
        assert ("CaptureError" in said) == (what == _RANK), said


def test_the_rank_in_a_timed_statement_is_each_ranks_own(running: Kernel) -> None:
    """It was refused, as IPython's own name by which it runs was not among the notebook's."""
    assert "Error" not in start(running, ("import os", f"%time timed = {_RANK}"), "timed")
    logs = running.run("import distrain_nb\nprint(distrain_nb.runs()[0].logs())").text
    assert "[rank 0] 0" in logs and "[rank 1] 1" in logs
