"""Modules beside the notebook that ask for the rank while they are imported."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.program.notebooks import Kernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.program.notebooks import Server

MODULE = """
import dataclasses, functools, os
RANK = int(os.environ.get("RANK", 0))
class Config:
    rank = RANK
    class Inner:
        rank = RANK
    def get(self): return self.rank
class Sub(Config):
    other = Config.rank
@dataclasses.dataclass
class Data:
    rank: int = RANK
def default(rank=RANK): return rank
def decorate(function):
    function.rank = RANK
    return function
@decorate
def decorated(): ...
items = [RANK]
class Made(type):
    def __new__(meta, name, bases, names):
        return super().__new__(meta, name, bases, {**names, "rank": RANK})
class ByMeta(metaclass=Made): ...
class Later: ...
Later.rank = RANK
for name in ["loop"]: setattr(Later, name, RANK)
"""
IMPORTS = "import asks, package.asks\nimport package.asks as short\nfrom asks import *\n"
READS = [
    "asks.RANK", "getattr(asks, 'RANK')", "vars(asks)['RANK']", "asks.Config.rank",
    "asks.Config().get()", "asks.Config.Inner.rank", "asks.Sub.other", "asks.Data().rank",
    "asks.default()", "asks.decorated.rank", "asks.items[0]", "asks.ByMeta.rank",
    "asks.Later.rank", "asks.Later.loop", "package.asks.Config.rank", "short.RANK",
    "Config.rank", "default()",
]  # fmt: skip


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    (tmp_path / "asks.py").write_text(MODULE)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "asks.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    kernel = Kernel(tmp_path)
    kernel.run(IMPORTS)
    yield kernel
    for name in ("asks", "package", "package.asks"):
        sys.modules.pop(name, None)


def in_rank_1(kernel: Kernel, server: Server, expression: str) -> object:
    program = kernel.capture(f"print('RESULT', {expression})")
    return server.results(replace(program, variables={"RANK": "1"}))


@pytest.mark.parametrize("read", READS)
def test_each_rank_has_its_own(kernel: Kernel, server: Server, read: str) -> None:
    assert in_rank_1(kernel, server, read) == 1


@pytest.mark.parametrize("read", READS)
def test_a_name_that_was_set_by_it_is_made_again(kernel: Kernel, server: Server, read: str) -> None:
    kernel.run(f"value = {read}")
    assert in_rank_1(kernel, server, "value") == 1


@pytest.mark.parametrize(
    "path",
    ["asks.RANK", "asks.Config.rank", "asks.Later.loop", "asks.Later.new", "asks.ByMeta.new"],
)
def test_what_has_been_set_since_is_a_value_like_others(
    kernel: Kernel, server: Server, path: str
) -> None:
    kernel.run(f"{path} = 7")
    assert in_rank_1(kernel, server, path) == 7


@pytest.mark.parametrize(
    ("change", "path"),
    [("asks.items.append(7)", "items"), ("asks.decorated.rank = 7", "decorated")],
)
def test_what_has_changed_in_parts_since_is_refused(kernel: Kernel, change: str, path: str) -> None:
    kernel.run(change)
    messages = [f.message for f in kernel.capture("import asks").findings]
    [refused] = [message for message in messages if "since the import" in message]
    assert refused.startswith(f"`asks.{path}` has changed since the import of asks, which makes it")


USED = """
import functools, logging, os
RANK = int(os.environ.get("RANK", 0))
log = logging.getLogger(f"rank{RANK}")
show = functools.partial(print) if RANK == 0 else (lambda *texts: None)
@functools.lru_cache
def rank(): return RANK
"""


def test_using_what_a_module_made_by_the_rank_is_no_change(
    kernel: Kernel, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "used.py").write_text(USED)
    kernel.run("import used, logging")
    kernel.run("used.log.setLevel(logging.INFO); used.log.addHandler(logging.NullHandler())")
    kernel.run("used.log.info('a line'); used.show(); used.rank()")
    assert in_rank_1(kernel, server, "used.rank()") == 1
    sys.modules.pop("used")
