"""What a program says about itself, and what capture costs."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.program import capture, of_function
from distrain_nb.program.notebook import history
from distrain_nb.program.python.ipython_syntax import plain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program.notebooks import Kernel, Place, Server


def test_short_values_are_written_out(kernel: Kernel, server: Server) -> None:
    kernel.run("lr = 0.1\nname = 'ünï'\nsizes = (1, [2, {'a': None}])\nflags = {True}\nraw = b'x'")
    kernel.run("nan = float('nan')\nlong = 'x' * 500\nempty = set()")
    program = kernel.capture(
        "print('RESULT', int(flags == {True} and raw == b'x'))\nlr, name, sizes, nan, long, empty"
    )
    for line in ("lr = 0.1", "name = 'ünï'", "sizes = (1, [2, {'a': None}])", "raw = b'x'"):
        assert f"\n{line}\n" in program.main
    assert {v.name for v in program.values if v.literal is None} == {"nan", "long"}
    assert server.results(program) == 1


def test_description(kernel: Kernel) -> None:
    kernel.run("import numpy as np\nX = np.ones(1000)\nlr = 0.1\ndef f(): return lr")
    text = kernel.capture("print(f(), X)\n%matplotlib inline\nX").describe()
    assert "f: function from Cell In[1], line 4, used at Cell In[2], line 2" in text
    assert re.search(r"X: ndarray, 7\.9\d* KiB, used at Cell In\[2\], line 2\n", text)
    assert "lr: float, = 0.1, used at Cell In[1], line 4" in text
    assert "numpy==" in text
    assert "info: Cell In[2], line 3: `%matplotlib inline`" in text
    assert 'X = captured("X")' in text


def test_values_are_those_at_the_time_of_capture(kernel: Kernel, server: Server) -> None:
    kernel.run("import numpy as np\nX = np.zeros(3)")
    program = kernel.capture("print('RESULT', X.sum())")
    kernel.run("X += 1")
    assert server.results(program) == 0


def test_what_cells_set_in_the_environment_stays_there(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PLACE", "OTHER"):  # put back what the cell sets in this process
        monkeypatch.setenv(name, "before")
    kernel.run("import os\nos.environ['PLACE'] = 'set-by-a-cell'\nos.environ.update(OTHER='too')")
    program = kernel.capture("print(os.environ['PLACE'], os.environ.get('OTHER'))")
    assert "set-by-a-cell" not in program.main and not program.values


def test_devices_are_asked_for_again(kernel: Kernel) -> None:
    kernel.run("import torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'")
    kernel.run("import os\ntoken = os.environ.get('NO_SUCH_TOKEN', 'none')")
    program = kernel.capture("print(device, token)")
    assert "device = 'cuda' if torch.cuda.is_available() else 'cpu'" in program.main
    assert "token = os.environ.get('NO_SUCH_TOKEN', 'none')" in program.main
    assert not program.values


def test_given_values_come_before_the_notebooks(kernel: Kernel, server: Server) -> None:
    kernel.run("import torch\nlr = 1\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'")
    kernel.given = {"lr": 2, "device": "tpu", "data": "/tmp/x"}
    program = kernel.capture("print('RESULT', int((lr, device, data) == (2, 'tpu', '/tmp/x')))")
    assert not program.findings
    assert server.results(program) == 1


@pytest.mark.slow  # imports PyTorch in a process of its own
def test_models_share_their_weights_with_their_optimizer(kernel: Kernel, server: Server) -> None:
    kernel.run(
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.l = torch.nn.Linear(2, 1)\n"
        "    def forward(self, x): return self.l(x)"
    )
    kernel.run("net = Net()\nopt = torch.optim.SGD(net.parameters(), lr=1.0)")
    program = kernel.capture(
        "before = net.l.bias.item()\nnet(torch.ones(1, 2)).sum().backward()\nopt.step()\n"
        "print('RESULT', int(abs(net.l.bias.item() - (before - 1)) < 1e-6))"
    )
    assert server.results(program) == 1


def test_a_notebook_of_100_cells_is_parsed_once(kernel: Kernel) -> None:
    for n in range(100):
        before = f" + f{n - 1}(a)" if n else ""
        base = f"(C{n - 1})" if n else ""
        kernel.run(
            f"import os\nx{n} = {n}\n\ndef f{n}(a): return a + x{n}{before}\n\n"
            f"class C{n}{base}:\n    def m(self): return f{n}(1)"
        )
    plain.cache_clear()
    history.statements_of.cache_clear()
    first = kernel.capture("print(C99().m(), 1)")
    parsed = plain.cache_info().misses
    second = kernel.capture("print(C99().m(), 2)")
    assert parsed == 101
    assert plain.cache_info().misses == 102
    assert len(first.sources) == len(second.sources) == 200
    compile(ast.parse(first.main), "main.py", "exec")


SCRIPT = """
import math
from distrain_nb.program import capture, of_function

SCALE = 2

def area(r):
    return math.pi * r ** 2 * SCALE

def train(r=1, *, plus=0):
    print("trained", round(area(r) + plus, 2))

if __name__ == "__main__":
    cell, notebook = of_function(train{arguments})
    program = capture(cell, 1, notebook)
    assert not program.findings, program.findings
    import pathlib, sys
    program.write(pathlib.Path(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [("", "trained 6.28"), (", 2, plus=1", "trained 26.13")],
)
def test_function_of_a_script(place: Place, tmp_path: Path, arguments: str, printed: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("{arguments}", arguments))
    folder = tmp_path / "p"
    subprocess.run([sys.executable, str(script), str(folder)], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "distrain_nb.worker.rank.program", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == printed


def test_function_of_a_module_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small one: with modules of `tests`, this whole project would be read, in 5 s of CPU."""
    folder = tmp_path / "sampled"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "sample.py").write_text("def train():\n    return 'trained'\n")
    monkeypatch.syspath_prepend(tmp_path)
    cell, notebook = of_function(importlib.import_module("sampled.sample").train)
    program = capture(cell, 1, notebook)
    assert "from sampled.sample import train" in program.main
    assert {"sampled/__init__.py", "sampled/sample.py"} <= set(program.files)


@pytest.mark.parametrize(
    "bad", [lambda: 1, print, [].append, len], ids=["lambda", "print", "append", "len"]
)
def test_what_is_no_function_of_a_module(bad: object) -> None:
    with pytest.raises(OptionError, match="cannot submit"):
        of_function(bad)  # type: ignore[arg-type]
