"""The programs of runs as text, and the differences between them."""

from __future__ import annotations

import hashlib
import re
from difflib import unified_diff
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from distrain_nb.secrets import redacted_source
from distrain_nb.worker.files.folder import PROGRAM_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from distrain_nb.run.run import Run

MOST_FILES, MOST_LINES, MOST_CHARACTERS = 200, 5_000, 200_000  # of a program, of a file
MOST_SHOWN = 400  # lines of all differences
# A cell that is run again has another number, and the same code.
_CELL_NUMBER = re.compile(r"(?m)^(#.*?In\[)\d+(?=\])")


def code_of(run: Run) -> Mapping[str, str]:
    """Return the program of a run: its Python files by name, without secrets.

    It is empty for a job that was started elsewhere.
    """
    return _code(run.folder / PROGRAM_FOLDER, run.created)


@lru_cache(maxsize=64)
def _code(program: Path, created: float) -> Mapping[str, str]:  # noqa: ARG001
    """Read a program, which never changes. *created* tells runs of one number apart."""
    paths = sorted(path for path in program.rglob("*.py") if not path.is_symlink())
    files = {}
    for path in paths[:MOST_FILES]:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = "".join(islice(file, MOST_LINES))[:MOST_CHARACTERS]
        shown = _CELL_NUMBER.sub(r"\1…", redacted_source(text))
        files[path.relative_to(program).as_posix()] = shown
    return files


def digest(code: Mapping[str, str]) -> str:
    """Return seven characters that are the same for the same code; empty without code."""
    text = "\0".join(part for pair in code.items() for part in pair)
    return hashlib.sha256(text.encode()).hexdigest()[:7] if code else ""


def differences(titles: Sequence[str], codes: Sequence[Mapping[str, str]]) -> str:
    """Return a unified diff of each run's code to that of the first.

    It has the first lines if there are very many. Runs without code are left out.
    """
    with_code = [(title, code) for title, code in zip(titles, codes, strict=True) if code]
    if not with_code:
        return ""
    before, old = with_code[0]
    lines = [
        line
        for after, new in with_code[1:]
        for name in dict.fromkeys((*old, *new))
        for line in _diff(f"{before}/{name}", f"{after}/{name}", old.get(name), new.get(name))
    ]
    more = len(lines) - MOST_SHOWN
    return "\n".join([*lines[:MOST_SHOWN], *([f"… {more:,} more lines"] if more > 0 else [])])


def _diff(before: str, after: str, old: str | None, new: str | None) -> Iterable[str]:
    """Return the lines of a file's diff. A file that is missing is called `/dev/null`."""
    names = "/dev/null" if old is None else before, "/dev/null" if new is None else after
    return unified_diff((old or "").splitlines(), (new or "").splitlines(), *names, lineterm="")
