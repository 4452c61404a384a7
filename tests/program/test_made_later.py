"""A run's `__main__` has the notebook's definitions, made when something finds them by text."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

pytestmark = pytest.mark.brief

PICKLES = "import pickle\npickle.dump({0}, open({1!r}, 'wb'))"
# name: the notebook, what it pickles, what the cell shows of that, and what is right
FOUND: dict[str, tuple[str, str, str, Any]] = {
    "class": ("class R:\n    def __init__(self): self.n = 5", "R()", "o.n", 5),
    "with a base and what its methods read": (
        "import math\nk = 3\ndef root(x): return math.sqrt(x) * k\nclass Base: pass\n"
        "class R(Base):\n    def f(self): return root(4)",
        "R()",
        "o.f()",
        6.0,
    ),
    "function": ("k = 3\ndef f(x): return x * k", "f", "o(2)", 6),
    "cached function": (
        "import functools\n@functools.lru_cache\ndef f(x): return x + 1\nf(1)",
        "f",
        "o(1)",
        2,
    ),
    "an attribute that has changed": ("class R:\n    n = 1\nR.n = [5]", "R()", "o.n", [5]),
    "data class, enum, named tuple": (
        "import enum\nfrom dataclasses import dataclass\nfrom collections import namedtuple\n"
        "class M(enum.Enum):\n    A = 1\n@dataclass\nclass C:\n    m: M = M.A\n"
        "P = namedtuple('P', 'x y')",
        "(C(), P(1, 2))",
        "[o[0].m.name, o[0].m is type(o[0].m).A, list(o[1])]",
        ["A", True, [1, 2]],
    ),
    "what a value makes": (
        "table = {'a': [1, 2]}\nclass R:\n    def f(self): return table['a']",
        "R()",
        "o.f()",
        [1, 2],
    ),
}


@pytest.mark.parametrize(("notebook", "obj", "shows", "right"), FOUND.values(), ids=list(FOUND))
def test_what_unpickling_names_is_made(
    kernel: Kernel,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    notebook: str,
    obj: str,
    shows: str,
    right: Any,
) -> None:
    path = str(kernel.folder / "o.pkl")
    cell = f"import pickle\no = pickle.load(open({path!r}, 'rb'))"
    program = _captured(kernel, notebook, cell, shows)
    main = ModuleType("__main__")  # where pickle looks for what it writes
    main.__dict__.update(kernel.namespace)
    monkeypatch.setitem(sys.modules, "__main__", main)
    kernel.run(PICKLES.format(obj, path))
    assert server.results(program) == right


def _captured(kernel: Kernel, notebook: str, cell: str, shows: str) -> Any:
    kernel.run(notebook)
    return kernel.capture(f"{cell}\nimport json\nprint('RESULT', json.dumps({shows}))")


def test_the_main_module_is_asked_by_name(kernel: Kernel, server: Server) -> None:
    shows = "[m.Sgd.lr, getattr(m, 'none', 7), hasattr(m, 'nothing'), m.Sgd is m.Sgd]"
    program = _captured(
        kernel, "class Sgd: lr = 2", "import sys\nm = sys.modules['__main__']", shows
    )
    assert server.results(program) == [2, 7, False, True]


def test_the_cells_own_definition_comes_first(kernel: Kernel, server: Server) -> None:
    cell = "import sys\nclass R: v = 2\nopen"
    program = _captured(kernel, "class R: v = 1", cell, "sys.modules['__main__'].R.v")
    assert server.results(program) == 2


@pytest.mark.parametrize(
    ("notebook", "why"),
    [
        ("import numpy\nt = numpy.zeros(10**5)\nclass R:\n    def f(self): return t", "needs `t`"),
        ("class R:\n    def f(self): return open_file\nopen_file = open('/dev/null')", "open_file"),
        ("class R:\n    token = 'ghp_" + "a1B2c3D4e5F6" * 3 + "'", "has a secret"),
    ],
    ids=["too large", "an open file", "a secret"],
)
def test_what_can_not_be_made_is_said(
    kernel: Kernel, server: Server, notebook: str, why: str
) -> None:
    cell = "import sys\nopen\nsys.modules['__main__'].R"
    output = server.output(_captured(kernel, notebook, cell, "1"))
    assert "`R` of the notebook is not in the run" in output
    assert why in output
    assert "Name it in the cell" in output
