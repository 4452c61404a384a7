"""Programs in fresh interpreters that have only the worker on their path."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import distrain_nb
from distrain_nb.worker.rank import tracebacks

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Place


def failure(kernel: Kernel, place: Place, cell: str) -> list[str]:
    done = place.start(kernel.capture(cell))
    assert done.returncode == 1, done.stdout
    return done.stderr.rstrip().split("\n")


def without_marks(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip(" ~^|+")]


def test_traceback_has_the_cells_and_their_lines(kernel: Kernel, place: Place) -> None:
    kernel.run("x = 1\n\ndef divide(a):\n    return a / 0")
    assert without_marks(
        failure(kernel, place, "def train():\n    return divide(x)\n\ntrain()")
    ) == [
        "Traceback (most recent call last):",
        "  Cell In[2], line 5, in <module>",
        "    train()",
        "  Cell In[2], line 3, in train",
        "    return divide(x)",
        "  Cell In[1], line 4, in divide",
        "    return a / 0",
        "ZeroDivisionError: division by zero",
    ]


def test_chained_exceptions(kernel: Kernel, place: Place) -> None:
    cell = "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('no') from e"
    lines = without_marks(failure(kernel, place, cell))
    assert lines[1:4] == [
        "  Cell In[1], line 3, in <module>",
        "    1 / 0",
        "ZeroDivisionError: division by zero",
    ]
    assert lines[-3] == "  Cell In[1], line 5, in <module>"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_exception_groups(kernel: Kernel, place: Place) -> None:
    cell = (
        "errors = []\nfor x in (1, 0):\n    try:\n        x / 0\n    except Exception as e:\n"
        "        errors.append(e)\nraise ExceptionGroup('two', errors)"
    )
    lines = failure(kernel, place, cell)
    assert "  |   Cell In[1], line 8, in <module>" in lines
    assert "    |   Cell In[1], line 5, in <module>" in lines


def test_import_error(kernel: Kernel, place: Place) -> None:
    program = kernel.capture("import not_installed_anywhere")
    assert [f.code for f in program.findings] == ["capture.unknown-module"]
    done = place.start(program)
    assert without_marks(done.stderr.rstrip().split("\n")) == [
        "Traceback (most recent call last):",
        "  Cell In[1], line 2, in <module>",
        "    import not_installed_anywhere",
        "ModuleNotFoundError: No module named 'not_installed_anywhere'",
    ]


def test_syntax_error_in_a_local_module(kernel: Kernel, place: Place) -> None:
    (kernel.folder / "broken_mod.py").write_text("x = 1\ndef f(:\n")
    lines = failure(kernel, place, "import broken_mod")
    assert lines[1] == "  Cell In[1], line 2, in <module>"
    assert any(line.endswith('broken_mod.py", line 2') for line in lines)
    assert lines[-1] == "SyntaxError: invalid syntax"


def test_error_behind_an_await(kernel: Kernel, place: Place) -> None:
    cell = "import asyncio\nawait asyncio.sleep(0)\nasync def f(): raise ValueError(1)\nawait f()"
    assert without_marks(failure(kernel, place, cell)) == [
        "Traceback (most recent call last):",
        "  Cell In[1], line 5, in <module>",
        "    await f()",
        "  Cell In[1], line 4, in f",
        "    async def f(): raise ValueError(1)",
        "ValueError: 1",
    ]


def test_sources_and_warnings_have_the_cells_lines(kernel: Kernel, place: Place) -> None:
    kernel.run("x = 1\ndef f():\n    return 'f'")
    cell = (
        "import inspect, warnings, json\nwarnings.warn('careful')\n"
        "print('RESULT', json.dumps([inspect.getsource(f), f.__code__.co_firstlineno]))"
    )
    program = kernel.capture(cell)
    assert place.results(program) == ["def f():\n    return 'f'\n", 2]
    assert "Cell In[2]:3: UserWarning: careful" in place.start(program).stderr


def test_main_module(kernel: Kernel, place: Place) -> None:
    cell = (
        "import json, sys, os, __main__\nclass A: pass\n"
        "print('RESULT', json.dumps([__name__, os.path.basename(__file__), sys.argv == [__file__],"
        " sys.path[0] == os.path.dirname(__file__), __main__.A is A, A.__module__]))"
    )
    expected = ["__main__", "main.py", True, True, True, "__main__"]
    assert place.results(kernel.capture(cell)) == expected


@pytest.mark.slow  # each process imports NumPy
def test_spawned_processes_get_definitions_but_run_nothing(kernel: Kernel, place: Place) -> None:
    kernel.run("import numpy as np\nX = np.arange(4)\ndef helper(x): return x + X.sum()")
    cell = (
        "import multiprocessing as mp, json\n"
        "print('ran')\nSCALE = 10\nclass Task:\n    def __init__(self, n): self.n = n\n"
        "def work(task): return int(helper(task.n) * SCALE)\n"
        "with mp.get_context('spawn').Pool(2) as pool:\n"
        "    found = pool.map(work, [Task(1), Task(2)])\n"
        "print('RESULT', json.dumps(found))"
    )
    program = kernel.capture(cell)
    assert place.results(program) == [70, 80]
    assert place.start(program).stdout.count("ran") == 1


@pytest.mark.slow
def test_spawned_processes_of_a_guarded_cell_run_it_as_a_script(
    kernel: Kernel, place: Place
) -> None:
    kernel.run("BASE = 100")
    cell = (
        "import argparse, json, multiprocessing as mp, sys\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('--n', type=int, default=2)\n"
        "args = parser.parse_args()\nLR = 0.1 * 3\nlock = mp.Lock()\n"
        "print('top of', __name__, flush=True)\n"
        "def work(n):\n"
        "    with lock:\n"
        "        return [n, round(LR, 3), args.n, BASE, work.__module__]\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        print('RESULT', json.dumps(pool.map(work, [1])))\n"
        "else:\n"
        "    LR = 7"
    )
    program = kernel.capture(cell)
    assert place.results(program) == [[1, 7, 2, 100, "__mp_main__"]]
    out = place.start(program).stdout
    assert (out.count("top of __main__"), out.count("top of __mp_main__")) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("context", ["spawn", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_spawned_processes_of_a_bare_cell_get_what_their_functions_read(
    kernel: Kernel, place: Place, context: str
) -> None:
    cell = (
        "import argparse, json, threading, multiprocessing as mp\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('--n', type=int, default=2)\n"
        "args = parser.parse_args()\nLR = 0.1 * 3\nlock = threading.Lock()\n"
        "def train():\n"
        "    print('trained', flush=True)\n    return 5\n"
        "score = train()\n"
        "def work(n):\n"
        "    with lock:\n"
        "        return [n, round(LR, 3), args.n, 'score' in globals()]\n"
        f"with mp.get_context('{context}').Pool(1) as pool:\n"
        "    found = pool.map(work, [1])\n"
        "print('RESULT', json.dumps(found))"
    )
    program = kernel.capture(cell)
    assert place.results(program) == [[1, 0.3, 2, False]]
    assert place.start(program).stdout.count("trained") == 1


@pytest.mark.slow  # imports PyTorch in processes of its own
def test_a_loader_with_spawned_workers(kernel: Kernel, place: Place) -> None:
    cell = (
        "import json, torch\nfrom torch.utils.data import DataLoader, Dataset\n"
        "scale = torch.tensor(2.0) * 3\n"
        "class Squares(Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return i * scale\n"
        "loader = DataLoader(Squares(), num_workers=1, multiprocessing_context='spawn')\n"
        "print('RESULT', json.dumps([x.item() for x in loader]))"
    )
    assert place.results(kernel.capture(cell)) == [0.0, 6.0, 12.0, 18.0]


def test_the_program_is_also_a_plain_script(kernel: Kernel, place: Place) -> None:
    kernel.run("import math\nr = 2.0\ndef area(): return math.pi * r ** 2")
    program = kernel.capture("from __future__ import annotations\nout = round(area(), 3)")
    namespace: dict[str, object] = {}
    exec(program.main, namespace)
    assert namespace["out"] == 12.566


def test_by_hand(kernel: Kernel, place: Place, tmp_path: Path) -> None:
    program = kernel.capture("import asyncio\nawait asyncio.sleep(0)\nprint('by hand')")
    assert "python -m distrain_nb.worker.rank.program" in program.main
    program.write(tmp_path / "p")
    done = subprocess.run(
        [sys.executable, "-m", "distrain_nb.worker.rank.program", str(tmp_path / "p")],
        env={"PYTHONPATH": str(place.folder / "path")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "by hand\n"


def test_the_source_map_leads_back_to_the_cells(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run("x = 1\n@staticmethod\ndef f():\n    return 1")
    cell = "if f:\n    f()"
    program = kernel.capture(cell)
    program.write(tmp_path / "p")
    lines = (tmp_path / "p" / "main.py").read_text().split("\n")
    sources = {c.label: c.source for c in kernel.cells} | {"Cell In[2]": f"%%distrain\n{cell}"}
    for segment in json.loads((tmp_path / "p" / "main.json").read_text()):
        theirs = sources[segment["label"]].split("\n")[segment["line"] - 1 :]
        mine = lines[segment["first"] - 1 : segment["last"]]
        assert mine == theirs[: len(mine)]
    assert program.segments[-1].is_cell


def test_the_worker_is_python_3_8() -> None:
    for path in (Path(distrain_nb.__file__).parent / "worker").rglob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 8))


# What PyTorch 2.11 says of two ranks on one GPU, but for numbers.
NCCL = """\
NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93, invalid usage, NCCL 2.28.9
ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
Last error:
Duplicate GPU detected : rank 1 and rank 0 both on 60"""


def test_the_headline_is_the_type_and_the_first_line() -> None:
    said = {
        ValueError("first\nsecond: x\n\nthird"): "ValueError: first",
        ValueError("\nloss is nan"): "ValueError: loss is nan",
        KeyError("x"): "KeyError: 'x'",
        RuntimeError(NCCL): "RuntimeError: Duplicate GPU detected : rank 1 and rank 0 both on 60",
        RuntimeError("of NCCL\nLast error:"): "RuntimeError: of NCCL",
        ValueError(): "ValueError",
        json.JSONDecodeError(
            "no", "{", 1
        ): "json.decoder.JSONDecodeError: no: line 1 column 2 (char 1)",
        SyntaxError("invalid syntax", ("net.py", 2, 1, "def f(:\n")): "SyntaxError: invalid syntax",
    }
    assert {error: tracebacks.headline(error) for error in said} == said


def test_a_local_module_is_named_as_in_the_notebook(kernel: Kernel, place: Place) -> None:
    (kernel.folder / "models").mkdir()
    (kernel.folder / "models" / "net.py").write_text("def build():\n    raise ValueError('no')\n")
    lines = without_marks(failure(kernel, place, "from models import net\nnet.build()"))
    assert lines[3:5] == ['  File "models/net.py", line 2, in build', "    raise ValueError('no')"]


def test_a_stack_of_cpp_is_one_line_of_the_report() -> None:
    stack = "".join(f"frame #{n}: c10::f{n}() + 0x{n} (0x7f in lib.so)\n" for n in range(30))
    text = f"RuntimeError: refused\nException raised from f at x.cpp:1:\n{stack}\nlast\n"
    assert tracebacks.without_native_frames(text).splitlines() == [
        "RuntimeError: refused",
        "Exception raised from f at x.cpp:1:",
        "  (30 frames of C++; the log has them)",
        "",
        "last",
    ]
    assert tracebacks.without_native_frames("frame #1: the user's own\n") == (
        "frame #1: the user's own\n"
    )
