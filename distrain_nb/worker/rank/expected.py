"""A rank compares what its program's text has made with what the notebook has."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping

from distrain_nb.worker.fingerprint import PASSED_OVER, fingerprint, settings
from distrain_nb.worker.plain import plain_parts

EXPECTED = "main.expected"  # beside main.py: a JSON list of what the notebook has
_MOST_SHOWN = 5
_MISSING = "nothing"
_SETTABLE = r"(int|float|bool|str|bytes|NoneType) (?!nan|-?inf)"


class NotAsInNotebook(RuntimeError):
    """The program's text has made something else than the notebook has."""


def read(folder: Path) -> Dict[str, Any]:
    """Return what a program folder expects; nothing where it has no such file."""
    try:
        return dict(json.loads((folder / EXPECTED).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {"items": [], "own": [], "python": []}


def check(expected: Mapping[str, Any], namespace: Mapping[str, Any], before: str = "") -> None:
    """Raise NotAsInNotebook where something differs, with both values and the cell: before the
    cell itself, or before the statement at that place."""
    modules = {"__main__", *expected["own"]}
    same_python = expected["python"] == list(sys.version_info[:2])
    differences: List[str] = []
    for entry in (item for item in expected["items"] if item["before"] == before):
        path = entry["path"]
        try:
            value = eval(path, dict(namespace))
        except (NameError, AttributeError, LookupError):
            if not before:
                differences.append(f"`{path}` ({entry['where']}) is missing in the run")
            continue
        if before:
            parts = plain_parts(path, value)
            if _is_given(entry["parts"], parts, namespace):
                continue
            differences += _differences(entry, parts, same_python=same_python)
        elif entry["knows_world"]:
            differences += _other_settings(entry, settings(path, value))
        else:
            parts = fingerprint(path, value, modules, entry["skip"])
            differences += _differences(entry, parts, same_python=same_python)
    if differences:
        more = (
            f"\nand {len(differences) - _MOST_SHOWN} more" if len(differences) > _MOST_SHOWN else ""
        )
        raise NotAsInNotebook("\n".join(differences[:_MOST_SHOWN]) + more)


def _is_given(
    expected: Mapping[str, str], parts: Mapping[str, str], namespace: Mapping[str, Any]
) -> bool:
    """Give an object made of numbers and texts alone those that the notebook has, such as a time
    that it keeps; return whether that makes it equal."""
    different = [path for path, text in expected.items() if parts.get(path) != text]
    plain = all(re.match(_SETTABLE, expected[p]) and "\u2026" not in expected[p] for p in different)
    if not different or not plain or PASSED_OVER in expected.values() or {*parts} - {*expected}:
        return False
    for path in different:
        try:
            exec(f"{path} = {expected[path].partition(' ')[2]}", dict(namespace))
        except Exception:  # `len(x)`, and what allows no change
            return False
    return True


def _other_settings(entry: Dict[str, Any], parts: Dict[str, str]) -> List[str]:
    """Return the plain parts that differ of those which both have: ranks may wrap what they
    prepare."""
    expected: Dict[str, str] = entry["parts"]
    return [
        _difference(path, entry["where"], expected[path], parts[path])
        for path in sorted({*expected} & {*parts}, key=lambda p: (len(p), p))
        if expected[path] != parts[path]
    ]


def _differences(entry: Dict[str, Any], parts: Dict[str, str], same_python: bool) -> List[str]:
    differences: List[str] = []
    expected: Dict[str, str] = entry["parts"]
    passed = [p for texts in (expected, parts) for p, text in texts.items() if text == PASSED_OVER]
    inside = re.compile("|".join(rf"{re.escape(path)}(?!\w)" for path in passed) or "(?!)")
    for path in sorted({*expected, *parts}, key=lambda p: (p not in expected, len(p), p)):
        before, now = expected.get(path, _MISSING), parts.get(path, _MISSING)
        if (
            before == now
            or inside.search(path)
            or (not same_python and "of the code" in before + now)
        ):
            continue
        if any(path.startswith(f.split("`")[1]) for f in differences):
            continue  # what stands inside something that is said
        differences.append(_difference(path, entry["where"], before, now))
    return differences


def _difference(path: str, where: str, before: str, now: str) -> str:
    return (
        f"`{path}` is {shown(before)} in the notebook ({where}) and {shown(now)} in the run, which"
        " has made it again from its text: set it in the cell, or run there what makes it"
    )


def shown(text: str) -> str:
    """Return the text of a part as one writes it: `0.1`, without its type."""
    kind, _, value = text.partition(" ")
    return value if kind in ("int", "float", "str", "bool", "NoneType", "set", "bytes") else text
