"""State of a module beside the notebook that was set by what knows the world."""

from __future__ import annotations

import importlib
import io
import os
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from distrain_nb.observed.module_changes import own_modules
from distrain_nb.program import Cell, capture
from tests.program.notebooks import Kernel
from tests.program.random_notebooks import MODULE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.program.notebooks import Server

RANK = "import os, state_module\nrank = int(os.environ.get('RANK', 0))"
REFUSED = {
    "state_module.LR += rank": "state_module.LR",
    "state_module.LR = state_module.LR + rank": "state_module.LR",
    "state_module.STATE['a'] = rank": "state_module.STATE",
    "state_module.ITEMS.append(rank)": "state_module.ITEMS",
    "import state_module as m\nm.CFG.tags.append(rank)": "state_module.CFG.tags",
    "from state_module import STATE\nSTATE['a'] = rank": "state_module.STATE",
}
SET = {
    "state_module.LR = rank": "state_module.LR",
    "state_module.LR = int(os.environ.get('RANK', 0))": "state_module.LR",
    "state_module.NEW: int = rank": "state_module.NEW",
    "state_module.CFG.lr = rank": "state_module.CFG.lr",
    "setattr(state_module, 'LR', rank)": "state_module.LR",
    "from state_module import CFG\nCFG.lr = rank": "state_module.CFG.lr",
}


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    (tmp_path / "state_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    kernel = Kernel(tmp_path)
    kernel.run(RANK)
    yield kernel
    sys.modules.pop("state_module", None)


def in_rank_1(kernel: Kernel, server: Server, expression: str, *, watched: bool = True) -> object:
    notebook = kernel.notebook() if watched else replace(kernel.notebook(), observer=None)
    text = f"import state_module\nprint('RESULT', {expression})"
    program = capture(Cell("Cell In[9]", text), 1, notebook)
    return server.results(replace(program, variables={"RANK": "1"}))


def findings(kernel: Kernel, cell: str, text: str) -> list[tuple[str, str]]:
    with redirect_stdout(io.StringIO()):
        kernel.run(cell)
    return [
        (str(finding.severity), finding.message)
        for finding in kernel.capture(text).findings
        if finding.code in ("capture.not-portable", "capture.rebound")
    ]


@pytest.mark.parametrize("cell", REFUSED)
def test_it_is_refused_with_the_line(kernel: Kernel, cell: str) -> None:
    """Each rank had the notebook's, and the run succeeded."""
    [(severity, message)] = findings(kernel, cell, "import state_module")
    assert severity == "error"
    assert message.startswith(
        f"`{REFUSED[cell]}` has the notebook's value in every rank, though Cell"
    )
    assert "what knows `os.environ['RANK']` (Cell In[" in message


@pytest.mark.parametrize("cell", REFUSED)
def test_where_nobody_watched_the_texts_tell(kernel: Kernel, cell: str) -> None:
    kernel.run(cell)
    notebook = replace(kernel.notebook(), observer=None)
    program = capture(Cell("Cell In[9]", "import state_module"), 1, notebook)
    assert [str(f.severity) for f in program.findings if f.code == "capture.not-portable"] == [
        "error"
    ]


@pytest.mark.parametrize(
    "cell",
    [
        "state_module.bump(rank)",
        "for name in ('LR', 'extra'): setattr(state_module, name, rank)",
        "vars(state_module).update(LR=rank)",
        "def tune(cfg): cfg.lr = rank\ntune(state_module.CFG)",
        "def tune(): return int(os.environ.get('RANK', 0))\nstate_module.ITEMS.append(tune())",
    ],
)
def test_what_a_function_sets_is_seen(kernel: Kernel, cell: str) -> None:
    """`bump(0)` leaves the counter as it was: a rank that isn't the first would have another."""
    assert {severity for severity, _ in findings(kernel, cell, "import state_module")} == {"error"}


def test_what_has_been_set_since_to_something_else_is_not_refused(kernel: Kernel) -> None:
    kernel.run("state_module.bump(rank)")
    later = "state_module.calls = 7\nstate_module.ITEMS.clear()"
    assert findings(kernel, later, "import state_module") == []


ARGUMENTS = """
class TrainingArguments:
    __module__ = "transformers.training_args"
    def __init__(self): self.learning_rate, self.local_rank = 0.25, int(os.environ.get("RANK", 0))
args = TrainingArguments()
"""


@pytest.mark.parametrize(("attribute", "value"), [("learning_rate", 0.25), ("local_rank", 1)])
def test_each_rank_has_what_its_own_arguments_say(
    kernel: Kernel, server: Server, attribute: str, value: float
) -> None:
    kernel.run(ARGUMENTS)
    kernel.run(f"state_module.LR = args.{attribute}")
    assert in_rank_1(kernel, server, "state_module.LR") == value


@pytest.mark.parametrize("cell", SET)
@pytest.mark.parametrize("watched", [True, False])
def test_each_rank_sets_its_own(kernel: Kernel, server: Server, cell: str, watched: bool) -> None:
    kernel.run(cell)
    assert in_rank_1(kernel, server, SET[cell], watched=watched) == 1


@pytest.mark.parametrize(
    ("since", "value"),
    [
        ("state_module.LR = 0", 0),
        ("state_module.CFG.lr = 3\nprint(state_module.LR)\nother = state_module.CFG", 1),
        ("def tune(m): m.LR = 0", 1),
        ("for name in ['LR']: setattr(state_module, name, 0)", None),
        ("tune(state_module)", None),
        ("rank = 5", 1),
    ],
)
def test_what_has_set_it_since(kernel: Kernel, server: Server, since: str, value: object) -> None:
    """Nobody sees a statement that sets what the kernel's rank has set before."""
    kernel.run("def tune(m): m.LR = 0")
    kernel.run("state_module.LR = rank")
    refused = findings(kernel, since, "import state_module")
    assert bool(refused) is (value is None)
    if value is not None:
        assert in_rank_1(kernel, server, "state_module.LR") == value


# How one cell gives a module something of the rank, and another takes it from there; with what
# rank 1 has, or None where it is refused.
TAKEN: dict[str, tuple[str, str, object]] = {
    "an attribute": ("state_module.LR = rank", "v = [state_module.LR]", [1]),
    "of a class": ("state_module.CFG.lr = rank", "v = [state_module.CFG().lr]", [1]),
    "by a function": (
        "state_module.LR = rank",
        "def get(): return state_module.LR\nv = [get()]",
        [1],
    ),
    "by way of another": (
        "state_module.LR = rank",
        "state_module.NEW = [state_module.LR]\nv = [*state_module.NEW]",
        [1],
    ),
    "by an import": ("state_module.LR = rank", "from state_module import LR as v", 1),
    "of what an import gave": (
        "state_module.LR = rank",
        "from state_module import LR\nv = [LR]",
        [1],
    ),
    "of all that it has": ("state_module.LR = rank", "from state_module import *\nv = [LR]", [1]),
    "before": ("v = [state_module.LR]\nstate_module.LR = rank", "w = 1", [0.1]),
    "imported again since": (
        "state_module.LR = rank",
        "v = [state_module.LR]\nimport state_module",
        [1],
    ),
    "set since": ("state_module.LR = rank", "v = [state_module.LR]\nstate_module.LR = 5", [1]),
    "of a package": ("import json\njson.extra = rank", "v = [json.extra]", [1]),
    "an item": ("state_module.STATE['r'] = rank", "v = dict(state_module.STATE)", None),
    "an object with a name": ("state_module.ITEMS.append(rank)", "v = [*ITEMS]", None),
    "by the module's function": ("state_module.bump(rank)", "v = [bump(2)]", None),
}


@pytest.mark.parametrize("how", TAKEN)
def test_what_is_taken_from_it_is_each_ranks_own(kernel: Kernel, server: Server, how: str) -> None:
    """Every rank had the notebook's."""
    gives, takes, value = TAKEN[how]
    for cell in ("from state_module import ITEMS, bump", gives, takes):
        kernel.run(cell)
    if value is None:
        assert any(
            "has the notebook's value" in message for _, message in findings(kernel, "", "v")
        )
    else:
        assert in_rank_1(kernel, server, "v") == value


def test_what_another_rank_alone_changes_by_another_name_is_refused(kernel: Kernel) -> None:
    """The kernel doesn't call the function, and every rank had what it has."""
    kernel.run("from state_module import bump as up\nv = up() if rank else 8")
    refused = findings(kernel, "", "import state_module\nstate_module.calls")
    assert any("`state_module.calls` has the notebook's value" in text for _, text in refused)


def test_a_cell_that_would_change_it_twice_is_refused(kernel: Kernel) -> None:
    """Ranks had its state from the notebook, and ran the cell that had changed it once more."""
    kernel.run("import json\nos.environ['SEEN'] = 'a'")
    kernel.run("v = int(json.loads(json.dumps(dict(os.environ))).get('RANK', 0))")
    kernel.run("from state_module import bump\nbump(9)\nos.environ['SEEN'] = str(v)")
    assert any("`v` is made again" in message for _, message in findings(kernel, "", "bump()"))
    os.environ.pop("SEEN")


@pytest.mark.parametrize("value", ["(i for i in [1])", "__import__('threading').Lock()"])
@pytest.mark.parametrize("name", ["NEW", "LR"])
def test_what_a_module_was_given_and_can_not_travel_is_refused(
    kernel: Kernel, name: str, value: str
) -> None:
    """Ranks had what the module's file gives, and nothing was said."""
    (refused,) = findings(kernel, f"state_module.{name} = {value}", "import state_module")
    assert refused[1].startswith(f"`state_module.{name}` (")


def test_what_a_module_makes_for_itself_is_made_again(kernel: Kernel, tmp_path: Path) -> None:
    text = "import threading\nheld = None\nlock = threading.Lock()\ndef get():\n"
    text += "    global held\n    held = held or threading.Lock()\n    return held"
    (tmp_path / "lazy_module.py").write_text(text)
    assert findings(kernel, "import lazy_module\nlazy_module.get()", "import lazy_module") == []
    sys.modules.pop("lazy_module")


@pytest.mark.parametrize(
    "change",
    ["lazy_module.get().n += 1", "c = lazy_module.get()\nc.n = 2", "lazy_module.held.n = 2"],
)
def test_what_a_module_makes_for_itself_and_the_notebook_changes_is_refused(
    kernel: Kernel, tmp_path: Path, change: str
) -> None:
    """Ranks had the module's own, without the change."""
    text = "import threading\nheld = None\nclass Client:\n    def __init__(self):\n"
    text += "        self.n, self.lock = 1, threading.Lock()\ndef get():\n    global held\n"
    text += "    held = held or Client()\n    return held"
    (tmp_path / "lazy_module.py").write_text(text)
    cell = f"import lazy_module\nlazy_module.get()\n{change}"
    (refused,) = findings(kernel, cell, "import lazy_module")
    assert refused[1].startswith("`lazy_module.held` (Client) was changed by ")
    sys.modules.pop("lazy_module")


def test_what_changes_something_else_of_such_a_module_is_not_refused(
    kernel: Kernel, tmp_path: Path
) -> None:
    """A part of another object, and a function that only the training cell calls."""
    text = "import threading\nheld = None\nclass Client:\n    def __init__(self):\n"
    text += "        self.n, self.lock = 1, threading.Lock()\ndef get():\n    global held\n"
    text += "    held = held or Client()\n    return held\ndef settings(): return Client()"
    (tmp_path / "lazy_module.py").write_text(text)
    cell = "import lazy_module\nlazy_module.get()\nlazy_module.settings().n = 3\n"
    cell += "def reset(): lazy_module.get().n = 0"
    assert findings(kernel, cell, "import lazy_module\nreset()") == []
    sys.modules.pop("lazy_module")


@pytest.mark.parametrize(
    "cell",
    ["state_module.LR = 5", "seen = state_module.LR + rank", "seen = dict(a=rank, b=conf.LR)"],
)  # fmt: skip
def test_what_sets_nothing_of_the_world_is_not_refused(kernel: Kernel, cell: str) -> None:
    kernel.run("import state_module as conf\nstate_module.CFG.lr = 0.5")
    assert findings(kernel, cell, "import state_module") == []


def test_a_module_that_asks_while_it_is_imported_sets_nothing(
    kernel: Kernel, tmp_path: Path
) -> None:
    file = tmp_path / "asking_module.py"
    file.write_text("import os\nRANK = int(os.environ.get('RANK', 0))\nclass A: x = RANK\nB = [1]")
    assert findings(kernel, "import asking_module", "import asking_module") == []
    sys.modules.pop("asking_module")


def test_modules_of_packages_cost_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement that knows the world walks over the user's modules, twice."""
    for number in range(10_000):
        module = ModuleType(f"big_package.m{number}")
        module.__file__ = f"/lib/site-packages/big_package/m{number}.py"
        monkeypatch.setitem(sys.modules, module.__name__, module)
    before = dict(own_modules())
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        after = dict(own_modules())
    finally:
        sys.setprofile(None)
    assert after == before
    assert calls < 10_000


def test_a_module_is_the_users_from_its_import_to_its_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("come_first", "come_last"):
        Path(tmp_path, f"{name}.py").write_text("X = 1\n")
    assert "come_first" not in dict(own_modules())
    first = importlib.import_module("come_first")
    assert dict(own_modules())["come_first"] is first
    monkeypatch.delitem(sys.modules, "come_first")
    assert "come_first" not in dict(own_modules())
    again = importlib.import_module("come_first")
    assert dict(own_modules())["come_first"] is again is not first
    monkeypatch.delitem(sys.modules, "come_first")
    last = importlib.import_module("come_last")  # as many are loaded as before
    present = dict(own_modules())
    assert present["come_last"] is last
    assert "come_first" not in present


def test_a_module_that_takes_the_place_of_another_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many modules as before, and the same last one."""
    for name in ("old_part", "new_part", "last_part"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("old_part", "last_part"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.import_module(name)
    assert "old_part" in dict(own_modules())
    for name in ("old_part", "last_part"):
        del sys.modules[name]
    for name in ("new_part", "last_part"):
        importlib.import_module(name)
    assert "new_part" in dict(own_modules())
