"""Ranks have a module as the notebook imported it, whatever its file has by now."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from distrain_nb.observed import Observer
from distrain_nb.program.gathering import edited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.program.notebooks import Kernel, Server

EDITED = """from math import floor as whole
from dataclasses import dataclass
def f(x=1): return x
def deco(g): return lambda: g() + 1
@deco
def w(): return 1
class A(dict):
    def get(self): return 1
@dataclass
class C:
    lr: float = 0.1
K = 1
"""
# What a file has otherwise by now, and what tells it.
EDITS = {
    "a method": ("get(self): return 1", "get(self): return 2", "m.A().get()", "A.get"),
    "a default": ("x=1", "x=2", "m.f()", ""),
    "a base": ("A(dict)", "A(list)", "m.A.__bases__", ""),
    "a field": ("0.1", "0.2", "m.C().lr", ""),
    "a decorator": ("g() + 1", "g() + 2", "m.w()", "deco"),
    "an import": ("floor", "ceil", "m.whole(1.5)", ""),
    "a value": ("K = 1", "K = 2", "m.K", ""),
    "a new name": ("K = 1", "K = 1; NEW = 2", "hasattr(m, 'NEW')", "NEW"),
    "a lost name": ("K = 1", "pass", "m.K", ""),
    "a new import": ("K = 1", "K = 1; import nothing_of_this_name as n", "m.K", "n"),
    "no Python": ("K = 1", "K = = 1", "m.K", ""),
}


@pytest.fixture(autouse=True)
def _on_path(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(kernel.folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file's time may be one with its edit
    yield
    sys.modules.pop("edited_module", None)


def _edited(kernel: Kernel, case: str, *, before: bool) -> tuple[Path, str]:
    """Import a module, before anybody watched or after it, and edit its file."""
    file = kernel.folder / "edited_module.py"
    file.write_text(EDITED)
    if before:
        importlib.import_module("edited_module")
        kernel.observer = Observer(kernel.namespace, kernel.observer.place)
    kernel.run("import edited_module as m")
    old, new, shows, _ = EDITS[case]
    assert old in EDITED
    file.write_text(EDITED.replace(old, new))
    return file, shows


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("case", EDITS)
def test_ranks_have_a_module_as_the_notebook_imported_it(
    kernel: Kernel, server: Server, case: str, before: bool
) -> None:
    """Ranks imported the file as it was by then, and only other functions were told."""
    _, shows = _edited(kernel, case, before=before)
    program = kernel.capture(f"print('SHOWN', {shows})")
    (finding,) = program.findings
    assert (finding.code, str(finding.severity)) == ("capture.rebound", "warning")
    path = f"edited_module.{EDITS[case][3]}".rstrip(".")
    assert finding.message.startswith(f"`{path}` has another text in the module's file by now: ")
    assert server.output(program) == f"SHOWN {eval(shows, kernel.namespace)}\n"


def test_a_module_that_was_loaded_again_is_as_its_file(kernel: Kernel, server: Server) -> None:
    file, shows = _edited(kernel, "a method", before=False)
    kernel.run("import importlib\nimportlib.reload(m)")
    program = kernel.capture(f"print('SHOWN', {shows})")
    assert not program.findings
    assert program.files == {"edited_module.py": file}
    assert server.output(program) == "SHOWN 2\n"


def test_a_file_that_was_edited_before_anybody_watched_is_told(kernel: Kernel) -> None:
    file, shows = kernel.folder / "edited_module.py", "m.A().get()"
    file.write_text(EDITED)
    importlib.import_module("edited_module")
    for old, new, path in (("return 1\n@", "return 2\n@", "A.get"), ("K =", "N = K =", "N")):
        file.write_text(EDITED.replace(old, new))
        kernel.observer = Observer(kernel.namespace, kernel.observer.place)
        kernel.run("import edited_module as m")
        (finding,) = kernel.capture(shows).findings
        compiled = edited._codes_in.cache_info().misses
        assert finding.message.startswith(f"`edited_module.{path}` has another text")
        assert "which the run imports" in finding.message
        assert kernel.capture(shows).findings == (finding,)
        assert edited._codes_in.cache_info().misses == compiled, "once for each text"


def test_a_comment_in_a_file_is_no_other_text(kernel: Kernel) -> None:
    file = kernel.folder / "edited_module.py"
    file.write_text(EDITED)
    kernel.run("import edited_module as m")
    file.write_text(f"# moved\n{EDITED}")
    assert not kernel.capture("m.A()").findings
