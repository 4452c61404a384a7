"""What ranks make again is tried in a fork of the kernel: equal to the notebook's, or refused."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import random
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.program.proof.forked import Untried, tried

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distrain_nb.program import Program
    from tests.program.notebooks import Kernel, Server


RANK = (
    "import os\nrank = int(os.environ.get('RANK', 0))\nworld = int(os.environ.get('WORLD_SIZE', 1))"
)
FIRST, SECOND = (lambda draw: (draw(), draw()))(random.Random(1).random)
NET = (
    "import os, torch\nfrom torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n        self.rank = int(os.environ.get('RANK', 0))\n"
    "        self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)\nnet = Net()"
)

SEED = f"{RANK}\nimport random\nrandom.seed(rank)"
# Cells, an expression, and what rank 1 of 2 has: what a helper changed in what knows the rank, and
# what a statement gives by the rank though its value tells nothing of that.
RIGHT: dict[str, tuple[tuple[str, ...], str, Any]] = {
    "made double by a helper": (
        (NET, "def ready(m): m.double()\nready(net)"),
        "[net.rank, str(net.a.weight.dtype)]",
        [1, "torch.float64"],
    ),
    "weights tied by a helper": (
        (NET, "def tie(m): m.b.weight = m.a.weight\ntie(net)"),
        "[net.rank, net.a.weight is net.b.weight]",
        [1, True],
    ),
    "frozen by a helper": (
        (
            NET,
            "def freeze(m):\n    for q in m.a.parameters(): q.requires_grad = False\nfreeze(net)",
        ),
        "[q.requires_grad for q in net.parameters()]",
        [False, True],
    ),
    "a hook by a helper": (
        (NET, "def hook(m): m.a.register_forward_hook(lambda *_: None)\nhook(net)"),
        "[net.rank, len(net.a._forward_hooks)]",
        [1, 1],
    ),
    "weights by the rank": (
        (
            f"{RANK}\nimport torch\nnet = torch.nn.Linear(1, 1)\ndef fill(m, v):\n"
            "    torch.nn.init.ones_(m.weight)\n    m.bias.data.fill_(v)\nfill(net, rank)",
        ),
        "net.bias.item()",
        1.0,
    ),
    "a buffer by the rank": (
        (
            f"{RANK}\nimport torch\nclass Rows(torch.nn.Module):\n    def __init__(self, n):\n"
            "        super().__init__()\n"
            "        self.register_buffer('rows', torch.arange(n)[rank::world])\nrows = Rows(5)",
        ),
        "rows.rows.tolist()",
        [1, 3],
    ),
    "one number of a large array": (
        (
            f"{RANK}\nimport numpy as np\nclass S: pass\ns = S(); s.rank = rank\n"
            "s.a = np.zeros(10**5)",
            "def poke(o): o.a[77777] = 3.\npoke(s)",
        ),
        "[s.rank, float(s.a.sum())]",
        [1, 3.0],
    ),
    "applied once": (
        (
            f"{RANK}\nfrom types import SimpleNamespace\nargs = SimpleNamespace(rank=rank)\n"
            "over = {'note': [1]}",
            "for k, v in over.items(): setattr(args, k, v)\nover['note'].append(2)",
        ),
        "[args.rank, args.note]",
        [1, [1, 2]],
    ),
    "a name that is another by now": (
        (f"{RANK}\nx = rank\ny = x * 2\nx = 'done'",),
        "[y, x]",
        [2, "done"],
    ),
    "a class of a package": (
        (
            f"{RANK}\nfrom collections import OrderedDict, Counter\n"
            "Kind = OrderedDict if rank == 0 else Counter",
        ),
        "Kind.__name__",
        "Counter",
    ),
    "a function of Python": ((f"{RANK}\nact = len if rank == 0 else max",), "act([1, 5])", 5),
    "an import": (
        (
            f"{RANK}\nif world > 1:\n    from math import floor as f\nelse:\n"
            "    from math import ceil as f",
        ),
        "f(1.5)",
        1,
    ),
    "a module": (
        (f"{RANK}\nif world > 1:\n    import json as m\nelse:\n    import pickle as m",),
        "m.__name__",
        "json",
    ),
    "a function that only other ranks have": (
        (f"{RANK}\nif rank != 0:\n    def abs(x): return 'other'",),
        "abs(1)",
        "other",
    ),
    "a function of Python's own module": (
        (
            f"{RANK}\nimport builtins\ndef silence(first):\n    plain = builtins.ascii\n"
            "    def quiet(*a): return plain(*a) if first else -1\n    builtins.ascii = quiet",
            "silence(rank == 0)",
        ),
        "ascii([])",
        -1,
    ),
    "what was cached in another cell": (
        (
            "import functools, os\n@functools.lru_cache\n"
            "def world(): return int(os.environ.get('WORLD_SIZE', 1))",
            "_ = world()",
            "steps = 100 // world()",
        ),
        "steps",
        50,
    ),
    **{
        f"a helper named {name}": (
            (
                f"import os\ndef {name}(c): c.rank = int(os.environ.get('RANK', 0))\n"
                "class C: pass\nc = C()",
                f"{name}(c)",
            ),
            "c.rank",
            1,
        )
        for name in ("fit", "train", "minimize")
    },
    "a draw after a seed by the rank": ((SEED, "x = random.random()"), "x", FIRST),
    "a second draw": ((SEED, "x = random.random()", "y = random.random()"), "y", SECOND),
    "a draw after others by the rank": (
        (
            f"{RANK}\nimport random\nrandom.seed(1)\n_ = [random.random() for _ in range(rank)]",
            "x = random.random()",
        ),
        "x",
        SECOND,
    ),
    "a draw before a seed that all have": (
        (SEED, "x = random.random()", "random.seed(1)", "y = random.random()"),
        "[x, y]",
        [FIRST, FIRST],
    ),
    "an attribute by a name that is another by now": (
        (SEED, "class A: a = 0\nw = random.random()\nA.a = w", "w = 3"),
        "A.a",
        FIRST,
    ),
    "a default by a name that is another by now": (
        (SEED, "w = random.random()\ndef f(x=w): return x", "w = 3"),
        "f()",
        FIRST,
    ),
    "an item through names that are others by now": (
        (SEED, "w = random.random()", "v = [w]", "u = {'v': v}", "w = v = 3"),
        "u['v']",
        [FIRST],
    ),
    "weights after a seed by the rank": (
        (
            f"{RANK}\nimport torch\ntorch.manual_seed(1 - rank)",
            "net = torch.nn.Linear(1, 1)\ntorch.manual_seed(0)\nother = torch.nn.Linear(1, 1)",
        ),
        "net.weight.item() == other.weight.item()",
        True,
    ),
    "copied into an array": (
        (f"{RANK}\nimport numpy as np\na = np.zeros(2)\nnp.copyto(a, rank)",),
        "a.tolist()",
        [1.0, 1.0],
    ),
}


# What a draw does to no name of the notebook's own.
IN_MODULES = {
    "import own_draws\nown_draws.K = random.random()": "own_draws.K",
    "from own_draws import CFG\nCFG.lr = random.random()": "CFG.lr",
    "from own_draws import put\nimport own_draws\nput(random.random())": "own_draws.K",
}


@pytest.fixture(autouse=True)
def _no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "ascii", ascii)
    for variable in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)


def _errors(program: Program) -> list[str]:
    return [f.message for f in program.findings if str(f.severity) == "error"]


@pytest.mark.slow
@pytest.mark.parametrize("case", RIGHT)
def test_rank_1_has_what_its_own_notebook_had(kernel: Kernel, server: Server, case: str) -> None:
    cells, expression, value = RIGHT[case]
    for cell in cells:
        kernel.run(cell)
    program = kernel.capture(f"import json\nprint('RESULT', json.dumps({expression}))")
    as_rank = {"RANK": "1", "WORLD_SIZE": "2"}
    assert server.results(replace(program, variables=as_rank)) == value


@pytest.mark.parametrize("cell", IN_MODULES)
def test_a_draw_by_the_rank_is_each_ranks_own_in_a_module_too(
    kernel: Kernel, server: Server, beside: Path, cell: str
) -> None:
    kernel.run(SEED)
    kernel.run(cell)
    program = kernel.capture(f"import own_draws\nprint('RESULT', {IN_MODULES[cell]})")
    assert server.results(replace(program, variables={"RANK": "1"})) == FIRST


@pytest.fixture
def beside(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module beside the notebook."""
    file = kernel.folder / "own_draws.py"
    file.write_text("K, L = 1, []\nclass CFG: lr = 1\ndef put(x):\n    global K\n    K = x\n")
    monkeypatch.syspath_prepend(kernel.folder)
    yield file
    sys.modules.pop("own_draws", None)


def _drawn(program: Program) -> str:
    said = [f.message for f in program.findings if f.code == "capture.measured"]
    return said[0].partition(" may have been drawn")[0] if said else ""


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize(
    ("cell", "later", "name"),
    [
        ("w = random.random()\nx = w", "w = 3", "x"),
        ("w = random.random()\nx = [0]\nx[0] = w", "w = 3", "x"),
        ("class A: a = 0\nw = random.random()\nA.a = w", "w = 3", "A"),
        ("x = []\ndef put(to): to.append(random.random())\nput(x)", "", "x"),
        ("import own_draws\nown_draws.L.append(random.random())", "", "own_draws.L"),
    ],
)
def test_where_no_fork_can_draw_it_is_said_of_what(
    kernel: Kernel, cell: str, later: str, name: str
) -> None:
    """Of what was drawn by a name that is another one by now, nothing was said."""
    for source in (SEED, f"{cell}\nopen('written', 'w').close()", later, "y = [1]"):
        kernel.run(source)
    program = kernel.capture(f"import own_draws\n{name}, y" if "." in name else f"{name}, y")
    assert f"`{name}`" in _drawn(program) and "`y`" not in _drawn(program)


def test_what_asks_only_whether_to_print_seeds_all_ranks_alike(
    kernel: Kernel, server: Server
) -> None:
    """Ranks drew anew what the notebook had drawn, and a warning said so."""
    kernel.run(
        f"{RANK}\nimport random\ndef seed(n):\n    if rank == 0: print(n)\n    random.seed(n)"
    )
    kernel.run("seed(1)")
    kernel.run("x = random.random()")
    program = kernel.capture("import random\nprint('RESULT', [x, random.random()])")
    assert not _drawn(program)
    assert server.results(replace(program, variables={"RANK": "1"})) == [FIRST, SECOND]


def test_what_is_drawn_otherwise_is_refused_with_its_line(kernel: Kernel) -> None:
    """Every rank had other numbers than the notebook, and no warning, as there was a seed."""
    kernel.run("import os, random\nrandom.seed(0)")
    kernel.run("_ = [random.random() for _ in range(9)]")
    kernel.run("noise = random.random() + int(os.environ.get('RANK', 0))")
    (error,) = _errors(kernel.capture("print(noise)"))
    assert "`noise` is 0." in error and "move Cell In[3], line 1" in error


def test_an_object_of_a_class_that_had_its_name_before_is_refused(kernel: Kernel) -> None:
    """Every rank made it again of the new class, which the rank gives an attribute."""
    kernel.run("class A:\n    def get(self): return 'old'\na = A()")
    kernel.run(f"{RANK}\nclass A:\n    r = rank\n    def get(self): return 'new'")
    (error,) = _errors(kernel.capture("print(a.get())"))
    assert error.startswith("`a` is made again with the present `A`, which Cell In[2], line 4")


def test_what_a_cell_times_beside_the_rank_is_refused(kernel: Kernel) -> None:
    kernel.run(f"{RANK}\nimport time\ncfg = dict(rank=rank, name=f'run-{{time.time()}}')")
    (error,) = _errors(kernel.capture("print(cfg)"))
    assert error.startswith("`cfg['name']` is 'run-") and "Cell In[1], line 5" in error


def test_a_cell_that_writes_is_not_tried_and_that_is_said(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kernel.folder)
    kernel.run(f"{RANK}\nopen('note.txt', 'w').write('once')\nx = rank")
    (kernel.folder / "note.txt").write_text("mine")
    program = kernel.capture("print(x)")
    (finding,) = [f for f in program.findings if f.code == "capture.unproven"]
    assert "it writes note.txt" in finding.message and not _errors(program)
    assert (kernel.folder / "note.txt").read_text() == "mine"


def test_a_notebook_that_asks_nothing_is_not_tried(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.run("import random\nx = [random.random()]")
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("nobody asked"))
    assert "x" in kernel.capture("x = 1\nprint(x)").main


def test_the_kernel_stays_as_it_is(kernel: Kernel) -> None:
    """The cells run again in a fork: no name, variable or generator of the kernel changes."""
    kernel.run(f"{RANK}\nimport random\nlog = []\nlog.append(rank)")
    state, environment = kernel.namespace["random"].getstate(), dict(os.environ)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        kernel.capture("print(log, rank)")
    assert kernel.namespace["log"] == [0] and kernel.namespace["rank"] == 0
    assert kernel.namespace["random"].getstate() == state
    assert dict(os.environ) == environment and not output.getvalue()


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        ("cfg['device'] = 'cuda' if torch.cuda.is_available() else 'cpu'", "cfg"),
        ("cfg = dict(cfg, device=torch.cuda.device_count(), t=time.time())", "cfg"),
    ],
)
def test_what_holds_an_answer_of_the_machine_is_a_value(
    kernel: Kernel, server: Server, asks: str, says: str
) -> None:
    """What stood beside it was made again: a name by time, drawn numbers, parsed arguments."""
    kernel.run("import time, torch\ncfg = {'name': time.time()}")
    kernel.run(asks)
    program = kernel.capture("print('RESULT', cfg['name'])")
    assert server.results(program) == kernel.namespace["cfg"]["name"]
    (finding,) = [f for f in program.findings if f.code == "capture.measured"]
    assert f"`{says}` (dict) is captured with what this machine answered" in finding.message


def _writes_and_passes_over_it(path: Path) -> int:
    with contextlib.suppress(OSError):
        path.write_text("other")
    return 1


@pytest.mark.slow
def test_a_fork_changes_nothing_outside_itself(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "model.pt"
    path.write_text("mine")
    attempts = {
        "writes": lambda: _writes_and_passes_over_it(path),
        "Permission denied": lambda: torch.save(torch.ones(1), path),  # C++ opens it
        "os.remove": path.unlink,
        "os.system": lambda: os.system("true"),
        "SystemExit": lambda: exit(),
        "no answer within": lambda: time.sleep(30),
    }
    for reason, work in attempts.items():
        with pytest.raises(Untried, match=reason):
            tried(work, 1.0)
        assert path.read_text() == "mine"
    weights = torch.randn(64, 64)
    assert tried(lambda: (weights @ weights).shape[0], 20.0) == 64  # threads don't come along
