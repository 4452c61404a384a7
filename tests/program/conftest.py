from __future__ import annotations

import functools
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.program.proof import forked
from distrain_nb.worker.rank.process_setting import FIRST
from distrain_nb.worker.rank.process_state import TABLE, read, write
from tests.program.notebooks import Kernel, Place, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


_HOOKS = (
    *((sys, "excepthook"), (threading, "excepthook"), (sys, "unraisablehook")),
    *((warnings, "showwarning"), (warnings, "formatwarning")),
)
# Python 3.10 tells the line of code, but not where in it: what shares a line is made again, or
# refused, together. It also takes what `__getattr__` gives for the `__getstate__` of an object.
_FROM_3_11 = (
    "test_a_value_that_only_met_the_rank_stays",
    "test_what_a_cell_asks_is_seen[x = 1; r = int(os.environ.get('RANK', 0))]",
    "test_a_shell_command_that_asks_for_the_rank_is_refused",
    "test_equal[attributes by items]",
    "test_rank_1_has_what_a_kernel_of_rank_1_has[failed]",
    r"test_what_can_not_be_read_again_is_refused[class O(dict):\n    __getattr__",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if sys.version_info < (3, 11):
        for item in items:
            if item.name.startswith(_FROM_3_11):
                item.add_marker(pytest.mark.skip("Python 3.10 can't tell it"))


@pytest.fixture(autouse=True)
def process_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what a notebook of a test has set in this process."""
    for module, name in _HOOKS:
        monkeypatch.setattr(module, name, getattr(module, name))
    before = dict(read())
    yield
    for name, value in read():
        module, first = sys.modules[name.partition(":")[0]], before.get(name, TABLE[name].usual)
        is_hook = name.endswith(("hook", "warning"))
        if not (value == first or first is FIRST or is_hook) and TABLE[name].write:
            _UNDO.get(name, functools.partial(_write_back, name))(module, value, first)


def _write_back(name: str, module: Any, _: Any, first: Any) -> None:
    write(name, module, first)


def _undo_loggers(module: Any, now: Any, before: Any) -> None:
    usual = (0, True, False)
    write("logging:getLogger()", module, {name: before.get(name, usual) for name in now})


def _undo_hooks(module: Any, now: Any, _: Any) -> None:
    for name, hooks in now.items():
        hooks = vars(module)[name]
        hooks.clear() if isinstance(hooks, dict) else setattr(module, name, None)


_UNDO: dict[str, Callable[[Any, Any, Any], object]] = {
    "copyreg:dispatch_table": lambda module, now, _: [module.dispatch_table.pop(c) for c, _ in now],
    "logging:getLogger()": _undo_loggers,
    "matplotlib:rcParams": lambda module, *_: module.rcdefaults(),
    "mimetypes:types_map": lambda module, *_: module.init(),
    "torch._tensor_str:PRINT_OPTS": lambda *_: sys.modules["torch"].set_printoptions(
        profile="default"
    ),
    "torch:autocast()": lambda module, now, _: [
        module.set_autocast_enabled(kind, False) for kind in now
    ],
    "torch.nn.modules.module:hooks": _undo_hooks,
    "torch.optim.optimizer:hooks": _undo_hooks,
    "torch:function_modes": lambda module, now, _: [module.overrides._pop_mode() for _ in now],
    "torch:saved_tensors_hooks": lambda module, *_: (
        module._C._autograd._pop_saved_tensors_default_hooks()
    ),
    "torch.backends.cuda:enable_sdp()": lambda module, now, _: write(
        "torch.backends.cuda:enable_sdp()", module, dict.fromkeys(now, True)
    ),
    "pandas:options": lambda module, now, _: [module.reset_option(key) for key in now],
}


@pytest.fixture(autouse=True)
def no_others_memory(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tests of this process have shared memory, which no cell of a test here reaches: forks
    may try cells out."""
    maps = tmp_path_factory.getbasetemp() / "maps"
    maps.touch()
    monkeypatch.setattr(forked, "_SHARED", maps)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    folder = tmp_path / "notebook"
    folder.mkdir()
    return Kernel(folder)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    served = Server(Place(tmp_path_factory.mktemp("server")).folder / "path")
    yield served
    served.close()
