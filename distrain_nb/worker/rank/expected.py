"""A rank compares what its program's text has made with what the notebook has."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping

from distrain_nb.worker.fingerprint import PASSED_OVER, fingerprint, settings

EXPECTED = "main.expected"  # beside main.py: a JSON list of what the notebook has
_MOST_SHOWN = 5
_MISSING = "nothing"


class NotAsInNotebook(RuntimeError):
    """The program's text has made something else than the notebook has."""


def check(folder: Path, namespace: Mapping[str, Any]) -> None:
    """Raise NotAsInNotebook where something differs, with both values and the cell."""
    try:
        wanted = json.loads((folder / EXPECTED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    own = {"__main__", *wanted["own"]}
    same_python = wanted["python"] == list(sys.version_info[:2])
    found: List[str] = []
    for item in wanted["items"]:
        module = sys.modules.get(item["module"]) if item["module"] else None
        names = namespace if not item["module"] else vars(module) if module else {}
        if item["module"] and module is None:
            continue  # the cell may import it yet
        here = item["name"] if not item["module"] else f"{item['module']}.{item['name']}"
        if item["knows_world"]:
            found += _other_settings(item, settings(here, names.get(item["name"])))
        elif item["name"] in names:
            parts = fingerprint(here, names[item["name"]], own, item["skip"])
            found += _differences(item, parts, same_python=same_python)
        else:
            found.append(f"`{here}` ({item['where']}) is missing in the run")
    if found:
        more = f"\nand {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
        raise NotAsInNotebook("\n".join(found[:_MOST_SHOWN]) + more)


def _other_settings(item: Dict[str, Any], parts: Dict[str, str]) -> List[str]:
    """Return the plain parts that differ of those which both have: ranks may wrap what they
    prepare."""
    wanted: Dict[str, str] = item["parts"]
    return [
        _difference(path, item["where"], wanted[path], parts[path])
        for path in sorted({*wanted} & {*parts}, key=lambda p: (len(p), p))
        if wanted[path] != parts[path]
    ]


def _differences(item: Dict[str, Any], parts: Dict[str, str], same_python: bool) -> List[str]:
    found: List[str] = []
    wanted: Dict[str, str] = item["parts"]
    passed = [p for texts in (wanted, parts) for p, text in texts.items() if text == PASSED_OVER]
    inside = re.compile("|".join(rf"{re.escape(path)}(?!\w)" for path in passed) or "(?!)")
    for path in sorted({*wanted, *parts}, key=lambda p: (p not in wanted, len(p), p)):
        one, other = wanted.get(path, _MISSING), parts.get(path, _MISSING)
        if (
            one == other
            or inside.search(path)
            or (not same_python and "of the code" in one + other)
        ):
            continue
        if any(path.startswith(f.split("`")[1]) for f in found):
            continue  # what stands inside something that is said
        found.append(_difference(path, item["where"], one, other))
    return found


def _difference(path: str, where: str, one: str, other: str) -> str:
    return (
        f"`{path}` is {shown(one)} in the notebook ({where}) and {shown(other)} in the run, which"
        " has made it again from its text: set it in the cell, or run there what makes it"
    )


def shown(text: str) -> str:
    """Return the text of a part as one writes it: `0.1`, without its type."""
    kind, _, value = text.partition(" ")
    return value if kind in ("int", "float", "str", "bool", "NoneType", "set", "bytes") else text
