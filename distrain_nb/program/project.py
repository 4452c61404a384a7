"""What a script's project says: which files git tracks, and what it needs to be installed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from distrain_nb.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

REQUIREMENTS, PROJECT = "requirements.txt", "pyproject.toml"
_SKIPPED = (".ipynb", ".pyc")


def tracked(folder: Path) -> list[Path]:
    """The files below a folder that git tracks and that are there; none without git."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "-z"], capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    files = [folder / os.fsdecode(name) for name in listed.split(b"\0") if name]
    return [file for file in files if file.is_file() and file.suffix not in _SKIPPED]


def required_by(folders: Iterable[Path]) -> tuple[tuple[str, ...], list[Finding]]:
    """The requirements of the first folder that has a requirements.txt or a pyproject.toml, and
    what of them can't be read."""
    for folder in dict.fromkeys(folders):
        if (folder / REQUIREMENTS).is_file():
            return _read(list(_lines(folder / REQUIREMENTS)))
        if (folder / PROJECT).is_file():
            return _read([(PROJECT, text) for text in _dependencies(folder / PROJECT)])
    return (), []


def _read(lines: list[tuple[str, str]]) -> tuple[tuple[str, ...], list[Finding]]:
    required, unread = [], []
    for where, text in lines:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            message = f"`{text}` stays here: only names and versions of packages travel"
            unread.append(Finding("capture.requirement", Severity.WARNING, where, message))
            continue
        if wanted.marker is None or wanted.marker.evaluate():
            wanted.marker = None
            required.append(str(wanted))
    return tuple(dict.fromkeys(required)), unread


def _lines(file: Path, seen: frozenset[Path] = frozenset()) -> Iterator[tuple[str, str]]:
    """Where each line stands that requires something, and the line; of files too that it names."""
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        text = line.partition(" #")[0].partition(" --hash")[0].rstrip("\\").strip()
        flag, _, rest = text.replace("=", " ", 1).partition(" ")
        other = file.parent / rest.strip()
        if flag in ("-r", "--requirement") and other.is_file() and other not in seen:
            yield from _lines(other, seen | {file})
        elif text and not text.startswith(("#", "--hash")):
            yield f"{file.name}, line {number}", text


def _dependencies(file: Path) -> list[str]:
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        read = toml.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return []
    return [str(each) for each in read.get("project", {}).get("dependencies", ())]
