"""What type checkers see of `import distrain_nb`, where every name is imported when it is used."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import distrain_nb
from distrain_nb import data

ROOT = Path(__file__).parents[1]
USER = ROOT / "tests" / "typed_user.py"


def mistakes() -> set[int]:
    """The lines of the user's file that are mistakes."""
    lines = USER.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("  # error")}


@pytest.mark.parametrize("module", [distrain_nb, data], ids=lambda module: module.__name__)
def test_checkers_see_the_names_that_are_offered(module) -> None:  # type: ignore[no-untyped-def]
    text = Path(module.__file__).read_text(encoding="utf-8")
    seen = {
        alias.name: node.module
        for branch in ast.parse(text).body
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == module._HOMES
    assert sorted(seen) == [name for name in module.__all__ if name != "__version__"]


@pytest.mark.slow  # half a minute where nothing is cached
def test_mypy_finds_the_mistakes_of_a_users_file_and_no_others() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(USER)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r"^([\w/.]+):(\d+): error: ", done.stdout, re.M)
    assert {(Path(path).name, int(line)) for path, line in found} == {
        (USER.name, line) for line in mistakes()
    }, done.stdout + done.stderr


@pytest.mark.slow
def test_pyright_finds_the_same_in_the_installed_package(tmp_path: Path) -> None:
    """By basedpyright, whose wheel has all that Pyright fetches when it starts."""
    shutil.copy(USER, tmp_path)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    options = ["--pythonpath", sys.executable, "--outputjson", USER.name]
    command = [sys.executable, "-m", "basedpyright", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    lines = {d["range"]["start"]["line"] + 1 for d in found if d["severity"] == "error"}
    assert lines == mistakes(), done.stdout
