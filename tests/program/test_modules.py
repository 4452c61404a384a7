"""Local modules, included files and requirements."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from distrain_nb.program.python.imports import imports_of
from distrain_nb.program.requirements import requirements_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program.notebooks import Kernel, Server


@pytest.fixture
def on_path(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The notebook's folder, on the path as in a kernel; its modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(kernel.folder)
    before = set(sys.modules)
    yield kernel.folder
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("name", ["f", "g"])
def test_what_a_module_was_given_is_not_imported_from_it(
    kernel: Kernel, server: Server, on_path: Path, name: str
) -> None:
    """The name was imported again: ranks had the module's own function."""
    write(on_path, {"tools.py": "def bump(): return 1"})
    kernel.run("import tools\ndef f(): return 2\ntools.bump = f")
    kernel.run(f"from tools import bump as {name}")
    program = kernel.capture(f"import tools\nprint('RESULT', [{name}(), tools.bump()])")
    assert server.results(program) == [2, 2]


@pytest.mark.parametrize(
    ("given", "shows", "right"),
    [
        ("tools.f.__defaults__ = (2,)", "tools.f()", 2),
        ("tools.f.__kwdefaults__ = {'y': 3}", "tools.f.__kwdefaults__['y']", 3),
        ("tools.f.calls = 4", "tools.f.calls", 4),
        ("tools.A.get.__defaults__ = (5,)", "tools.A().get()", 5),
        ("tools.C.lr = 6\ntools.C.__init__.__defaults__ = (6,)", "tools.C().lr", 6),
        ("tools.f.__defaults__ = (2,)\nimport importlib\nimportlib.reload(tools)", "tools.f()", 1),
    ],
)
def test_ranks_have_what_functions_of_a_module_were_given(
    kernel: Kernel, server: Server, on_path: Path, given: str, shows: str, right: int
) -> None:
    """Ranks had the defaults and attributes that the module's file gives."""
    text = (
        "from dataclasses import dataclass\ndef f(x=1, *, y=1): return x\n"
        "class A:\n    def get(self, x=1): return x\n@dataclass\nclass C:\n    lr: int = 1"
    )
    write(on_path, {"tools.py": text})
    kernel.run("import tools")
    kernel.run(given)
    program = kernel.capture(f"print('RESULT', {shows})")
    assert server.results(program) == right


@pytest.mark.parametrize("way", ["import LR, f", "import *"])
def test_what_a_module_was_given_is_so_for_who_imports_it_then(
    kernel: Kernel, server: Server, on_path: Path, way: str
) -> None:
    """Ranks imported the name before they had set it: it was the file's there."""
    write(on_path, {"config.py": "LR = 0.1\ndef f(): return LR"})
    kernel.run("from config import LR as early")
    kernel.run("import config\nconfig.LR = 7")
    kernel.run(f"from config {way}\nfast = LR * 2")
    program = kernel.capture("print('RESULT', [LR, f(), early, fast])")
    assert server.results(program) == [7, 7, 0.1, 14]


def test_modules_travel_with_what_they_import(
    kernel: Kernel, server: Server, on_path: Path
) -> None:
    write(
        on_path,
        {
            "tools.py": "import numbers_here\ndef f():\n    import late\n    return late.x + 1",
            "numbers_here.py": "from pack.inner import deep",
            "late.py": "x = 1",
            "unused.py": "1 / 0",
            "pack/__init__.py": "",
            "pack/inner.py": "from .sibling import y\nfrom . import data\ndeep = y",
            "pack/sibling.py": "y = 5",
            "pack/data/__init__.py": "",
            "pack/data/table.csv": "1,2",
            "pack/__pycache__/x.pyc": "",
            "pack/.git/config": "",
        },
    )
    program = kernel.capture("import tools\nprint('RESULT', tools.f() + tools.numbers_here.deep)")
    assert sorted(program.files) == [
        "late.py",
        "numbers_here.py",
        "pack/__init__.py",
        "pack/data/__init__.py",
        "pack/data/table.csv",
        "pack/inner.py",
        "pack/sibling.py",
        "tools.py",
    ]
    assert server.results(program) == 7
    assert {"tools", "late", "pack"} <= program.imports


def test_functions_and_instances_of_local_modules(
    kernel: Kernel, server: Server, on_path: Path
) -> None:
    write(on_path, {"shapes.py": "class Box:\n    n = 3\ndef size(b): return b.n"})
    kernel.run("from shapes import Box, size as measure\nbox = Box()\nbox.n = 4")
    program = kernel.capture("print('RESULT', measure(box))")
    assert "from shapes import size as measure" in program.main
    assert list(program.files) == ["shapes.py"]
    assert server.results(program) == 4


def test_instance_of_a_module_that_the_cell_never_names(
    kernel: Kernel, server: Server, on_path: Path
) -> None:
    write(on_path, {"hidden.py": "class Box:\n    pass"})
    kernel.run("import hidden\nbox = hidden.Box()\nbox.n = 4\ndel hidden")
    program = kernel.capture("print('RESULT', box.n)")
    assert list(program.files) == ["hidden.py"]
    assert server.results(program) == 4


def test_namespace_package_carries_its_sources(
    kernel: Kernel, server: Server, on_path: Path
) -> None:
    write(on_path, {"space/mod.py": "x = 2", "space/big.bin": "data"})
    program = kernel.capture("import space.mod\nprint('RESULT', space.mod.x)")
    assert list(program.files) == ["space/mod.py"]
    assert server.results(program) == 2


def test_module_from_another_folder_of_the_path(
    kernel: Kernel, server: Server, on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "src", {"far.py": "x = 9"})
    monkeypatch.syspath_prepend(tmp_path / "src")
    program = kernel.capture(
        "import importlib\nfar = importlib.import_module('far')\nprint('RESULT', far.x)"
    )
    assert list(program.files) == ["far.py"]
    assert server.results(program) == 9


def test_a_module_called_main_is_refused(kernel: Kernel, on_path: Path) -> None:
    write(on_path, {"main.py": "x = 1"})
    (finding,) = kernel.capture("import main").findings
    assert (finding.code, finding.where) == ("capture.name-taken", "main.py")
    assert str(on_path / "main.py") in finding.message


def test_include(kernel: Kernel, server: Server) -> None:
    write(kernel.folder, {"conf.yaml": "a: 1", "data/x.txt": "x", "data/sub/y.txt": "y"})
    cell = (
        "import json, pathlib\nhere = pathlib.Path(__file__).parent\n"
        "print('RESULT', json.dumps([(here / p).read_text() for p in"
        " ('conf.yaml', 'data/x.txt', 'data/sub/y.txt')]))"
    )
    program = kernel.capture(cell, include=["conf.yaml", "data"])
    assert server.results(program) == ["a: 1", "x", "y"]


def test_included_path_that_is_not_there(kernel: Kernel) -> None:
    (finding,) = kernel.capture("1", include=["nope.txt"]).findings
    assert finding.code == "capture.missing-file"
    assert "nope.txt" in finding.message
    assert str(kernel.folder) in finding.message


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import numpy as np", ["numpy"]),
        ("from sklearn.linear_model import Ridge", ["scikit-learn"]),
        ("import yaml", ["PyYAML"]),
        ("import os, json, collections.abc", []),
        ("import distrain_nb", []),
        ("def f():\n    import pandas", ["pandas"]),
        ("import torch.nn.functional as F", ["torch"]),
        ("import jupyter_client, traitlets", ["jupyter_client", "traitlets"]),
    ],
)
def test_requirements(code: str, names: list[str], tmp_path: Path) -> None:
    found = requirements_of(imports_of(ast.parse(code)), tmp_path)
    assert list(found) == sorted(f"{n}=={version(n).partition('+')[0]}" for n in names)


def test_only_what_is_imported_is_required(kernel: Kernel) -> None:
    kernel.run(
        "import numpy as np\nimport pandas as pd\nX = np.ones(2)\n"
        "frame = pd.DataFrame({'a': [1.0]})"
    )
    assert [r.partition("==")[0] for r in kernel.capture("X").requirements] == ["numpy"]
    assert kernel.capture("1", require=["rich"]).required == ("rich",)
    both = kernel.capture("frame").requirements
    assert [r.partition("==")[0] for r in both] == ["numpy", "pandas"]


STATEFUL = {
    "pack/__init__.py": "",
    "pack/used.py": "from .below import VALUES\nclass CFG:\n    lr = 1",
    "pack/below.py": "VALUES = {}",
    "pack/late.py": "print('late is imported')\nclass Item: pass\nITEMS = []\nN = 0",
    "pack/never.py": "print('never is imported')\nclass Item: pass\nITEMS = []",
}


def test_a_module_gets_its_state_when_it_is_imported(
    kernel: Kernel, server: Server, on_path: Path
) -> None:
    write(on_path, STATEFUL)
    kernel.run("import pack.used, pack.late, pack.never\nfrom pack.used import CFG")
    kernel.run("setattr(CFG, 'lr', 2)\npack.below.VALUES['a'] = CFG")
    kernel.run("pack.late.ITEMS.append(pack.late.Item())\nvars(pack.late)['N'] = 3")
    kernel.run("pack.never.ITEMS.append(pack.never.Item())\nx = object()")
    program = kernel.capture(
        "import pack.used\nprint(CFG.lr, pack.used.VALUES['a'] is CFG, x is None)\n"
        "late = __import__('importlib').import_module('pack' + '.late')\n"
        "print(late.N, len(late.ITEMS), type(late.ITEMS[0]) is late.Item)"
    )
    assert server.output(program) == "2 True False\nlate is imported\n3 1 True\n"
