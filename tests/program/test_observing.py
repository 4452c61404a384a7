"""The kernel is watched from `%load_ext` on, and left as it was by `%unload_ext`."""

from __future__ import annotations

import os
import pickle
import sys
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from distrain_nb import escapes, observed
from distrain_nb.program import Cell, capture, current_notebook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distrain_nb.program import Program
    from tests.program.notebooks import Kernel

ASK = "int(os.environ.get('RANK', 0))"


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.delenv("RANK", raising=False)
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.ast_node_interactivity = "none"
    yield shell
    observed.stop()
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, *cells: str) -> None:
    for cell in cells:
        shell.run_cell(cell, store_history=True).raise_error()


def captured(code: str) -> Program:
    notebook = current_notebook()
    assert notebook is not None
    return capture(Cell("Cell In[99]", code), 1, notebook)


def codes(program: Program) -> set[str]:
    print(*program.findings, sep="\n")  # which setting, if a test before has left one
    return {finding.code for finding in program.findings}


@pytest.mark.parametrize(
    "cell",
    [
        f"r = {ASK}",
        f"\n\nx = 1\nr = {ASK}",
        f"x = 1; r = {ASK}",
        f"%time r = {ASK}",
        f"%%time\n\nx = 1\nr = {ASK}\ny = 2",
        f"%%capture\nx = 1\nr = {ASK}",
        f"async def f(): return {ASK}\nr = await f()",
        f"import asyncio\nasync def f(): return {ASK}\nr = await asyncio.create_task(f())",
        f'get_ipython().run_cell("r = {ASK}")',
    ],
)
def test_what_a_cell_asks_is_seen(shell: InteractiveShell, cell: str) -> None:
    run(shell, "import os", "%load_ext distrain_nb", "x = y = 0", cell)
    program = captured("print(r, x)")
    assert "r = 0" not in program.main
    assert "x = " in program.main
    (told,) = (f.message for f in program.findings if f.code == "capture.made-again")
    assert told.startswith("`r` depends on the world (os.environ['RANK'])")


@pytest.mark.parametrize("cell", [f"r = {ASK}", f"\n\nx = 1\nr = {ASK}"])
def test_what_a_cell_of_ipython_7_asks_is_seen(
    shell: InteractiveShell, cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its compiler, as in Colab, doesn't say which cell a file stands for."""
    monkeypatch.delattr(type(shell.compile), "format_code_name")
    test_what_a_cell_asks_is_seen(shell, cell)


def test_a_cell_that_ran_before_is_said_to_be_unseen(shell: InteractiveShell) -> None:
    run(shell, "import os", "a = int('1')", f"b = {ASK}", "%load_ext distrain_nb", "c = int('1')")
    program = captured("print(a, b, c)")
    (unseen,) = (f for f in program.findings if f.code == "capture.unseen")
    assert unseen.message.endswith("run its cell again: `a` (Cell In[2], line 1)")
    assert "b = int(os.environ" in program.main  # as its text says


def test_a_shell_command_is_said_to_be_unseen(shell: InteractiveShell) -> None:
    run(shell, "%load_ext distrain_nb", "lines = !uname", "%%bash --out text\nuname")
    assert codes(captured("print(lines, text)")) == {"capture.unseen"}


def test_a_shell_command_that_asks_for_the_rank_is_refused(shell: InteractiveShell) -> None:
    run(shell, "%load_ext distrain_nb", "lines = !echo $RANK")
    (error,) = (f for f in captured("print(lines)").findings if str(f.severity) == "error")
    assert error.message.startswith("`lines` depends on the world (os.environ['RANK'], Cell In[2]")


def test_settings_turn_it_off_and_on(shell: InteractiveShell) -> None:
    before = type(os.environ).__getitem__
    run(shell, "import os", "%load_ext distrain_nb")
    assert type(os.environ).__getitem__ is not before
    run(shell, "%distrain config observe=off")
    assert type(os.environ).__getitem__ is before
    run(shell, "%load_ext distrain_nb", "a = int('1')")
    assert type(os.environ).__getitem__ is before
    assert codes(captured("print(a)")) == {"capture.unseen"}
    run(shell, "%distrain config observe=on", "a = int('1')")
    assert not codes(captured("print(a)"))


def test_unloading_leaves_nothing_changed(shell: InteractiveShell) -> None:
    import torch.distributed as dist

    cls, function = type(os.environ), dist.is_initialized
    before = (cls.__getitem__, cls.__iter__, function.__code__, len(sys.meta_path))
    run_code = shell.run_code
    run(shell, "%load_ext distrain_nb", "%load_ext distrain_nb")
    assert shell.run_code != run_code
    assert dist.is_initialized is function
    assert pickle.loads(pickle.dumps(function)) is function
    assert not function()
    run(shell, "%unload_ext distrain_nb")
    assert shell.run_code == run_code
    assert (cls.__getitem__, cls.__iter__, function.__code__) == before[:3]
    assert not hasattr(function, "__wrapped__")
    assert len(sys.meta_path) == before[3]
    assert not function()


@pytest.mark.parametrize(
    "cell",
    [
        "b = args\nb.lr = 2",
        "x = 1; vars(args).update(lr=2)",
        "%time vars(args).update(lr=2)",
        "%%time\n\nargs.lr = 2",
        "import asyncio\nasync def f(): vars(args).update(lr=2)\nawait f()",
        "vars(args).update(lr=2)\n1 / 0",
        "class C: vars(args).update(lr=2)",
    ],
)
def test_what_changes_an_object_that_knows_the_world_is_seen(
    shell: InteractiveShell, cell: str
) -> None:
    run(shell, "import os", "from types import SimpleNamespace as N", "%load_ext distrain_nb")
    run(shell, f"args = N(rank={ASK}, lr=1)")
    shell.run_cell(cell, store_history=True)
    program = captured("print(args)")
    assert not [f for f in program.findings if str(f.severity) == "error"], program.findings
    assert "lr" in program.main.partition("lr=1")[2]


def test_a_change_below_a_magic_runs_again(shell: InteractiveShell) -> None:
    run(shell, "import os", "from types import SimpleNamespace as N", "%load_ext distrain_nb")
    run(shell, f"args = N(rank={ASK}, lr=1)", "%%time\nb = args\nb.lr = 2")
    program = captured("print(args)")
    assert not [f for f in program.findings if str(f.severity) == "error"]
    assert program.main.index("args = N(rank=") < program.main.index("b.lr = 2")


def test_another_extension_may_do_the_like(shell: InteractiveShell) -> None:
    run(shell, "import os", "%load_ext distrain_nb")
    cls = type(os.environ)
    ours = cls.__getitem__

    @wraps(ours)
    def theirs(self: Any, key: Any) -> Any:
        return ours(self, key)

    cls.__getitem__ = theirs  # type: ignore[method-assign]
    try:
        run(shell, f"r = {ASK}")
        assert "capture.made-again" in codes(captured("print(r)"))
        run(shell, "%unload_ext distrain_nb", "home = os.environ['PATH']")
        assert cls.__getitem__ is theirs
    finally:
        cls.__getitem__ = ours.__wrapped__  # type: ignore[attr-defined, method-assign]


def test_a_missing_variable_is_reported_without_our_frames(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "import os", "%load_ext distrain_nb")
    shell.run_cell("os.environ['NOT_THERE']", store_history=True)
    report = escapes.plain(capsys.readouterr().out)
    assert "KeyError: 'NOT_THERE'" in report
    assert "watch.py" not in report


def test_packages_ask_for_themselves(shell: InteractiveShell) -> None:
    run(
        shell,
        "%load_ext distrain_nb",
        "import torch, torch.distributed as dist\nnet = torch.nn.Linear(1, 1)",
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nloss = net(torch.ones(1)).sum()",
        "loss.backward()\nopt.step()\nsteps = len(opt.state)",
        "def log(text):\n    if not dist.is_initialized(): print(text)",
        "def train(model):\n    model.train()\n    log('trained')",
        "train(net)",
    )
    assert not codes(captured("print(net, steps)"))


def test_where_runs_are_kept_is_no_question_for_the_world(shell: InteractiveShell) -> None:
    run(shell, "%load_ext distrain_nb", "import os\nhome = os.environ['DISTRAIN_HOME']")
    watching = observed.observer_of(shell.user_ns)
    assert watching is not None
    assert not watching.sites("Cell In[2]")


@pytest.mark.parametrize(("variable", "is_made_again"), [("CUDA_VISIBLE_DEVICES", 0), ("RANK", 1)])
def test_a_package_that_looks_for_its_devices_asks_nothing_of_the_world(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, variable: str, is_made_again: int
) -> None:
    """The first `net.cuda()` does; its state dict could not travel then, even from the CPU."""
    names: dict[str, Any] = {"__name__": "gpus", "__file__": "/lib/site-packages/gpus.py"}
    exec(f"import os\ndef moved(o):\n    os.environ.get({variable!r})\n    return o", names)
    gpus = ModuleType("gpus")
    vars(gpus).update(names)
    monkeypatch.setitem(sys.modules, "gpus", gpus)
    kernel.run("import gpus\nnet = gpus.moved({'a': [1.5]})")
    kernel.run("state = {k: v * 2 for k, v in net.items()}")
    sources = [source.name for source in kernel.capture("print(state)").sources]
    assert sources == ["state"] * is_made_again
