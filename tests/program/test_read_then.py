"""Definitions are made of what their names stood for when they ran, not of what these are now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.program.notebooks import of_rank

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program.notebooks import Kernel, Server

RANK = "import os\nu = int(os.environ.get('RANK', 0))"
REGISTRY = (
    "u = {}\ndef register(x):\n    u[x.__name__] = x\n    x.n = len(u)\n    return x\n"
    "@register\ndef f(): return 2\n@register\nclass A:\n    pass"
)


def assert_made_or_refused(kernel: Kernel, server: Server, read: str, *said: str) -> None:
    """Rank 1 has what a kernel of rank 1 has that ran the same cells, or capture says why not."""
    program = kernel.capture(f"import json\nprint('RESULT', json.dumps({read}))")
    errors = [f for f in program.findings if f.severity == "error"]
    if errors:
        assert errors[0].code == "capture.rebound"
        assert all(part in errors[0].message for part in said)
    else:
        rank_1 = replace(program, variables={"RANK": "1"})
        assert server.results(rank_1) == of_rank(kernel, 1, read)


def test_a_registry_whose_name_is_a_rank_by_now(kernel: Kernel, server: Server) -> None:
    """The decorator ran again with the rank in the registry's place: a TypeError in every rank."""
    kernel.run(REGISTRY)
    kernel.run(RANK)
    program = kernel.capture("import json\nprint('RESULT', json.dumps([f.n, f(), A.n, u]))")
    assert server.results(program) == [1, 2, 2, 0]


@pytest.mark.parametrize("since", ["u = 5", "del u"])
@pytest.mark.parametrize(
    "cell", ["def deco(f):\n    f.n = u\n    return f\n@deco\ndef f(): return 1", "class f: n = u"]
)
def test_a_rank_whose_name_is_another_by_now_is_made_again_or_refused(
    kernel: Kernel, server: Server, cell: str, since: str
) -> None:
    """The ranks had the kernel's rank, or what the name stands for now."""
    for text in (RANK, cell, since):
        kernel.run(text)
    assert_made_or_refused(kernel, server, "f.n", "was made of `u` (Cell In[2], line ")


@pytest.mark.parametrize(
    "text", ["def f(): return u", "f = lambda: u", "class f:\n    def n(): u", "def f(o): o.u = 1"]
)
def test_what_reads_it_when_it_is_called_reads_what_it_is_then(kernel: Kernel, text: str) -> None:
    for cell in (RANK, text, "u = 5"):
        kernel.run(cell)
    assert [f for f in kernel.capture("print(f)").findings if f.severity == "error"] == []


PACKAGE = """
import os
class Config(dict): pass
def resolve(config):
    for key, value in config.items():
        config[key] = os.environ.get("RANK", "0") if value == "${RANK}" else value
def set_up(args):
    args.rank = int(os.environ.get("RANK", "0"))
    return "cpu"
"""


def test_what_a_package_fills_while_it_asks_is_filled_again(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`OmegaConf.resolve(cfg)` left the kernel's rank in a configuration, which travelled."""
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "config_package.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(installed)
    kernel.run("import config_package\ncfg = config_package.Config(rank='${RANK}', lr=1)")
    kernel.run("config_package.resolve(cfg)")
    program = kernel.capture("print(cfg)")
    assert "config_package.resolve(cfg)" in program.main
    assert [finding.code for finding in program.findings] == ["capture.made-again"]


def test_arguments_that_a_package_gives_the_rank_get_it_again(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """timm's `init_distributed_device(args)` left the kernel's rank in them."""
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "config_package.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(installed)
    kernel.run("import argparse, config_package\nargs = argparse.Namespace(lr=1)")
    kernel.run("device = config_package.set_up(args)")
    main = kernel.capture("print(args.rank)").main
    assert "device = config_package.set_up(args)" in main


@pytest.mark.parametrize("since", ["u = 5", "del u", "for u in [5]: pass"])
@pytest.mark.parametrize(
    "cell",
    ["seed = u", "seed = [42 + u]", "a = {'k': u}\nseed = a['k']", "def f(): return u\nseed = f()"],
)
def test_a_value_of_a_rank_whose_name_is_another_by_now_is_made_again_or_refused(
    kernel: Kernel, server: Server, cell: str, since: str
) -> None:
    """Every rank had the kernel's value."""
    for text in (RANK, cell, since):
        kernel.run(text)
    assert_made_or_refused(kernel, server, "seed", "was made of `u` (Cell In[2], line ")


def test_a_value_that_only_met_the_rank_stays(kernel: Kernel, server: Server) -> None:
    for text in (RANK, "print(u); seed = 7", "u = 5"):
        kernel.run(text)
    assert server.results(kernel.capture("print('RESULT', seed)")) == 7


def test_a_member_of_an_enum_whose_name_is_another_class_by_now_is_the_older_ones(
    kernel: Kernel, server: Server
) -> None:
    """Its statement ran again with the other class: an AttributeError in every rank."""
    kernel.run("import enum\nclass C(enum.Enum):\n    x = 7\nu = C.x")
    kernel.run("class C: pass")
    assert server.results(kernel.capture("print('RESULT', u.value)")) == 7


ASKING = (
    "import os\nbase = 1\nclass B:\n"
    "    def __iter__(self): yield base + int(os.environ.get('RANK', 0))"
)


@pytest.mark.parametrize(
    "since",
    [
        *("from collections import OrderedDict as {}", "import json as {}", "def {}(): return [1]"),
        *("class {}: pass", "{} = 5", "del {}", "for {} in [5]: pass", "exec('{} = 5')"),
        *("import contextlib\nwith contextlib.nullcontext(5) as {}: pass", "globals()['{}'] = 5"),
        *("try: 1 / 0\nexcept Exception as {}: pass", "def f():\n    global {}\n    {} = 5\nf()"),
        *("{}, other = 5, 6", "if ({} := 5): pass"),
    ],
)
@pytest.mark.parametrize("name", ["B", "base"])
def test_what_was_made_of_a_name_that_is_another_by_now_is_made_again_or_refused(
    kernel: Kernel, server: Server, name: str, since: str
) -> None:
    """`list(B())` ran again with the later `B`: a TypeError in every rank, or another list."""
    for text in (ASKING, "w = list(B())", since.replace("{}", name)):
        kernel.run(text)
    said = f"`w` is made again with the present `{name}`, which ", "run Cell In[2], line 1 again"
    assert_made_or_refused(kernel, server, "w", *said)


@pytest.mark.parametrize("since", [ASKING, "base = 1", "import os.path", "base = 2\nbase = 1"])
def test_what_is_made_again_of_a_name_that_is_the_same_again_is_taken(
    kernel: Kernel, server: Server, since: str
) -> None:
    for text in (ASKING, "w = list(B())", since):
        kernel.run(text)
    program = replace(kernel.capture("print('RESULT', w)"), variables={"RANK": "1"})
    assert server.results(program) == [2]


def test_what_a_function_reads_before_the_cell_sets_it_is_there(
    kernel: Kernel, server: Server
) -> None:
    """The cell sets `base` itself, but `w` is made before it: a NameError in every rank."""
    for text in (ASKING, "w = list(B())"):
        kernel.run(text)
    program = kernel.capture("base = 5\nprint('RESULT', [*w, *B()])")
    assert server.results(replace(program, variables={"RANK": "1"})) == [2, 6]


def test_a_name_that_globals_set_to_no_rank_is_what_it_is(kernel: Kernel, server: Server) -> None:
    """Its statement ran again, as its text asks the environment."""
    kernel.run("import os\nv = {'r': int(os.environ.get('RANK', 0))}")
    kernel.run("globals().update(v=7)")
    assert server.results(kernel.capture("print('RESULT', v)")) == 7


def test_a_definition_that_is_another_by_now_is_named(kernel: Kernel, server: Server) -> None:
    """The rank had a TypeError at a line that the notebook ran without one."""
    made = "def outer():\n    r = int(os.environ.get('RANK', 0))\n    return lambda: r"
    for text in ("import os", made, "f = outer()", "def outer(x): return x"):
        kernel.run(text)
    said = "with the present `outer`, which Cell In[4], line 1 has set since"
    assert_made_or_refused(kernel, server, "f()", said)
    kernel.run(made)
    assert "capture.rebound" not in [f.code for f in kernel.capture("f()").findings]
