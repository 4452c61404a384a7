"""What pickle leaves out of an object, and ranks have all the same."""

from __future__ import annotations

import colorsys
import string
from typing import TYPE_CHECKING

import pytest

from tests.program.test_habits import shown_by

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

_BORG = "class Borg:\n    _all = {}\n    def __init__(self): self.__dict__ = Borg._all"
_PLAIN = "class A: pass\na, b = A(), A()"
_ERROR = "try:\n    try: 1 / 0\n    except ZeroDivisionError{}\nexcept ValueError as e: error = [e]"
_TRAINING = (
    "import torch, warnings\nfrom torch import nn\nnet = nn.Linear(2, 1)\n"
    "optimizer = torch.optim.SGD(net.parameters(), lr=1.0)\nhits = []"
)
_HOOK = "lambda *_: hits.append(1)"
_STEPPED = "(optimizer.step(), len(hits))[1]"
_RUN = "(net(torch.ones(1, 2)), len(hits))[1]"
_OF_MODULES = "nn.modules.module.register_module"

# The cells, of which the last is what the training cell shows.
EQUAL: dict[str, tuple[str, ...]] = {
    "objects that share attributes": (
        *(_BORG, "a, b = Borg(), Borg()\na.x = 1", "(setattr(a, 'x', 5), b.x)[1]"),
    ),
    "an object that shares them with its class": (
        *(_BORG, "a = Borg()\na.x = 1", "(setattr(Borg(), 'x', 5), a.x)[1]"),
    ),
    "attributes by another name": (
        *(_PLAIN, "a.x = 1\nconfig = vars(a)", "(config.update(x=5), a.x)[1]"),
    ),
    "a dict that is its own attributes": (
        "class D(dict):\n    __setattr__ = dict.__setitem__\n"
        "d = D(x=1)\nobject.__setattr__(d, '__dict__', d)",
        "(setattr(d, 'y', 5), d['y'], d.x, d.y)",
    ),
    "the cause of an error": (
        _ERROR.format(" as z: raise ValueError('v') from z"),
        "repr(error[0].__cause__), error[0].__suppress_context__",
    ),
    "the context of an error": (
        _ERROR.format(": raise ValueError('v')"),
        "repr(error[0].__context__), error[0].__suppress_context__",
    ),
    "a pattern set by no statement": (
        *("import re\np = re.compile('a')", "globals()['p'] = re.compile('b')", "p.pattern"),
    ),
    "annotations": ("def f(x: int): return x", "f.__annotations__['x'] = str", "f.__annotations__"),
}
OF_TORCH: dict[str, tuple[str, ...]] = {
    "a scheduler's optimizer": (
        f"{_TRAINING}\nschedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)",
        "warnings.simplefilter('error'), optimizer.step(), schedule.step(), schedule.last_epoch",
    ),
    "an optimizer's hook": (
        f"{_TRAINING}\noptimizer.register_step_post_hook({_HOOK})",
        _STEPPED,
    ),
    "a hook of an optimizer's state": (
        f"{_TRAINING}\noptimizer.register_state_dict_pre_hook({_HOOK})",
        "(optimizer.state_dict(), len(hits))[1]",
    ),
    "a hook of all optimizers": (
        f"{_TRAINING}\nfrom torch.optim.optimizer import register_optimizer_step_pre_hook as on\n"
        f"on({_HOOK})",
        _STEPPED,
    ),
    "a hook of all modules": (f"{_TRAINING}\n{_OF_MODULES}_forward_hook({_HOOK})", _RUN),
    "a hook of all gradients": (
        f"{_TRAINING}\n{_OF_MODULES}_full_backward_hook({_HOOK})",
        "(net(torch.ones(1, 2, requires_grad=True)).sum().backward(), len(hits))[1]",
    ),
}


@pytest.mark.parametrize(
    "name", [*EQUAL, *(pytest.param(name, marks=pytest.mark.slow) for name in OF_TORCH)]
)
def test_equal(kernel: Kernel, server: Server, name: str) -> None:
    *cells, shown = {**EQUAL, **OF_TORCH}[name]
    has, run = shown_by(kernel, server, tuple(cells), shown)
    assert run == has


def test_a_method_with_other_annotations_is_refused(kernel: Kernel, server: Server) -> None:
    cells = ("class A:\n    def f(self, x: int): return x", "A.f.__annotations__['x'] = str")
    _, said = shown_by(kernel, server, cells, "A.f.__annotations__")
    assert "`A.f.__annotations__` is {'x: str'} in the notebook" in said


def test_a_logger_set_by_no_statement_is_refused(kernel: Kernel, server: Server) -> None:
    cells = (
        "import logging\nx = logging.getLogger('a')",
        "exec('x = logging.getLogger(\"b\")')",
    )
    _, said = shown_by(kernel, server, cells, "x.name")
    assert "`x.name` is 'b' in the notebook" in said


@pytest.mark.parametrize(
    "patched",
    [
        "def put(module, name, value): setattr(module, name, value)\n"
        "put(colorsys, 'rgb_to_yiq', lambda *_: 'mine')",
        "from unittest import mock\npatch = mock.patch('colorsys.rgb_to_yiq')\npatch.start()",
        "def put(cls): cls.substitute = lambda *_: 'mine'\nput(Template)",
    ],
)
def test_a_package_that_nobody_sees_changed_is_refused(
    kernel: Kernel, server: Server, monkeypatch: pytest.MonkeyPatch, patched: str
) -> None:
    _restore(monkeypatch)
    shown = "Template('a').substitute()" if "Template" in patched else _CHANGED
    cells = ("import colorsys\nfrom string import Template", patched)
    _, said = shown_by(kernel, server, cells, shown)
    assert "in the notebook (Cell In[3], line 2)" in said and "__module__` is '" in said


def test_a_package_that_a_statement_changes_is_no_alarm(
    kernel: Kernel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    _restore(monkeypatch)
    cells = ("import colorsys", "colorsys.rgb_to_yiq = lambda *_: 'mine'")
    has, run = shown_by(kernel, server, cells, _CHANGED)
    assert run == has


_CHANGED = "colorsys.rgb_to_yiq(0, 0, 0)"


def _restore(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((colorsys, "rgb_to_yiq"), (string.Template, "substitute")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
