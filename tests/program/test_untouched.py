"""Capture runs nothing of the user's in the kernel: no copy is read there, and none ends there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.program.values.forked import in_fork

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

FILE = """
import os
class Scratch:
    def __init__(self, path):
        self.path = path
        open(path, "w").close()
    def __del__(self):
        os.path.exists(self.path) and os.remove(self.path)
o = Scratch({path!r})
"""
# name: what makes `o`, and lists in `ran` what runs
QUIET = {
    "an end": "class C:\n    def __del__(self): ran.append(1)\no = C()",
    "the end of a copy that fails": (
        "class D:\n    def __del__(self): ran.append(1)\nclass C:\n    d = 1\n"
        "    def __reduce__(self): return read, (kept,)\nkept = D()\ndef read(d): return C()\n"
        "o = C()"
    ),
    "a state that is set": (
        "class C:\n    def __setstate__(self, state): ran.append(state)\no = C()\no.x = 1"
    ),
    "a maker": (
        "def make(x):\n    ran.append(x)\n    return C(x)\n"
        "class C:\n    def __init__(self, x): self.x = x\n"
        "    def __reduce__(self): return make, (self.x,)\no = C(1)"
    ),
    "__new__": (
        "class C:\n    def __new__(cls):\n        ran.append(1)\n"
        "        return super().__new__(cls)\no = C()\nran.clear()"
    ),
    "__getattr__": (
        "class C:\n    def __getattr__(self, name):\n        if name.startswith('__'):\n"
        "            ran.append(name) if name == '__name__' else None\n"
        "            raise AttributeError(name)\n        ran.append(name)\no = C()"
    ),
    "__eq__, __bool__, __len__": (
        "class C:\n    def __eq__(self, other): ran.append('eq')\n"
        "    def __bool__(self): ran.append('bool')\n    def __len__(self): ran.append('len')\n"
        "    def __hash__(self): ran.append('hash')\no = C()"
    ),
    "a property": (
        "class C:\n    x = 1\n    @property\n    def y(self): ran.append('y')\no = C()"
    ),
    "__instancecheck__": (
        "class M(type):\n    def __instancecheck__(cls, o): ran.append(1)\n"
        "class C(metaclass=M):\n    pass\no = C()"
    ),
}  # fmt: skip


@pytest.mark.parametrize("makes", QUIET.values(), ids=list(QUIET))
def test_nothing_runs_in_the_kernel(kernel: Kernel, server: Server, makes: str) -> None:
    kernel.run("ran = []\n" + makes)
    program = kernel.capture("import json\nprint('RESULT', json.dumps(type(o).__name__))")
    assert kernel.namespace["ran"] == []
    assert server.results(program) == "C"


def test_a_file_of_the_notebook_is_not_deleted(kernel: Kernel) -> None:
    path = kernel.folder / "kept"
    kernel.run(FILE.format(path=str(path)))
    kernel.capture("print(o)")
    assert path.exists()


# name: the notebook, the cell, what it has
ODD: dict[str, tuple[str, str, Any]] = {
    "cachetools": (
        "import cachetools\nC, k = {}, 1\n@cachetools.cached(C)\ndef f(x): return x * k\n"
        "f(3)\nk = 100",
        "[f(3), f(4), len(C)]",
        [3, 400, 2],
    ),
    "wrapt": (
        "import wrapt\ncalls = []\n@wrapt.decorator\ndef note(w, inst, args, kw):\n"
        "    calls.append(w.__name__)\n    return w(*args, **kw)\n@note\ndef f(x): return x + 1",
        "[f(2), calls]",
        [3, ["f"]],
    ),
    "a tuple that adds": (
        "class P(tuple):\n    def __radd__(self, o): return P(a + b for a, b in zip(self, o))\n"
        "d = {'a': P((1, 2)), 's': 1}",
        "list(d['a'])",
        [1, 2],
    ),
}


@pytest.mark.parametrize(("notebook", "shows", "right"), ODD.values(), ids=list(ODD))
def test_objects_that_answer_oddly_are_captured(
    kernel: Kernel, server: Server, notebook: str, shows: str, right: Any
) -> None:
    if "wrapt" in notebook or "cachetools" in notebook:
        pytest.importorskip(notebook.split()[1])
    kernel.run(notebook)
    program = kernel.capture(f"import json\nprint('RESULT', json.dumps({shows}))")
    assert server.results(program) == right


def test_a_list_that_can_not_be_read_is_refused(kernel: Kernel) -> None:
    kernel.run("class L(list):\n    def __iter__(self): raise TypeError('not here')\nl = [L([1])]")
    (finding,) = kernel.capture("print(l)").findings
    assert "`l[0]` (L) in `l` is not picklable (not here)" in finding.message


def test_a_fork_answers_or_gives_nothing() -> None:
    assert in_fork(os.getpid, 5) not in (None, os.getpid())
    assert in_fork(lambda: "x" * 2**20, 5) == "x" * 2**20
    assert in_fork(lambda: 1 / 0, 5) is None
    assert in_fork(lambda: os._exit(3), 5) is None
    assert in_fork(lambda: os.read(os.pipe()[0], 1), 0.2) is None
