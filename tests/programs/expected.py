"""What programs print when they are started by their author's command.

That result depends on the program's text, the packages that it imports and the machine's kind, and
on nothing of this project. `expected.json` keeps it with a key of these. Where the key differs, the
command runs: `make expected` does so for all programs and writes the file.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.programs.running import Program

RECORD = Path(__file__).with_name("expected.json")
RECORDING = "RECORD_EXPECTED"  # a variable: run every command, and write the file

_NAME = re.compile(r"^[\w.-]+")


def recorded(program: Program) -> list[Any] | None:
    """Return the results on record, unless the program or its packages have changed since."""
    if RECORDING in os.environ:
        return None
    entry = _entries().get(program.name, {})
    return entry["results"] if entry.get("key") == key(program) else None


def record(program: Program, results: list[Any]) -> None:
    """Write down the results of a program."""
    if RECORDING in os.environ:
        entries = {**_entries(), program.name: {"key": key(program), "results": results}}
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(entries.items()))
        RECORD.write_text(f"{{\n{lines}\n}}\n", "utf-8")


def key(program: Program) -> str:
    """Describe all that a program's results depend on."""
    roots = set()
    for node in ast.walk(ast.parse(program.text)):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            roots.add(node.module.partition(".")[0])
    versions = set[str]()
    for root in sorted(roots):
        for name in _distributions().get(root, ()):
            _add_versions(name, versions)
    python = ".".join(platform.python_version_tuple()[:2])
    described = (program.text, python, platform.machine(), *sorted(versions))
    return hashlib.sha256("\n".join(described).encode()).hexdigest()[:16]


def _add_versions(name: str, versions: set[str]) -> None:
    """Add a distribution and all that it requires, so far as that is installed."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    described = f"{found.name}=={found.version}"
    if described in versions:
        return
    versions.add(described)
    for requirement in found.requires or ():
        if "extra ==" not in requirement and (match := _NAME.match(requirement)):
            _add_versions(match[0], versions)


@cache
def _distributions() -> dict[str, list[str]]:
    return {root: sorted(set(names)) for root, names in packages_distributions().items()}


def _entries() -> dict[str, Any]:
    return dict(json.loads(RECORD.read_text("utf-8"))) if RECORD.exists() else {}
