"""Docstrings name parameters that are there: who renames one renames it in the text too."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "distrain_nb"
DESCRIBED = re.compile(r"(?<!`)`([a-z_]+)` (?:is|are)\b")
PARAMETER = re.compile(r"(?<!\*)\*([a-z_]+)\*(?!\*)")
RAISED = re.compile(r"\b[Rr]aises? ((?:[A-Z]\w+(?:, | or | and )?)+)")
SECTION = re.compile(r"^(?:Args|Attributes):\n((?:[ \t]+.*\n?|\n)+)", re.MULTILINE)
IN_SECTION = re.compile(r"^    \*{0,2}(\w+):", re.MULTILINE)
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def strangers(text: str) -> Iterator[str]:
    """Yield what docstrings describe, or list as parameters, that nothing in the code is called."""
    tree = ast.parse(text)
    words = {
        getattr(node, field)
        for node in ast.walk(tree)
        for field in ("id", "attr", "arg", "name")
        if isinstance(getattr(node, field, None), str)
    } | {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED):
            lines = f"{ast.get_docstring(node) or ''}\n"
            described = DESCRIBED.findall(lines)
            listed = [name for part in SECTION.findall(lines) for name in IN_SECTION.findall(part)]
            listed += PARAMETER.findall(lines)
            parameters = words if isinstance(node, ast.ClassDef) else _parameters(node)
            yield from (f"{node.name}: `{name}`" for name in described if name not in words)
            yield from (f"{node.name}: `{name}`" for name in listed if name not in parameters)


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    found = node.args
    more = [arg for arg in (found.vararg, found.kwarg) if arg]
    return {a.arg for a in (*found.posonlyargs, *found.args, *found.kwonlyargs, *more)}


@pytest.mark.parametrize(
    "text",
    [
        'def f(new):\n    """Do it. `old` is where it is done."""',
        'def f(new):\n    """Do it in *old*."""',
        'def f(new):\n    """Do it.\n\n    Args:\n        old: Where it is done.\n    """',
    ],
)
def test_a_renamed_parameter_is_a_stranger(text: str) -> None:
    assert list(strangers(text)) == ["f: `old`"]
    assert not list(strangers(text.replace("old", "new")))


def test_docstrings_name_what_there_is() -> None:
    named = {
        str(path.relative_to(PACKAGE)): list(strangers(path.read_text("utf-8")))
        for path in PACKAGE.rglob("*.py")
    }
    assert {path: names for path, names in named.items() if names} == {}


def test_docstrings_name_errors_that_there_are() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
    nodes = [(path.name, node) for path, tree in trees.items() for node in ast.walk(tree)]
    known = set(dir(builtins)) | {
        getattr(node, field, None) or ""
        for _, node in nodes
        for field in ("id", "attr", "name")
        if isinstance(node, (ast.Name, ast.Attribute, ast.ClassDef, ast.alias))
    }
    unknown = {
        (file, error)
        for file, node in nodes
        if isinstance(node, (ast.Module, *DOCUMENTED))
        for raised in RAISED.findall(ast.get_docstring(node) or "")
        for error in re.findall(r"\w+", raised)
        if error[0].isupper() and error not in known
    }
    assert unknown == set()
