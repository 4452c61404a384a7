"""What a package or a local module keeps is the same object in ranks, whatever leads to it."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import sys
import types
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from distrain_nb.program.notebook.package_objects import PackageObjects
from distrain_nb.worker.pickles import Restoring

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

_MODULE = """
import random
CFG = {"lr": 1, "opt": {"name": "sgd"}}
MISSING, R = object(), random.Random(3)
class Loader:
    tags = ["a"]
def build(given=CFG, *, again=CFG): return CFG, given["lr"], again["lr"], Loader.tags
def is_missing(x=MISSING): return x is MISSING
EMPTY = NOTHING = ()
def empty(of=()): return of
"""
_IMPORTS = """
from kept import CFG, MISSING
def lr(given=CFG): return CFG["lr"], given["lr"], MISSING
"""
_MASK = "import numpy as np\nopt = np.ma.masked_print_option"
_MASKED = "str(np.ma.array([1], mask=[1])), opt is np.ma.masked_print_option"
_ENCODER = "import json\ne = json._default_encoder"

# The cells, of which the last is what the training cell shows.
EQUAL: dict[str, tuple[str, ...]] = {
    "a sentinel": (
        "import dataclasses\nd = {'x': dataclasses.MISSING}",
        "d['x'] is dataclasses.MISSING",
    ),
    "methods of a generator": (
        "import random, functools\nimport numpy as np\nclass A: pass\na = A()\n"
        "a.draw, p = random.random, functools.partial(np.random.normal, 0)",
        "(random.seed(1), np.random.seed(1), a.draw(), p(), random.random(), np.random.rand())",
    ),
    "a generator": (
        "import torch\ntorch.manual_seed(3)\nd = {'g': torch.default_generator}",
        "(torch.manual_seed(5), torch.rand(1, generator=d['g']), torch.rand(1))[1:]",
    ),
    "a setting by another name": (_MASK, "opt.set_display('XX')", _MASKED),
    "an attribute by another name": (_ENCODER, "e.skipkeys = True", "json.dumps({(1,): 2})"),
    "what a function of the package has made": (
        "import mimetypes\nmimetypes.init()\ndb = mimetypes._db",
        "db.guess_type('a.html')",
    ),
    "a local module's dict": (
        "import kept\ncfg, opt, tags = kept.CFG, kept.CFG['opt'], kept.Loader.tags",
        "(cfg.update(lr=5), opt.update(name='adam'), tags.append('b'), kept.build())",
    ),
    "a local module's dict, which has changed": (
        "import kept\ncfg = kept.CFG\ncfg['lr'] = 3",
        "(cfg.update(more=5), kept.build())",
    ),
    "a dict that another module imports": (
        "import imports, kept\nkept.CFG['lr'] = 3",
        "imports.lr()[:2], imports.CFG is kept.CFG, imports.MISSING is kept.MISSING",
    ),
    "a dict in place of one that another module and a function have": (
        "import imports, kept\nkept.CFG = {'lr': 7}",
        "imports.lr()[:2], imports.CFG is kept.CFG, kept.build()[1:]",
    ),
    "a dict that a name has by an import, and another in its place": (
        "import kept\nfrom kept import CFG",
        "kept.CFG = {'lr': 7}",
        "CFG['lr'], CFG is kept.CFG, kept.CFG['lr']",
    ),
    "a dict that a name has by an import, which has changed": (
        "import kept\nfrom kept import CFG",
        "CFG['lr'] = 7",
        "CFG['lr'], CFG is kept.CFG, kept.build()[1:3]",
    ),
    "what stood for a default": (
        "import kept\nkept.EMPTY = [1]",
        "kept.EMPTY, kept.empty(), kept.NOTHING",
    ),
    "what only the cell imports": (
        "import kept\ncfg = kept.CFG\ndel kept",
        "(cfg.update(lr=5), __import__('kept').build())",
    ),
    "a local module's sentinel and generator": (
        "import kept\nh = {'m': kept.MISSING, 'r': kept.R}",
        "kept.is_missing(), kept.is_missing(h['m']), h['r'] is kept.R, h['r'].random()",
    ),
}


@pytest.fixture(autouse=True)
def module(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("kept", _MODULE), ("imports", _IMPORTS)):
        (kernel.folder / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(kernel.folder)
    for name in ("skipkeys", "sort_keys"):
        monkeypatch.setattr(json._default_encoder, name, False)
    monkeypatch.setattr(np.ma.masked_print_option, "_display", "--")


@pytest.mark.parametrize("name", EQUAL)
def test_same_object(kernel: Kernel, server: Server, name: str) -> None:
    *cells, shown = EQUAL[name]
    for cell in cells:
        kernel.run(cell)
    output = server.output(kernel.capture(f"print({shown})"))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        kernel.run(f"print({shown})")
    assert output == out.getvalue()


def test_a_large_constant_of_a_module_is_its_files(
    kernel: Kernel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too large to travel, it was said to have been set in the notebook."""
    items = ", ".join(f"'word{n}': {n}" for n in range(120_000))
    (kernel.folder / "vocabulary.py").write_text(f"WORDS = {{{items}}}\n")
    monkeypatch.delitem(sys.modules, "vocabulary", raising=False)
    kernel.run("import vocabulary")
    program = kernel.capture("print(len(vocabulary.WORDS))")
    assert not [f for f in program.findings if str(f.severity) == "error"]
    assert server.output(program) == "120000\n"
    kernel.run("vocabulary.WORDS['new'] = 1")
    findings = kernel.capture("print(len(vocabulary.WORDS))").findings
    (refused,) = (f for f in findings if str(f.severity) == "error")
    assert "`vocabulary.WORDS` (dict)" in refused.message


def test_what_nobody_repeats_is_refused(kernel: Kernel, server: Server) -> None:
    kernel.run(f"{_ENCODER}\ndef tune(o): vars(o).update(sort_keys=True)")
    kernel.run("tune(e)")
    output = server.output(kernel.capture("print(json.dumps({'b': 1, 'a': 2}), e)"))
    assert "`e.sort_keys` is True in the notebook (Cell In[3], line 2) and False in" in output


def test_another_object_by_that_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="_encoder is JSONEncoder in the run"):
        Restoring(b"", {}).restore("of package", "json", "_default_encoder", "a.B")


def test_values_and_what_functions_set_are_copied() -> None:
    import datetime
    import mimetypes

    mimetypes.init()
    place = PackageObjects().place
    for value in (datetime.timezone.utc, mimetypes._db, 3, "x", [], len, PackageObjects):  # type: ignore[attr-defined]
        assert place(value) is None


def test_modules_that_come_meanwhile_disturb_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads import while a notebook's packages are looked through: here, each collection of
    garbage does, which any new tuple may begin."""
    home = types.ModuleType("coming_meanwhile")
    monkeypatch.setitem(sys.modules, home.__name__, home)
    came = [types.ModuleType(f"coming_meanwhile.m{n}") for n in range(3_000)]

    def come(phase: str, _info: object) -> None:
        if phase == "start" and came:
            module = came.pop()
            sys.modules[module.__name__] = module
            setattr(home, module.__name__.rpartition(".")[2], module)

    thresholds = gc.get_threshold()
    gc.callbacks.append(come)
    gc.set_threshold(1)
    try:
        assert PackageObjects().place(torch.default_generator) == ("torch", "default_generator")
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(come)
        for name in [name for name in sys.modules if name.startswith("coming_meanwhile.")]:
            del sys.modules[name]
    assert len(came) < 3_000
